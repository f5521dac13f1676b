"""The building blocks of manifests: a strict base class, and the types of values.

Each type also has a JSON Schema, so that an editor checks the same rules as this program.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, TypeGuard

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator
from pydantic_core import PydanticKnownError

from gpucourse.limits import MAX_RANKS_PER_NODE
from gpucourse.outside.names import relative_name
from gpucourse.units import parse_bytes, parse_duration

NAME, PROGRAM, SLUG, FILE_NAME, EXERCISE_ID, MODULE_ID, LETTER, NOT_EMPTY = (
    r"^[a-z][a-z0-9_]*$",
    r"^[a-z][a-z0-9_+.-]*$",
    r"^[a-z][a-z0-9-]*$",
    r"^[a-z0-9][a-z0-9_-]*$",
    r"^(\d+|B)\.\d+$",
    r"^(\d+|B)$",
    r"^[a-h]$",
    r"\S",
)
FORMS = {
    NAME: "a name in lower case, digits and underscores, such as batch_size",
    PROGRAM: "a program's name, such as g++",
    SLUG: "a name in lower case, digits and dashes, such as all-ranks",
    FILE_NAME: "a file's name in lower case without an ending, such as sync-time",
    EXERCISE_ID: 'an exercise\'s number, such as "3.2"',
    MODULE_ID: 'a module\'s number, such as "3"',
    LETTER: "a letter from a to h",
}

Name = Annotated[str, Field(pattern=NAME, description=FORMS[NAME])]
ProgramName = Annotated[str, Field(pattern=PROGRAM, description=FORMS[PROGRAM])]
Slug = Annotated[str, Field(pattern=SLUG, description=FORMS[SLUG])]
FileName = Annotated[str, Field(pattern=FILE_NAME, description=FORMS[FILE_NAME])]
ExerciseId = Annotated[str, Field(pattern=EXERCISE_ID, description=FORMS[EXERCISE_ID])]
ModuleId = Annotated[str, Field(pattern=MODULE_ID, description=FORMS[MODULE_ID])]
Letter = Annotated[str, Field(pattern=LETTER, description=FORMS[LETTER])]
Text = Annotated[str, Field(pattern=NOT_EMPTY, description="text that is not empty")]


class Strict(BaseModel):
    """The base of all manifest classes. It accepts no unknown keys and converts no values, except lists to tuples."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _tuples(cls, data: object) -> object:
        if not isinstance(data, dict):
            return data
        return {key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}


def check_choice(word: str, choices: Iterable[str]) -> str:
    """Return the word if it is one of `choices`. Otherwise raise the error that a Literal would raise."""
    names = list(choices)
    if word not in names:
        *first, last = map(repr, names)
        raise PydanticKnownError("literal_error", {"expected": f"{', '.join(first)} or {last}"})
    return word


def _check_relative_path(path: str) -> str:
    parts = path.split("/")
    if path.startswith("/") or "\\" in path or any(part in {"", ".", ".."} for part in parts):
        raise ValueError(f"'{path[:200]}' must be a relative path inside its folder, written with /")
    return relative_name(path)


RelativePath = Annotated[
    str,
    AfterValidator(_check_relative_path),
    WithJsonSchema({"type": "string", "minLength": 1, "pattern": r"^(?![/])(?!(.*/)?\.{1,2}(/|$))[^\\]+$"}),
]
Seconds = Annotated[
    float,
    BeforeValidator(lambda value: parse_duration(value) if isinstance(value, str) else value),
    Field(gt=0, allow_inf_nan=False),
    WithJsonSchema(
        {
            "anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string", "pattern": r"^[0-9][0-9.hms ]*$"}],
            "description": "a duration such as 90s, 10m, 1h30m; a bare number is seconds",
        }
    ),
]
Bytes = Annotated[
    int,
    BeforeValidator(lambda value: parse_bytes(value) if isinstance(value, str) else value),
    Field(gt=0),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "exclusiveMinimum": 0},
                {"type": "string", "pattern": r"^[0-9][0-9.]*\s*[KMGT]?i?B?$"},
            ],
            "description": "a size such as 64 MiB or 1 GiB; a bare number is bytes",
        }
    ),
]
Scalar = bool | int | float | str


def _processes(value: object) -> object:
    if isinstance(value, str) and re.fullmatch(NAME, value):
        return value
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_RANKS_PER_NODE:
        raise ValueError(
            f"{value!r} is neither a whole number from 1 to {MAX_RANKS_PER_NODE}, nor the word gpu, nor a parameter's name"
        )
    return value


ProcsPerNode = Annotated[
    int | str,
    BeforeValidator(_processes),
    WithJsonSchema(
        {"anyOf": [{"type": "integer", "minimum": 1, "maximum": MAX_RANKS_PER_NODE}, {"type": "string", "pattern": NAME}]}
    ),
]

EXPRESSION = re.compile(
    r"^(?:(?P<reduce>min|max|median|last|count|sum)\()?(?P<path>[a-z_][a-z0-9_]*(?:\.[a-z0-9_]+)*)(?(reduce)\))$"
)


EVIDENCE = ("metrics", "plan", "run")


def is_utf8(text: str) -> bool:
    """Return whether the text can be stored as UTF-8. Typed text may contain other bytes."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def is_evidence(text: str) -> bool:
    """Return whether `text` is a path to a value in the evidence. Such a path begins with metrics, plan or run."""
    match = EXPRESSION.match(text)
    return bool(match and "." in match["path"] and match["path"].split(".")[0] in EVIDENCE)


def is_number(value: object) -> TypeGuard[int | float]:
    """Return whether the value is a number. True and false are not numbers."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _expression(text: str) -> str:
    if not is_evidence(text):
        raise ValueError(f"'{text}' is not a path such as metrics.speedup, plan.world_size or max(metrics.rows.error)")
    return text


def _rows(text: str) -> str:
    if "(" in text or not is_evidence(text) or not text.startswith("metrics."):
        raise ValueError(f"'{text}' is not a list of the metrics, such as metrics.rows")
    return text


_PATH = r"(metrics|plan|run)(\.[a-z0-9_]+)+"
Expression = Annotated[
    str,
    AfterValidator(_expression),
    WithJsonSchema({"type": "string", "pattern": rf"^({_PATH}|(min|max|median|last|count|sum)\({_PATH}\))$"}),
]
NumberOrPath = Annotated[
    float | str,
    AfterValidator(lambda value: _expression(value) if isinstance(value, str) else value),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number"},
                {"type": "string", "pattern": rf"^({_PATH}|(min|max|median|last|count|sum)\({_PATH}\))$"},
            ]
        }
    ),
]
Rows = Annotated[
    str,
    AfterValidator(_rows),
    WithJsonSchema({"type": "string", "pattern": r"^metrics(\.[a-z0-9_]+)+$", "description": "a list of the metrics"}),
]
