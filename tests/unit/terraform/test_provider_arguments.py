"""docs/terraform.md holds every resource and argument of the stacks against the guide to version 6 of the AWS provider."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
BLOCK = re.compile(r'^(?:(resource|data) "(aws_\w+)" "\w+"|(provider) "(aws)") \{\n(.*?)^\}', re.MULTILINE | re.DOTALL)
LIFECYCLE = re.compile(r"^  lifecycle \{\n.*?^  \}\n", re.MULTILINE | re.DOTALL)
ARGUMENT = re.compile(r'^  (?:dynamic ")?(\w+)(?:"? \{|\s*=)', re.MULTILINE)
OF_TERRAFORM = {"count", "for_each"}
ROW = re.compile(r"^\| (?:(data|provider) )?`(aws\w*)` \| (`.*?`) \| ", re.MULTILINE)


def find_arguments(*texts: str) -> dict[str, set[str]]:
    """The arguments that Terraform files give to each kind of resource, of all files together."""
    arguments: dict[str, set[str]] = {}
    for text in texts:
        for block, kind, provider, name, body in BLOCK.findall(text):
            place = f"{'' if block == 'resource' else block or provider} {kind or name}".strip()
            arguments.setdefault(place, set()).update({*ARGUMENT.findall(LIFECYCLE.sub("", body))} - OF_TERRAFORM)
    return arguments


def test_every_resource_and_argument_was_held_against_the_guide() -> None:
    files = [path for path in sorted((ROOT / "terraform").rglob("*.tf")) if ".terraform" not in path.parts]
    page = (ROOT / "docs" / "terraform.md").read_text(encoding="utf-8")
    table = {f"{kind} {name}".strip(): {*re.findall(r"`(\w+)`", listed)} for kind, name, listed in ROW.findall(page)}
    assert table == find_arguments(*(path.read_text(encoding="utf-8") for path in files))
    assert "aws_instance" in table
