"""Compares a prediction with the measurement: how far off it was."""

from __future__ import annotations

import math
from collections.abc import Mapping

from gpucourse.grading.answers import judge, number, read_ends, shorten
from gpucourse.grading.checks import format_value
from gpucourse.model.answer import PredictionResult
from gpucourse.model.questions import Prediction


def compare(asked: Prediction, answer: str, evidence: Mapping[str, object] | None, *, on_gpu: bool) -> PredictionResult:
    """Compare the prediction `answer` with what a run measured. `evidence`: the run's; None if it measured nothing.

    Raises ValueError, with the reason, for an answer that is not of the prediction's kind.
    """
    result = judge(asked, answer, evidence, on_gpu=on_gpu)
    measurement, difference, ratio = "", result.said, None
    if result.verdict in {"passed", "failed"}:
        if asked.kind == "choice":
            measurement = f"{asked.key}. {asked.choices[asked.key or '']}"
            difference = "right" if result.verdict == "passed" else "not what was measured"
        else:
            measurement, difference, ratio = _compare_numbers(asked, answer, evidence)
    return PredictionResult(
        id=asked.id,
        text=asked.text,
        verdict=result.verdict,
        prediction=result.answer or "",
        measurement=measurement,
        difference=difference,
        ratio=ratio,
        explanation=(asked.explanation or "") if measurement else "",
    )


def _compare_numbers(asked: Prediction, answer: str, evidence: Mapping[str, object] | None) -> tuple[str, str, float | None]:
    """Return what was measured, how far off the prediction is, and the ratio of the predicted to the measured number."""
    given, (low, high) = number(answer, asked.unit), read_ends(asked, evidence)
    nearest = min(max(given, low), high)
    measurement = format_value(shorten(high), asked.unit)
    if low != high:
        measurement = f"{format_value(shorten(low), '')} to {measurement}"
    ratio = given / nearest if given > 0 and nearest > 0 and math.isfinite(given / nearest) else None
    if nearest == 0:  # a percentage of 0 is not defined
        return measurement, format_value(shorten(given), asked.unit), ratio
    percent = (given - nearest) / abs(nearest) * 100
    return measurement, f"{percent:+,.3g} %" if percent else "0 %", ratio
