"""The JSON Schema is the one that the model gives, and editors that use it agree with the program."""

from __future__ import annotations

import copy
import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from docs import manifest_reference

from gpucourse.course.locate import find_course
from gpucourse.course.schema import SCHEMAS, main, schema, schema_text, write_schema

jsonschema: Any = importlib.import_module("jsonschema")  # it has no type hints of its own
MODULES = find_course({}).modules
MANIFESTS = sorted(MODULES.glob("*/module.yaml"))


@pytest.fixture(scope="module")
def checker() -> Any:
    jsonschema.Draft202012Validator.check_schema(schema())
    return jsonschema.Draft202012Validator(schema())


@pytest.mark.parametrize("file", SCHEMAS)
def test_the_schemas_in_the_course_are_current(file: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema(file))
    assert (MODULES / file).read_text(encoding="utf-8") == schema_text(file), "type: python -m gpucourse.course.schema --write"


@pytest.mark.parametrize("name", ["rubric", "quiz"])
def test_the_rubric_and_the_quiz_pass_and_name_their_schemas(name: str) -> None:
    text = (MODULES / f"{name}.yaml").read_text(encoding="utf-8")
    assert text.startswith(f"# yaml-language-server: $schema={name}.schema.json\n")
    document = yaml.safe_load(text)
    checker = jsonschema.Draft202012Validator(schema(f"{name}.schema.json"))
    checker.validate(document)
    document["extra"] = 1
    with pytest.raises(jsonschema.ValidationError):
        checker.validate(document)


def test_the_command_shows_and_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert json.loads(main([])) == schema()
    for part in ("modules", "exercises"):
        (tmp_path / part).mkdir()
    monkeypatch.setenv("GPUCOURSE_COURSE", str(tmp_path))
    assert main(["--write"]).splitlines()[0] == f"written: {tmp_path / 'modules' / 'module.schema.json'}"
    assert [path.read_text(encoding="utf-8") for path in write_schema(tmp_path / "modules")] == [*map(schema_text, SCHEMAS)]


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.parent.name)
def test_every_manifest_passes_and_names_the_schema(path: Path, checker: Any) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=../module.schema.json\n")
    checker.validate(yaml.safe_load(text))


def spoil_launch(manifest: Any) -> None:
    manifest["exercises"][0]["launch"]["kind"] = "torchurn"


def two_comparisons(manifest: Any) -> None:
    manifest["exercises"][0]["checks"][0]["below"] = 3


def question_change(**keys: object) -> Callable[[Any], Any]:
    def spoil(manifest: Any) -> None:
        manifest["exercises"][0]["questions"][0] = {"id": "q", "text": "t", **keys}

    return spoil


SPOILED: dict[str, Callable[[Any], Any]] = {
    "unknown key": lambda manifest: manifest.update(extra=1),
    "missing key": lambda manifest: manifest.pop("title"),
    "wrong type": lambda manifest: manifest.update(hours="long"),
    "number for an id": lambda manifest: manifest.update(id=3),
    "newer format": lambda manifest: manifest.update(format=2),
    "unknown launcher": spoil_launch,
    "two comparisons": two_comparisons,
    "no duration": lambda manifest: manifest["exercises"][0]["launch"].update(timeout="soon"),
    "script leads out": lambda manifest: manifest["exercises"][0].update(script="../x.py"),
    "code for a value": lambda manifest: manifest["exercises"][0]["checks"][0].update(value="exit()"),
    "no hints": lambda manifest: manifest["exercises"][0].update(hints=[]),
    "number that is not asked": question_change(kind="numeric"),
    "one end of a band": question_change(kind="numeric", low="min(metrics.rows.ms)"),
    "value and a band": question_change(kind="numeric", value=3, low="metrics.a", high="metrics.b"),
    "code for an answer": question_change(kind="numeric", value="exit()"),
    "choice of one": question_change(kind="choice", options=["a"], key="a"),
    "choice without a key": question_change(kind="choice", options=["a", "b"]),
    "key of another kind": question_change(key="a"),
    "tolerance of a text": question_change(tolerance=3),
    "empty hint": lambda manifest: manifest["exercises"][0].update(hints=[" "]),
}


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"look_for": "ranks", "explanation": "so it is"},
        {"kind": "numeric", "value": 3},
        {"kind": "numeric", "low": "min(metrics.rows.ms)", "high": "max(metrics.rows.ms)", "unit": "ms", "evidence": "gpu"},
        {"kind": "choice", "options": ["one", "two"], "key": "b"},
    ],
)
def test_every_kind_of_question(keys: dict[str, object], checker: Any) -> None:
    manifest = copy.deepcopy(yaml.safe_load(MANIFESTS[0].read_text(encoding="utf-8")))
    question_change(**keys)(manifest)
    checker.validate(manifest)


@pytest.mark.parametrize("name", SPOILED)
def test_a_spoiled_manifest_does_not(name: str, checker: Any) -> None:
    manifest = copy.deepcopy(yaml.safe_load(MANIFESTS[0].read_text(encoding="utf-8")))
    SPOILED[name](manifest)
    with pytest.raises(jsonschema.ValidationError):
        checker.validate(manifest)


def test_every_key_says_what_it_is() -> None:
    assert list(manifest_reference.find_undescribed()) == []


def test_the_page_of_all_keys_is_current() -> None:
    assert manifest_reference.PAGE.read_text(encoding="utf-8") == manifest_reference.render(), (
        f"type: {manifest_reference.WRITE}"
    )
