"""The errors of pydantic, in words for a reader of the file: `file: key.path: reason, line N`."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from gpucourse.model.fields import FORMS, NOT_EMPTY
from gpucourse.outside.names import printable
from gpucourse.outside.yaml_reader import Complaint, Document, Path

MOST = 200
"""How many complaints about one file are shown; the others are counted."""

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


def format_complaints(file: str, document: Document, complaints: Iterable[Complaint]) -> tuple[str, ...]:
    """Return the complaints about a file as sentences, in the order of its lines, each once."""
    placed = [(complaint.line or document.line(complaint.path), complaint) for complaint in complaints]
    ordered = sorted(placed, key=lambda item: item[0] or 0)
    sentences = []
    for line, complaint in ordered[:MOST]:
        place = printable(".".join(map(str, complaint.path)), 200)
        where = f", line {line}" if line else ""
        sentences.append(f"{file}: {place + ': ' if place else ''}{printable(complaint.reason, 600)}{where}")
    if len(ordered) > MOST:
        sentences.append(f"{file}: and {len(ordered) - MOST} more complaints")
    return tuple(dict.fromkeys(sentences))


def from_pydantic(error: ValidationError, model: type[BaseModel], data: Any) -> list[Complaint]:
    """Return one complaint for each place whose value the model does not accept."""
    by_place: dict[Path, list[ErrorDetails]] = {}
    for detail in error.errors(include_url=False):
        if detail["type"] == "too_short" and detail["input"]:  # a list all of whose elements are wrong is not empty
            continue
        by_place.setdefault(_place(detail, data), []).append(detail)
    first = list(by_place.items())[: MOST + 1]
    rest = [Complaint(place, details[0]["msg"]) for place, details in list(by_place.items())[MOST + 1 :]]  # only counted
    return [*(Complaint(place, _reason(place, details, model)) for place, details in first), *rest]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ` (did you mean ...?)` if a known word is similar, else an empty text. A single letter has no similar word."""
    if len(word) < 2:
        return ""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f" (did you mean {near[0]}?)" if near else ""


def _place(detail: ErrorDetails, data: Any) -> Path:
    """Return the place in the file: pydantic's own, without the names that it uses for the branches of a union."""
    place: list[str | int] = []
    here = data
    for step in detail["loc"]:
        if isinstance(here, dict) and (step in here or (detail["type"] == "missing" and step == detail["loc"][-1])):
            here = here.get(step)
        elif isinstance(here, (list, tuple)) and isinstance(step, int) and step < len(here):
            here = here[step]
        else:
            continue
        place.append(step)
    return tuple(place)


def _reason(place: Path, details: Sequence[ErrorDetails], model: type[BaseModel]) -> str:
    detail = details[0]
    kind, value, context = detail["type"], detail["input"], detail.get("ctx", {})
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        known = _keys(model, place[:-1])
        return f"is not a key here{did_you_mean(str(place[-1]), known) or '; known: ' + ', '.join(known)}"
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
    wanted = list(dict.fromkeys(_KINDS[error["type"]] for error in details if error["type"] in _KINDS))
    if wanted:
        return f"{_format_value(value)} is not {' or '.join(wanted)}{_cure(value, wanted)}"
    return f"{_format_value(value)}: {detail['msg']}"


def _format_value(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(list(value) if isinstance(value, tuple) else value)
    return text if len(text) <= 60 else text[:57] + "..."


def _cure(value: object, wanted: Sequence[str]) -> str:
    if "text" in wanted and isinstance(value, (int, float)):
        return f': put it in quotes, "{str(value).lower() if isinstance(value, bool) else value}"'
    if isinstance(value, str) and "true or false" in wanted and value.lower() in {"yes", "no", "on", "off"}:
        return f" (write {'true' if value.lower() in {'yes', 'on'} else 'false'})"
    if isinstance(value, str) and {"a whole number", "a number"} & set(wanted) and value.strip().lstrip("-").isdigit():
        return f": write {value.strip()} without quotes"
    return ""


@functools.cache
def _schema(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema()


def _keys(model: type[BaseModel], place: Path) -> list[str]:
    """Return the keys that are allowed at a place, from the model's JSON Schema."""
    schema = _schema(model)
    here = schema
    for step in place:
        here = here.get("items", {}) if isinstance(step, int) else here.get("properties", {}).get(step, {})
        if "$ref" in here:
            here = schema["$defs"][here["$ref"].rsplit("/", 1)[-1]]
    return list(here.get("properties", {}))
