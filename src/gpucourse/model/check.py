"""The checks of a manifest, as data. A check states a condition on a run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any, Literal

from pydantic import (
    Field,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    PrivateAttr,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError

from gpucourse.model.check_kind import CheckKind, check_kinds
from gpucourse.model.fields import Expression, Scalar, Slug, Strict, Text


class Check(Strict):
    """One condition on a run: a value from the evidence, and a comparison.

    `value` is a dotted path into `metrics` (the script's metrics.json), `plan` or `run`. A path through a list collects the
    value of every element; min, max, median, last, count or sum turns these values into one number. A check also has exactly
    one key that is the name of its kind (`check_kinds`). The value of that key is the operand: a path (`equals:
    plan.world_size`), a number, a word, true or false. `when_open` is for a part that the learner may leave open: the script
    then writes null, and the result shows this text.
    """

    id: Slug = Field(description="its name, which parts and messages use")
    title: Text = Field(description="what must hold, as a sentence")
    value: Expression = Field(description="what is compared: a path such as metrics.speedup, or max(metrics.rows.error)")
    tolerance: float = Field(default=0.0, ge=0, description="how far `equals` may be off, in the value's unit")
    unit: str = Field(default="", description="the unit of the value")
    evidence: Literal["logic", "gpu"] = Field(default="logic", description="gpu: only a GPU can give the value")
    when_open: Text | None = Field(default=None, description="the text to show, instead of an error, if the value is null")
    hint: Text = Field(description="what to look at if the check fails")

    _comparison: tuple[str, Scalar] = PrivateAttr()

    @property
    def comparison(self) -> tuple[CheckKind, Scalar]:
        """Return the kind of this check, and the operand."""
        name, operand = self._comparison
        return check_kinds()[name], operand

    @model_validator(mode="wrap")
    @classmethod
    def _read_kind(cls, data: Any, handler: ModelWrapValidatorHandler[Check]) -> Check:
        if not isinstance(data, dict):
            return handler(data)
        operands = {name: data[name] for name in check_kinds() if data.get(name) is not None}
        errors = list(_operand_errors(operands, data))
        try:
            check = handler({key: value for key, value in data.items() if key not in check_kinds()})
        except ValidationError as error:
            errors = [*(_repeat_error(detail) for detail in error.errors()), *errors]
        if errors:
            raise ValidationError.from_exception_data(cls.__name__, errors)
        check._comparison = next(iter(operands.items()))  # noqa: SLF001  # set by its own class
        return check

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the schema with a key for each kind. A check has exactly one of these keys."""
        reference = handler(core_schema)
        schema = handler.resolve_ref_schema(reference)
        for kind in check_kinds().values():
            schema["properties"][kind.name] = {**TypeAdapter(kind.operand).json_schema(), "description": kind.description}
        schema["oneOf"] = [{"required": [name]} for name in check_kinds()]
        return reference


class OwnChecks(Strict):
    """The file that `--checks` names: the checks for a learner's own script, written as in a manifest."""

    checks: tuple[Check, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _distinct(self) -> OwnChecks:
        names = [check.id for check in self.checks]
        if duplicate := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"the id {duplicate} appears twice")
        return self


def _operand_errors(operands: dict[str, Any], data: dict[str, Any]) -> Iterator[InitErrorDetails]:
    """Yield the errors in a check's kind and operand."""
    names = ", ".join(check_kinds())
    if len(operands) != 1:
        yield _error((), f"needs exactly one of {names}; has {', '.join(operands) or 'none'}", data)
    for name, operand in operands.items():
        kind = check_kinds()[name]
        try:
            _operand_type(name).validate_python(operand, strict=True)
        except ValidationError as error:
            yield from (_repeat_error(detail, name) for detail in error.errors())
            continue
        if isinstance(operand, float) and not math.isfinite(operand):
            yield _error((), f"{name}: {operand} is not a finite number", data)
        elif objection := kind.find_objection(operand):
            yield _error((), f"{name}: {objection}", data)
        elif data.get("tolerance") and not kind.tolerance:
            tolerant_kinds = " or ".join(kind.name for kind in check_kinds().values() if kind.tolerance)
            yield _error((), f"tolerance belongs to {tolerant_kinds}, not to {name}", data)


@cache
def _operand_type(name: str) -> TypeAdapter[Any]:
    """Return the type of one kind's operand. The result is cached, because building it takes longer than reading a whole
    check."""
    return TypeAdapter(check_kinds()[name].operand)


def _error(place: tuple[str, ...], reason: str, data: Any) -> InitErrorDetails:
    return {"type": PydanticCustomError("value_error", "{error}", {"error": reason}), "loc": place, "input": data}


def _repeat_error(detail: Any, *place: str) -> InitErrorDetails:
    """Return a pydantic error in a form that can be raised again with a more precise location."""
    return {"type": detail["type"], "loc": (*place, *detail["loc"]), "input": detail["input"], "ctx": detail.get("ctx", {})}


class RepeatedValue(Strict):
    """A value that must not change when the run is repeated with the same parameters and seed."""

    value: Expression = Field(description="a path such as metrics.loss_after, to one value or a list")
    tolerance_percent: float = Field(default=0.0, ge=0, le=100, description="how far off it may be, in percent")
