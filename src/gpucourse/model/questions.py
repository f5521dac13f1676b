"""The questions and the prediction of an exercise, as a manifest defines them."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from gpucourse.model.fields import Expression, Letter, NumberOrPath, RelativePath, Slug, Strict, Text

KINDS: dict[str, tuple[str, ...]] = {
    "text": ("look_for",),
    "numeric": ("value", "low", "high", "tolerance", "tolerance_percent", "unit", "evidence"),
    "choice": ("options", "key"),
    "mutation": ("check", "edit", "was", "becomes"),
}
LETTERS = "abcdefgh"


def _check_range(ends: tuple[float | None, float | None]) -> tuple[float | None, float | None]:
    low, high = ends
    if low is None and high is None:
        raise ValueError("a range needs a low or a high end")
    if low is not None and high is not None and not low < high:
        raise ValueError(f"the low end {low:g} is not below the high end {high:g}")
    return ends


Range = Annotated[
    tuple[Annotated[float, Field(allow_inf_nan=False)] | None, Annotated[float, Field(allow_inf_nan=False)] | None],
    BeforeValidator(lambda ends: tuple(ends) if isinstance(ends, list) else ends),
    AfterValidator(_check_range),
    WithJsonSchema({"type": "array", "items": {"type": ["number", "null"]}, "minItems": 2, "maxItems": 2}),
]
"""Two ends, low <= value < high; null is an open end."""


class Question(Strict):
    """A question about what the learner just saw, of one of four kinds.

    `text` (the default) asks for free text, which a person judges by `look_for`.
    `numeric` asks for a number from the learner's own run. `value` is a number or a path, as in a check; `tolerance` (in the
    unit) or `tolerance_percent` says how far off the answer may be. `low` and `high` can replace `value`: they are the ends of
    a recorded range.
    `choice` asks for one of `options`, which have letters from a; `key` is the letter of the right one.
    `mutation` asks the learner to edit the file `edit` so that only `check` fails in the next run. `was` is a text that occurs
    once in that file, and `becomes` replaces it: `dev check --run` makes this edit, which the question describes to a learner
    in words.
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
    tolerance: float = Field(
        default=0.0, ge=0, allow_inf_nan=False, description="numeric: how far off the answer may be, in the unit"
    )
    tolerance_percent: float = Field(
        default=0.0, ge=0, allow_inf_nan=False, description="numeric: how far off the answer may be, in percent"
    )
    unit: str = Field(default="", description="numeric: the unit of the answer")
    evidence: Literal["logic", "gpu"] = Field(default="logic", description="numeric: gpu if only a GPU can give the number")
    options: tuple[Text, ...] = Field(default=(), max_length=len(LETTERS), description="choice: the answers, lettered from a")
    key: Letter | None = Field(default=None, description="choice: the letter of the right one")
    check: Slug | None = Field(default=None, description="mutation: the check that fails")
    edit: RelativePath | None = Field(default=None, description="mutation: the file that the learner edits")
    was: Text | None = Field(default=None, description="mutation: the text that the edit changes; it occurs once in the file")
    becomes: str | None = Field(
        default=None, description="mutation: the text that replaces `was`; the learner sees neither text"
    )
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
        self._check_keys()
        return self

    def _check_keys(self) -> None:
        """Raise ValueError if a key is missing, or belongs to another kind of question."""
        for kind, keys in KINDS.items():
            strange = [key for key in keys if key in self.model_fields_set]
            if kind != self.kind and strange:
                raise ValueError(f"{strange[0]} belongs to kind: {kind}, but this is kind: {self.kind}")
        if self.kind == "numeric":
            self._number()
        elif self.kind == "mutation":
            if missing := [key for key in KINDS["mutation"] if getattr(self, key) is None]:
                raise ValueError(f"a mutation needs {', '.join(KINDS['mutation'])}; lacks {', '.join(missing)}")
            if self.was == self.becomes:
                raise ValueError("was and becomes are the same text")
        elif self.kind == "choice":
            self._check_options()
            if self.key not in self.choices:
                raise ValueError(f"key must be the letter of an option, {', '.join(self.choices)}; is {self.key or 'missing'}")

    def _check_options(self) -> None:
        if len(self.options) < 2:
            raise ValueError(f"a choice needs at least 2 options; has {len(self.options)}")

    def _number(self) -> None:
        band = (self.low is not None, self.high is not None)
        if (self.value is None) != all(band) or any(band) != all(band):
            raise ValueError("a numeric question needs value, or low and high together")
        if isinstance(self.value, float) and not math.isfinite(self.value):
            raise ValueError(f"value: {self.value} is not a finite number")


class Prediction(Question):
    """A value that the learner predicts before the ranks start: a number (`value`) or a choice (`options`).

    `value` is the path to the measured number. A choice whose right letter depends on the run has `value` and `ranges` instead
    of `key`: an option is right if its range contains the measured number. An option without a range is never right. If no
    range contains the number, the prediction is not judged.
    """

    kind: Literal["numeric", "choice"] = Field(default="numeric", description="choice if there are options")
    ranges: dict[Letter, Range] = Field(
        default={},
        description="instead of key: for each letter, the range [low, high] in which `value` makes it right, "
        "low <= value < high; null means no limit",
    )

    def find_right_letters(self, value: float) -> tuple[str, ...]:
        """Return the letters of the options whose range contains the value."""
        return tuple(
            letter
            for letter, (low, high) in self.ranges.items()
            if (low is None or low <= value) and (high is None or value < high)
        )

    @model_validator(mode="before")
    @classmethod
    def _infer_kind(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "kind" in data:
            return data
        return data | {"kind": "choice" if "options" in data else "numeric"}

    def _check_keys(self) -> None:
        if not self.ranges:
            super()._check_keys()
            return
        if strange := {"key", "low", "high", "tolerance", "tolerance_percent"} & self.model_fields_set:
            raise ValueError(f"{min(strange)} cannot be combined with ranges")
        if not self.reads:
            raise ValueError("ranges need a value: the path to a number that the run measures")
        self._check_options()
        if unknown := [letter for letter in self.ranges if letter not in self.choices]:
            raise ValueError(f"ranges: {unknown[0]} is not the letter of an option, {', '.join(self.choices)}")
        for low in {low for low, _ in self.ranges.values()}:
            letters = self.find_right_letters(-math.inf if low is None else low)
            if len(letters) > len(self.options) / 2:
                number = "a very small number" if low is None else f"{low:g}"
                raise ValueError(f"ranges: {', '.join(letters)} are right for {number}, which is more than half of the options")
