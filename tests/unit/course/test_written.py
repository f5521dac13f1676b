"""Every kind of mistake in a manifest, and the sentence that an author reads about it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gpucourse.errors import ExitCode, ManifestError

M = "modules/07-rivers/module.yaml: "

MISTAKES = yaml.safe_load((Path(__file__).parents[2] / "data" / "manifests" / "mistakes.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("mistake", MISTAKES, ids=[mistake["complaint"][:60] for mistake in MISTAKES])
def test_convert_errors_names_a_mistake_with_its_place(course: Any, mistake: dict[str, str]) -> None:
    course.change(mistake["old"], mistake["new"])
    with pytest.raises(ManifestError) as caught:
        course.load().module("7")
    assert caught.value.exit_code == ExitCode.USAGE
    assert all(line.startswith(M) for line in caught.value.complaints)
    assert mistake["complaint"] in caught.value.complaints[0]
    assert len(caught.value.complaints) == 1, "one mistake, one complaint"
    assert caught.value.hint


WHOLE_FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is empty"),
    "a list": (b"- a\n- b\n", "is not a mapping of keys and values"),
    "not UTF-8": (b"format: 1\ntitle: \xff\xfe\n", "is not UTF-8 (byte 0xff), line 2"),
    "key is a list": (b"? [a, b]\n: c\n", "has a key that is not a word"),
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE_FILES)
def test_read_of_a_file_that_is_not_a_manifest_has_one_complaint(course: Any, name: str) -> None:
    content, complaint = WHOLE_FILES[name]
    course.manifest.write_bytes(content)
    with pytest.raises(ManifestError) as caught:
        course.load().module("7")
    assert len(caught.value.complaints) == 1
    assert complaint in caught.value.complaints[0]


def test_format_complaints_names_all_mistakes_in_the_order_of_the_file(course: Any) -> None:
    course.change("title: Rivers", "titel: Rivers")
    course.change("kind: torchrun", "kind: torchurn")
    course.change("name: clear_water", "name: depth")
    course.change("script: source.py", "script: sauce.py")
    with pytest.raises(ManifestError) as caught:
        course.load().module("7")
    lines = [complaint.rpartition(", line ")[2] for complaint in caught.value.complaints]
    assert lines == ["1", "3", "13", "15", "18"]
    assert caught.value.complaints[1] == f"{M}titel: is not a key here (did you mean title?), line 3"


def test_read_of_a_newer_format_says_how_to_upgrade_and_nothing_else(course: Any) -> None:
    course.change("format: 1", "format: 9\nnew_key: true")
    with pytest.raises(ManifestError) as caught:
        course.load().module("7")
    assert len(caught.value.complaints) == 1
    assert "pip install --upgrade gpucourse" in caught.value.hint


def test_read_file_names_a_missing_manifest(course: Any) -> None:
    course.manifest.unlink()
    with pytest.raises(ManifestError, match="cannot be read: No such file or directory"):
        course.load().module("7")


@pytest.mark.parametrize(("key", "old"), [("script", "script: "), ("lesson", "title: Rivers")])
@pytest.mark.parametrize("name", ["x" * 5000, '"a\\e[31m"'])
def test_read_beside_names_a_name_that_no_file_can_have(course: Any, key: str, old: str, name: str) -> None:
    text = course.manifest.read_text()
    place = next(line for line in text.splitlines() if line.strip().startswith(old))
    indent = place[: len(place) - len(place.lstrip())]
    new = f"{indent}{key}: {name}" if key == "script" else f"{place}\n{indent}{key}: {name}"
    course.manifest.write_text(text.replace(place, new, 1))
    with pytest.raises(ManifestError) as caught:
        course.load().module("7")
    assert f"{key}: the file name" in "\n".join(caught.value.complaints)
    assert all(len(line) < 1000 and line.isprintable() for line in caught.value.complaints)


def test_convert_errors_of_many_keys_has_a_bounded_number_of_complaints(course: Any) -> None:
    with course.manifest.open("a") as manifest:
        manifest.writelines(f"key{number}: 1\n" for number in range(12_000))
    with pytest.raises(ManifestError) as caught:
        course.load().module("7")
    assert len(caught.value.complaints) <= 201
