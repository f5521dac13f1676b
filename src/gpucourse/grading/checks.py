"""The checks of an exercise, applied to the evidence of one run.

A check has one of four results. `passed`: the comparison holds. `failed`: the comparison does not hold, or the value is not a
finite number. `error`: the value is missing or has the wrong type, which never counts as passed. `not_measured`: the check
needs a GPU and there was none, or it tests a part that the learner has not written yet (`when_open`).

The result of the exercise is `failed` if any check failed. Otherwise it is `error` if any check has an error, then `passed` if
any check passed. Otherwise it is `not_measured`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from gpucourse.grading.values import Unreadable, read
from gpucourse.model.check import Check
from gpucourse.model.check_kind import CheckKind
from gpucourse.model.fields import Scalar, is_evidence, is_number
from gpucourse.model.manifest import Exercise
from gpucourse.model.node import CERTAIN_OF_GPU, Mode, is_simulated
from gpucourse.model.verdict import CheckResult, ExerciseVerdict, Verdict

_WORST_FIRST: tuple[Verdict, ...] = ("failed", "error", "passed")


def evaluate(
    exercise: Exercise,
    metrics: Mapping[str, object],
    plan: Mapping[str, object],
    run: Mapping[str, object],
    *,
    mode: Mode,
    run_id: str = "",
) -> ExerciseVerdict:
    """Return the results of all checks of the exercise, and the word that sums them up.

    `metrics`: the content of the script's metrics.json.
    `plan`: at least `world_size` and `nodes` (the number of nodes).
    `run`: facts from the record.
    `mode`: the mode of the nodes, even if the script reports another mode.
    """
    evidence = {"metrics": metrics, "plan": plan, "run": run}
    gpu = is_gpu_evidence(metrics, mode)
    results = tuple(_judge(check, evidence, on_gpu=gpu) for check in exercise.checks)
    return ExerciseVerdict(exercise=exercise.id, run=run_id, mode=mode, verdict=overall(results), checks=results)


def is_gpu_evidence(metrics: Mapping[str, object], mode: Mode) -> bool:
    """Return whether a run is evidence of what a GPU does. It is not evidence if the nodes are simulated or if the script
    found no GPU. If the script does not report a device, the run counts only on a target whose labs always have a GPU."""
    return not is_simulated(mode) and (metrics["cuda"] is not None if "cuda" in metrics else mode in CERTAIN_OF_GPU)


def overall(results: Sequence[CheckResult]) -> Verdict:
    """Return the word that sums up these results, by the rule at the top of this file."""
    words = {result.verdict for result in results}
    return next((word for word in _WORST_FIRST if word in words), "not_measured")


def _judge(check: Check, evidence: Mapping[str, object], *, on_gpu: bool) -> CheckResult:
    kind, operand = check.comparison
    lacks_gpu = check.evidence == "gpu" and not on_gpu
    try:
        limit = read(operand, evidence) if isinstance(operand, str) and is_evidence(operand) else operand
        description = _describe_expected(check, kind, limit, operand)
    except Unreadable as error:
        if not lacks_gpu:
            return _result(check, "error", "not compared", f"unknown: {error}", hint=_ERROR_HINT)
        description = ""  # the bound, too, needs the missing GPU
    if lacks_gpu:
        return _result(check, "not_measured", "not measured: needs a GPU", description, hint="run it on a target with GPUs")
    try:
        observed = read(check.value, evidence)
        if observed is None and check.when_open:
            return _result(check, "not_measured", check.when_open, description, hint=check.hint)
        holds = _holds(kind, observed, limit, check.tolerance)
    except Unreadable as error:
        return _result(check, "error", str(error), description, hint=_ERROR_HINT)
    verdict: Verdict = "passed" if holds else "failed"
    return _result(check, verdict, format_value(observed, check.unit), description, hint="" if holds else check.hint)


_ERROR_HINT = "the script did not write the value that the check reads: look at the run's metrics.json and the end of its logs"


def _result(check: Check, verdict: Verdict, observed: str, expected: str, *, hint: str) -> CheckResult:
    return CheckResult(
        id=check.id,
        title=check.title,
        verdict=verdict,
        evidence=check.evidence,
        observed=observed,
        expected=expected,
        hint=hint,
    )


def _holds(kind: CheckKind, observed: object, limit: object, tolerance: float) -> bool:
    """Return whether the comparison holds. Raises Unreadable if the values cannot be compared."""
    if is_number(observed) and is_number(limit) and not (math.isfinite(observed) and math.isfinite(limit)):
        return False
    answer = kind.holds(observed, limit, tolerance)
    if answer is None:
        raise Unreadable(f"{_describe(observed)} cannot be compared with {_describe(limit)}")
    return answer


def format_value(value: object, unit: str) -> str:
    """Format a value for a person, with its unit: `2 ranks`, `3.1e-07`, `47.4 %`."""
    if is_number(value):
        return _add_unit(f"{value:,}" if isinstance(value, int) else f"{value:,.6g}", unit)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _describe_expected(check: Check, kind: CheckKind, limit: object, operand: Scalar) -> str:
    if not isinstance(limit, (int, float, str)):
        raise Unreadable(f"{operand} is {_describe(limit)}")
    source = f" ({operand})" if isinstance(operand, str) and is_evidence(operand) else ""
    margin = f" ± {check.tolerance:g}" if check.tolerance else ""
    value = format_value(limit, "" if margin else check.unit)
    text = f"{value}{_add_unit(margin, check.unit) if margin else ''}{source}"
    return f"{kind.words} {text}" if kind.words else text


def _add_unit(text: str, unit: str) -> str:
    return f"{text} {unit}" if unit else text


def _describe(value: object) -> str:
    if value is None:
        return "null (not measured)"
    if isinstance(value, list):
        return f"a list of {len(value)} values (take min, max, median, sum, last or count of it)"
    if isinstance(value, Mapping):
        return "a mapping"
    return f"the text {value[:40]!r}" if isinstance(value, str) else format_value(value, "")
