"""The tags that make something ours. Nothing is found, changed or removed by its name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

PROJECT = "gpucourse"
_NO_TAG = re.compile(r"[^\w .:/=+@-]")  # what IAM, EFS and EventBridge refuse in the value of a tag


def ours(*, stack: str | None = None, course: str | None = None) -> dict[str, str]:
    """The tags that a thing must carry to belong to this stack, or to this course (a workspace's id), or to the project."""
    wanted = {"Project": PROJECT}
    if stack:
        wanted["Stack"] = stack
    if course:
        wanted["Course"] = course
    return wanted


def filters(wanted: Mapping[str, str]) -> list[dict[str, Any]]:
    """The same as filters of EC2's describe calls."""
    return [{"Name": f"tag:{key}", "Values": [value]} for key, value in wanted.items()]


def of(item: Mapping[str, Any]) -> dict[str, str]:
    """The tags of something that AWS described. A network interface calls them TagSet."""
    listed: Iterable[Mapping[str, str]] = item.get("Tags") or item.get("TagSet") or ()
    return {tag["Key"]: tag["Value"] for tag in listed}


def fits(tags: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether all wanted tags are there with their values."""
    return all(tags.get(key) == value for key, value in wanted.items())


def to_aws_tags(tags: Mapping[str, str]) -> list[dict[str, str]]:
    """The tags as AWS wants them when something is made."""
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def make_value(text: str) -> str:
    """The text as a tag may hold it: a character that AWS refuses becomes `_`, and 128 are kept."""
    return _NO_TAG.sub("_", text)[:128]
