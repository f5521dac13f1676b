"""The JSON Schema of a manifest, for editors: generated from the model, so that the two cannot differ.

python -m gpucourse.course.schema            shows it
python -m gpucourse.course.schema --write    writes modules/module.schema.json
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from gpucourse.course.locate import find_course
from gpucourse.model.manifest import COMPARISONS, Check, Module
from gpucourse.model.questions import KINDS, Question

FILE = "module.schema.json"


def schema_text() -> str:
    """The schema as it belongs into `modules/module.schema.json`."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def schema() -> dict[str, Any]:
    """The schema as data: the model's own, and what its validators add to it."""
    found = Module.model_json_schema()
    found["$defs"][Check.__name__]["oneOf"] = [{"required": [name]} for name in COMPARISONS]
    found["$defs"][Question.__name__]["allOf"] = [_only_with(kind, keys) for kind, keys in KINDS.items()]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://gpucourse.invalid/module.schema.json",
        **_untitled(found),
        "title": "module.yaml: one module of the course",
    }


def _only_with(kind: str, keys: tuple[str, ...]) -> dict[str, Any]:
    """What a question of this kind needs, and that no other kind has these keys."""
    is_so: dict[str, Any] = {"properties": {"kind": {"const": kind}}, "required": [] if kind == "text" else ["kind"]}
    needed = {
        "text": {},
        "numeric": {"oneOf": [{"required": ["value"]}, {"required": ["low", "high"]}]},
        "choice": {"required": ["options", "key"], "properties": {"options": {"minItems": 2}}},
    }
    return {"if": is_so, "then": needed[kind], "else": {"properties": dict.fromkeys(keys, False)}}


def write_schema(modules: Path) -> Path:
    """Write the schema into the folder of the modules; where it is."""
    path = modules / FILE
    path.write_text(schema_text(), encoding="utf-8")
    return path


def main(arguments: list[str]) -> str:
    """What the command says: the schema, or with `--write` where it was written."""
    if arguments == ["--write"]:
        return f"written: {write_schema(find_course(os.environ).modules)}\n"
    return schema_text()


def _untitled(schema: Any) -> Any:
    """Without the titles that repeat each key."""
    if isinstance(schema, dict):
        kept = {key: value for key, value in schema.items() if not (key == "title" and isinstance(value, str))}
        return {key: _untitled(value) for key, value in kept.items()}
    return [_untitled(item) for item in schema] if isinstance(schema, list) else schema


if __name__ == "__main__":
    sys.stdout.write(main(sys.argv[1:]))
