"""Compares a prediction with the measurement: how far off it was."""

from __future__ import annotations

import math
from collections.abc import Mapping

from gpucourse.grading.answers import judge, number, read_ends, shorten
from gpucourse.grading.checks import format_value
from gpucourse.model.answer import PredictionResult
from gpucourse.model.questions import Prediction


def compare(prediction: Prediction, answer: str, evidence: Mapping[str, object] | None, *, on_gpu: bool) -> PredictionResult:
    """Compare the prediction `answer` with what a run measured. `evidence`: the run's; None if it measured nothing.

    Raises ValueError, with the reason, for an answer that is not of the prediction's kind.
    """
    result = judge(prediction, answer, evidence, on_gpu=on_gpu)
    measurement, difference, ratio = "", result.said, None
    if result.verdict in {"passed", "failed"}:
        if prediction.kind == "choice":
            measurement = f"{prediction.key}. {prediction.choices[prediction.key or '']}"
            difference = "right" if result.verdict == "passed" else "not what was measured"
        else:
            measurement, difference, ratio = _compare_numbers(prediction, answer, evidence)
    return PredictionResult(
        id=prediction.id,
        text=prediction.text,
        verdict=result.verdict,
        prediction=result.answer or "",
        measurement=measurement,
        difference=difference,
        ratio=ratio,
        explanation=(prediction.explanation or "") if measurement else "",
    )


def _compare_numbers(
    prediction: Prediction, answer: str, evidence: Mapping[str, object] | None
) -> tuple[str, str, float | None]:
    """Return what was measured, how far off the prediction is, and the ratio of the predicted to the measured number."""
    value, (low, high) = number(answer, prediction.unit), read_ends(prediction, evidence)
    nearest = min(max(value, low), high)
    measurement = format_value(shorten(high), prediction.unit)
    if low != high:
        measurement = f"{format_value(shorten(low), '')} to {measurement}"
    ratio = value / nearest if value > 0 and nearest > 0 and math.isfinite(value / nearest) else None
    if nearest == 0:  # a percentage of 0 is not defined
        return measurement, format_value(shorten(value), prediction.unit), ratio
    percent = (value - nearest) / abs(nearest) * 100
    return measurement, f"{percent:+,.3g} %" if percent else "0 %", ratio
