"""JSON Schemas for editors, generated from the models of the files that a person writes."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from gpucourse.model.manifest import Module
from gpucourse.model.questions import KINDS, Question
from gpucourse.model.quiz import Quiz, QuizQuestion
from gpucourse.model.report_plan import ReportPlan
from gpucourse.model.rubric import Rubric
from gpucourse.storage import write_bytes

FILE = "module.schema.json"
SCHEMAS: dict[str, tuple[type[BaseModel], str]] = {
    FILE: (Module, "module.yaml: one module of the course"),
    "rubric.schema.json": (Rubric, "rubric.yaml: the points of the course"),
    "quiz.schema.json": (Quiz, "quiz.yaml: the quiz of the course"),
    "report.schema.json": (ReportPlan, "report.yaml: the contents of the final report"),
}


@cache
def schema_text(file: str = FILE) -> str:
    """Return the text of the schema of that name in `modules/`."""
    return json.dumps(schema(file), indent=2, ensure_ascii=False) + "\n"


def schema(file: str = FILE) -> dict[str, Any]:
    """Return the schema as data: the schema of the model, and the rules of its validators."""
    model, title = SCHEMAS[file]
    document = model.model_json_schema()
    questions = [_require_keys(kind, keys) for kind, keys in KINDS.items()]
    rules: dict[str, dict[str, Any]] = {
        Question.__name__: {"allOf": questions},
        QuizQuestion.__name__: {"allOf": questions},
    }
    for name, rule in rules.items():
        if name in document["$defs"]:
            document["$defs"][name] |= rule
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"https://gpucourse.invalid/{file}",
        **_drop_titles(document),
        "title": title,
    }


def write_schema(modules: Path) -> tuple[Path, ...]:
    """Write the schemas into the modules' folder; return their paths."""
    paths = tuple(modules / file for file in SCHEMAS)
    for path in paths:
        write_bytes(path, schema_text(path.name).encode())
    return paths


def _require_keys(kind: str, keys: tuple[str, ...]) -> dict[str, Any]:
    """Return two rules: a question of this kind must have these keys, and a question of another kind must not."""
    is_of_kind: dict[str, Any] = {"properties": {"kind": {"const": kind}}, "required": [] if kind == "text" else ["kind"]}
    rules = {
        "text": {},
        "numeric": {"oneOf": [{"required": ["value"]}, {"required": ["low", "high"]}]},
        "choice": {"required": ["options", "key"], "properties": {"options": {"minItems": 2}}},
        "mutation": {"required": ["check", "edit"]},
    }
    return {"if": is_of_kind, "then": rules[kind], "else": {"properties": dict.fromkeys(keys, False)}}


def _drop_titles(schema: Any) -> Any:
    """Return the schema without titles, because they only repeat the keys."""
    if isinstance(schema, dict):
        untitled = {key: value for key, value in schema.items() if not (key == "title" and isinstance(value, str))}
        return {key: _drop_titles(value) for key, value in untitled.items()}
    return [_drop_titles(item) for item in schema] if isinstance(schema, list) else schema
