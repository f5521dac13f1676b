"""The questions of an exercise in a manifest, and its prediction."""

from __future__ import annotations

import math
from typing import Any, Literal

from pydantic import Field, model_validator

from gpucourse.model.fields import Expression, Letter, NumberOrPath, RelativePath, Slug, Strict, Text

KINDS: dict[str, tuple[str, ...]] = {
    "text": ("look_for",),
    "numeric": ("value", "low", "high", "tolerance", "tolerance_percent", "unit", "evidence"),
    "choice": ("options", "key"),
    "mutation": ("check", "edit"),
}
LETTERS = "abcdefgh"


class Question(Strict):
    """A question about what the learner just saw, of one of four kinds.

    `text` (the default) asks for free text, which a person judges by `look_for`.
    `numeric` asks for a number from the learner's own run. `value` is a number or a path, as in a check; `tolerance` (in the
    unit) or `tolerance_percent` says how far off the answer may be. `low` and `high` can replace `value`: they are the ends of
    a recorded range.
    `choice` asks for one of `options`, which have letters from a; `key` is the letter of the right one.
    `mutation` asks for an edit of the file `edit` and a run: only `check` must fail.
    `explanation` is shown after a right answer, or after the last attempt.
    """

    id: Slug = Field(description="its name: gpucourse answer 3.2 --set ID=ANSWER")
    text: Text = Field(description="the question")
    kind: Literal["text", "numeric", "choice", "mutation"] = Field(
        default="text", description="free text, a number, one of several options, or an edit whose check fails"
    )
    value: NumberOrPath | None = Field(default=None, description="numeric: the right number, or a path to it")
    low: Expression | None = Field(default=None, description="numeric: the lower end of the recorded range")
    high: Expression | None = Field(default=None, description="numeric: the upper end of the recorded range")
    tolerance: float = Field(default=0.0, ge=0, allow_inf_nan=False, description="numeric: how far off, in the unit")
    tolerance_percent: float = Field(default=0.0, ge=0, allow_inf_nan=False, description="numeric: how far off, in percent")
    unit: str = Field(default="", description="numeric: the unit of the answer")
    evidence: Literal["logic", "gpu"] = Field(default="logic", description="numeric: gpu if only a GPU can give the number")
    options: tuple[Text, ...] = Field(default=(), max_length=len(LETTERS), description="choice: the answers, lettered from a")
    key: Letter | None = Field(default=None, description="choice: the letter of the right one")
    check: Slug | None = Field(default=None, description="mutation: the check that fails")
    edit: RelativePath | None = Field(default=None, description="mutation: the file that the learner edits")
    look_for: Text | None = Field(default=None, description="text: what a good answer says, for the reviewer")
    explanation: Text | None = Field(default=None, description="why the answer is right; shown after the answer")

    @property
    def choices(self) -> dict[str, str]:
        """Return the options of a choice by their letters."""
        return dict(zip(LETTERS, self.options, strict=False))

    @property
    def reads(self) -> tuple[str, ...]:
        """Return the paths in the evidence that the answer is compared with. The result is empty if the question needs no
        run."""
        return tuple(source for source in (self.value, self.low, self.high) if isinstance(source, str))

    @model_validator(mode="after")
    def _check_kind(self) -> Question:
        for kind, keys in KINDS.items():
            strange = [key for key in keys if key in self.model_fields_set]
            if kind != self.kind and strange:
                raise ValueError(f"{strange[0]} belongs to kind: {kind}, but this is kind: {self.kind}")
        if self.kind == "numeric":
            self._number()
        elif self.kind == "mutation":
            if self.check is None or self.edit is None:
                raise ValueError("a mutation needs check and edit")
        elif self.kind == "choice":
            if len(self.options) < 2:
                raise ValueError(f"a choice needs at least 2 options; has {len(self.options)}")
            if self.key not in self.choices:
                raise ValueError(f"key must be the letter of an option, {', '.join(self.choices)}; is {self.key or 'missing'}")
        return self

    def _number(self) -> None:
        band = (self.low is not None, self.high is not None)
        if (self.value is None) != all(band) or any(band) != all(band):
            raise ValueError("a numeric question needs value, or low and high together")
        if isinstance(self.value, float) and not math.isfinite(self.value):
            raise ValueError(f"value: {self.value} is not a finite number")


class Prediction(Question):
    """A value that the learner predicts before the ranks start: a number (`value`) or a choice (`options`).

    A formula in the lesson must give the number from the parameters of the run. `value` is the path to the measured number.
    """

    kind: Literal["numeric", "choice"] = Field(default="numeric", description="choice if there are options")

    @model_validator(mode="before")
    @classmethod
    def _infer_kind(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "kind" in data:
            return data
        return data | {"kind": "choice" if "options" in data else "numeric"}
