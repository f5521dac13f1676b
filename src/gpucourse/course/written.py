"""YAML files that a person wrote, checked against their models. Every error is reported as `file: key.path: reason, line N`."""

from __future__ import annotations

import difflib
import functools
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from gpucourse.errors import ManifestError
from gpucourse.model.fields import FORMS, NOT_EMPTY
from gpucourse.outside.files import read_named
from gpucourse.outside.names import OutsideError, printable
from gpucourse.outside.yaml_reader import MAX_BYTES, Complaint, Document, read_document
from gpucourse.outside.yaml_reader import Path as Place

Model = TypeVar("Model", bound=BaseModel)
Examine = Callable[[Document], Iterable[Complaint]]

HINT = "every key with its type and its meaning: docs/manifest.md"
MAX_COMPLAINTS = 200
"""The maximum number of errors in one file that are shown. Further errors are only counted."""

_KINDS = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "model_type": "a mapping of keys and values",
    "model_attributes_type": "a mapping of keys and values",
}
_LIMITS = {
    "greater_than": ("must be above", "gt"),
    "greater_than_equal": ("must be at least", "ge"),
    "less_than": ("must be below", "lt"),
    "less_than_equal": ("must be at most", "le"),
}


def read_beside(modules: Path, name: str, model: type[Model]) -> Model | None:
    """Read the file of that name next to the modules, or return None if there is none. Raises ManifestError with every
    error."""
    path = modules / name
    return read_file(path, model, f"{modules.name}/{name}") if os.path.lexists(path) else None


