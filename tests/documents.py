"""Validate every JSON document that a test reads against docs/json.schema.json, which refuses unknown keys."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from gpucourse.cli.help import COMMANDS

SCHEMA = Path(__file__).parent.parent / "docs" / "json.schema.json"


def read_document(words: Sequence[str], out: str) -> Any:
    """Return the document that this command line printed. Fails if it does not match the schema of the command."""
    document = json.loads(out)
    command = next(word for word in words if word in COMMANDS)
    complaints = [f"{error.json_path}: {error.message[:300]}" for error in _make_validator(command).iter_errors(document)]
    assert not complaints, f"gpucourse {' '.join(words)} --json does not match {SCHEMA.name}:\n" + "\n".join(complaints)
    return document


@cache
def _make_validator(command: str) -> Draft202012Validator:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    for definition in schema["$defs"].values():
        if "properties" in definition:
            definition["additionalProperties"] = False
    return Draft202012Validator({"$ref": f"#/$defs/{command}", "$defs": schema["$defs"]})
