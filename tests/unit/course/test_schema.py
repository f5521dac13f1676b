"""The JSON Schema is generated from the model, and editors that use it agree with the program."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from docs import manifest_reference

from gpucourse.course.locate import find_course
from gpucourse.course.schema import SCHEMAS, schema, schema_text, write_schema
from gpucourse.outside.yaml_reader import read_document
from tests.unit.course.conftest import MANIFEST

jsonschema: Any = importlib.import_module("jsonschema")  # it has no type hints of its own
MODULES = find_course({}).modules


def make_checker(file: str = "module.schema.json") -> Any:
    """Return a validator by this schema."""
    jsonschema.Draft202012Validator.check_schema(schema(file))
    return jsonschema.Draft202012Validator(schema(file))


@pytest.fixture(scope="module")
def checker() -> Any:
    return make_checker()


@pytest.mark.parametrize("file", SCHEMAS)
def test_schema_text_is_what_the_course_has(file: str) -> None:
    assert (MODULES / file).read_text(encoding="utf-8") == schema_text(file), "type: gpucourse dev schema"


@pytest.mark.parametrize("name", ["rubric", "quiz", "*/module"])
def test_schema_accepts_the_files_of_this_course(name: str) -> None:
    file = f"{name.rpartition('/')[2]}.schema.json"
    checker = make_checker(file)
    for path in sorted(MODULES.glob(f"{name}.yaml")):
        text = path.read_text(encoding="utf-8")
        head = f"# yaml-language-server: $schema={'../' if '/' in name else ''}{file}\n"
        assert text.startswith(head), path
        checker.validate(yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))


def test_write_schema_writes_every_schema(tmp_path: Path) -> None:
    assert json.loads(schema_text()) == schema()
    assert [path.read_text(encoding="utf-8") for path in write_schema(tmp_path)] == [*map(schema_text, SCHEMAS)]


def put_question(**keys: object) -> Callable[[Any], Any]:
    def change(manifest: Any) -> None:
        manifest["exercises"][0]["questions"][0] = {"id": "q", "text": "t", **keys}

    return change


SPOILED: dict[str, Callable[[Any], Any]] = {
    "unknown key": lambda manifest: manifest.update(extra=1),
    "missing key": lambda manifest: manifest.pop("title"),
    "two comparisons": lambda manifest: manifest["exercises"][0]["checks"][0].update(below=3),
    "no duration": lambda manifest: manifest["exercises"][0]["launch"].update(timeout="soon"),
    "code for a value": lambda manifest: manifest["exercises"][0]["checks"][0].update(value="exit()"),
    "number without a value": put_question(kind="numeric"),
    "value and a band": put_question(kind="numeric", value=3, low="metrics.a", high="metrics.b"),
    "key of another kind": put_question(key="a"),
}


@pytest.mark.parametrize("name", SPOILED)
def test_schema_refuses_a_spoiled_manifest(name: str, checker: Any) -> None:
    manifest = read_document(MANIFEST.encode()).data
    SPOILED[name](manifest)
    assert not checker.is_valid(manifest)


def test_schema_describes_every_key_of_a_manifest() -> None:
    assert list(manifest_reference.find_undescribed()) == []


def test_schema_is_what_the_page_of_all_keys_has() -> None:
    assert manifest_reference.PAGE.read_text(encoding="utf-8") == manifest_reference.render(), (
        f"type: {manifest_reference.WRITE}"
    )