def read_file(path: Path, model: type[Model], label: str, *, examine: Examine = lambda _: ()) -> Model:
    """Read a file of a course. `label` is its name in messages. `examine` returns errors that the model cannot find. Raises
    ManifestError with every error."""
    try:
        raw = read_named(path, MAX_BYTES)
    except (OSError, OutsideError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ManifestError([f"{label}: cannot be read: {reason}"], hint=HINT) from error
    return read(raw, model, label, hint=HINT, examine=examine)[0]


def read(raw: bytes, model: type[Model], label: str, *, hint: str, examine: Examine = lambda _: ()) -> tuple[Model, Document]:
    """Read the bytes of a file, as `read_file` does. Return the document too. Raises ManifestError with every error."""
    document = read_document(raw)
    complaints = list(document.complaints)
    if not isinstance(document.data, dict):
        if not complaints:
            complaints.append(Complaint((), "is not a mapping of keys and values"))
        raise ManifestError(format_complaints(label, document, complaints), hint=hint)
    complaints += examine(document)
    instance: Model | None = None
    try:
        instance = model.model_validate(document.data)
    except ValidationError as error:
        complaints += convert_errors(error, model, document.data)
    if complaints or instance is None:
        raise ManifestError(format_complaints(label, document, complaints), hint=hint)
    return instance, document


def format_complaints(file: str, document: Document, complaints: Iterable[Complaint]) -> tuple[str, ...]:
    """Return the errors in a file as sentences, in the order of its lines, without repetitions."""
    placed = [(complaint.line or document.line(complaint.path), complaint) for complaint in complaints]
    ordered = sorted(placed, key=lambda item: item[0] or 0)
    sentences = []
    for line, complaint in ordered[:MAX_COMPLAINTS]:
        place = printable(".".join(map(str, complaint.path)), 200)
        line_note = (f", line {line}" if line else "") + (f", column {complaint.column}" if complaint.column else "")
        sentences.append(f"{file}: {place + ': ' if place else ''}{printable(complaint.reason, 600)}{line_note}")
    if len(ordered) > MAX_COMPLAINTS:
        sentences.append(f"{file}: and {len(ordered) - MAX_COMPLAINTS} more complaints")
    return tuple(dict.fromkeys(sentences))


def convert_errors(error: ValidationError, model: type[BaseModel], data: Any) -> list[Complaint]:
    """Return one error for each place with a value that the model does not accept."""
    by_place: dict[Place, list[ErrorDetails]] = {}
    for detail in error.errors(include_url=False):
        if detail["type"] == "too_short" and detail["input"]:  # a list in which every element is wrong is not empty
            continue
        by_place.setdefault(_place(detail, data), []).append(detail)
    items = list(by_place.items())
    first, counted_only = items[: MAX_COMPLAINTS + 1], items[MAX_COMPLAINTS + 1 :]
    brief = [Complaint(place, details[0]["msg"]) for place, details in counted_only]
    return [*(Complaint(place, _reason(place, details, model)) for place, details in first), *brief]


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """Return ` (did you mean ...?)` if a candidate is similar to the word, or an empty string. A single letter is similar
    to no word."""
    if len(word) < 2:
        return ""
    near = difflib.get_close_matches(word, list(candidates), n=1, cutoff=0.5)
    return f" (did you mean {near[0]}?)" if near else ""


def _place(detail: ErrorDetails, data: Any) -> Place:
    """Return the place in the file: pydantic's location without the names of union branches."""
    place: list[str | int] = []
    value = data
    for step in detail["loc"]:
        if isinstance(value, dict) and (step in value or (detail["type"] == "missing" and step == detail["loc"][-1])):
            value = value.get(step)
        elif isinstance(value, (list, tuple)) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            continue
        place.append(step)
    return tuple(place)


def _reason(place: Place, details: Sequence[ErrorDetails], model: type[BaseModel]) -> str:
    detail = details[0]
    kind, value, context = detail["type"], detail["input"], detail.get("ctx", {})
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        keys = _keys(model, place[:-1])
        return f"is not a key here{did_you_mean(str(place[-1]), keys) or '; the keys here: ' + ', '.join(keys)}"
    if kind == "literal_error":
        choices = [word.strip().strip("'") for word in str(context["expected"]).replace(" or ", ",").split(",")]
        return f"{_format_value(value)} is not one of {', '.join(choices)}{did_you_mean(str(value), choices)}"
    if kind == "string_pattern_mismatch":
        pattern = str(context["pattern"])
        return (
            "is empty"
            if pattern == NOT_EMPTY
            else f"{_format_value(value)} is not {FORMS.get(pattern, f'of the form {pattern}')}"
        )
    if kind in {"string_too_short", "too_short"}:
        return "is empty"
    if kind in _LIMITS:
        words, key = _LIMITS[kind]
        return f"{_format_value(value)} {words} {context[key]:g}"
    if kind == "value_error":
        return str(context["error"])
    kinds = list(dict.fromkeys(_KINDS[error["type"]] for error in details if error["type"] in _KINDS))
    if kinds:
        return f"{_format_value(value)} is not {' or '.join(kinds)}{_cure(value, kinds)}"
    return f"{_format_value(value)}: {detail['msg']}"


def _format_value(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(list(value) if isinstance(value, tuple) else value)
    return text if len(text) <= 60 else text[:57] + "..."


def _cure(value: object, kinds: Sequence[str]) -> str:
    if "text" in kinds and isinstance(value, (int, float)):
        return f': put it in quotes, "{str(value).lower() if isinstance(value, bool) else value}"'
    if isinstance(value, str) and "true or false" in kinds and value.lower() in {"yes", "no", "on", "off"}:
        return f" (write {'true' if value.lower() in {'yes', 'on'} else 'false'})"
    if isinstance(value, str) and {"a whole number", "a number"} & set(kinds) and value.strip().lstrip("-").isdigit():
        return f": write {value.strip()} without quotes"
    return ""


@functools.cache
def _schema(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema()


def _keys(model: type[BaseModel], place: Place) -> list[str]:
    """Return the keys that are allowed at a place, according to the model's JSON Schema."""
    schema = _schema(model)
    subschema = schema
    for step in place:
        subschema = subschema.get("items", {}) if isinstance(step, int) else subschema.get("properties", {}).get(step, {})
        if "$ref" in subschema:
            subschema = schema["$defs"][subschema["$ref"].rsplit("/", 1)[-1]]
    return list(subschema.get("properties", {}))
