"""Judge my_diagnosis.py of 3.7 with curves of known causes, which any reasonable rule for noise finds."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean, median
from typing import Any, NamedTuple

from gpucourse.judge import Case, Part, Way

NAMES = ["bottleneck", "efficiency", "losses_ms", "overhead_grows"]
CAUSES = ["communication", "slower computing"]
STEPS, FEW_STEPS = 21, 11
WAYS = {
    "weak-as-strong": Way(
        "your weak efficiency compares steps: {workers} workers train {workers} times as many samples in a step, so compare "
        "samples per second",
        ('share = last["samples"] / first["samples"] / last["workers"]', 'share = 1 / last["workers"]'),
    ),
    "strong-as-weak": Way(
        "your strong efficiency counts {workers} times as many samples as there are: all workers together train the batch of "
        "one worker",
        ('share = last["samples"] / first["samples"] / last["workers"]', "share = 1.0"),
    ),
    "means": Way(
        "your efficiency is that of the mean step, which one step that was slow by accident can change. Take a typical step",
        ("return statistics.median(ordered), spread", "return statistics.fmean(ordered), spread"),
    ),
    "as-a-share": Way("your efficiency is a share: 0.9 of the perfect speed-up is 90 %", ("100 * share * one", "share * one")),
    "noise-named": Way(
        "you named {given}, but the times do not show it: typical steps differ by {loss:.2g} ms, and the times of one size "
        "scatter by {scatter:.2g} ms",
        ("named = losses[larger] > noise and", "named = losses[larger] > 0 and"),
    ),
    "close-named": Way(
        "you named {given}. Communication costs {communication:.3g} ms and slower computing {computing:.3g} ms: which one is "
        "larger is an accident of this measurement",
        (" and losses[larger] - losses[smaller] > noise", ""),
    ),
    "never-named": Way(
        "you named nothing although {loss:.3g} ms are lost, most of it for one cause, and the times scatter by only "
        "{scatter:.2g} ms",
        ('"bottleneck": larger if named else None', '"bottleneck": None'),
    ),
    "too-careful": Way(
        "you named nothing, though your losses are right: {right} costs {loss:.3g} ms, {lead:.3g} ms more than the other, and "
        "half of the times of one size are within {half:.2g} ms of each other. Your limit for noise is too wide",
        ("noise = step_spread + silent_spread + share * one_spread", "noise = 0.5 * step"),
    ),
    "smaller-named": Way(
        "your losses are right, but you named {given}, although {right} costs {lead:.3g} ms more",
        ('"bottleneck": larger if', '"bottleneck": smaller if'),
    ),
    "swapped": Way(
        "you swapped the two causes. Communication is what AllReduce adds to the same step without it. The rest of the loss is "
        "there without AllReduce, too",
        ('{"communication": step - silent, "slower computing": silent - share * one}',
         '{"slower computing": step - silent, "communication": silent - share * one}'),
    ),
    "whole-step": Way(
        "you compared a strong step with the whole step of one worker: each of {workers} workers has only a part of the "
        "batch now, so slower computing looks like a gain",
        ("silent - share * one", "silent - one"),
    ),
    "in-seconds": Way(
        "your losses are in seconds: {given:.3g} is a thousandth of what a step loses",
        ("1e3 * seconds for name", "seconds for name"),
    ),
    "falling-efficiency": Way(
        "you say that overhead grows, but a serial part of {serial:.0%} explains every point: by Amdahl's law, a "
        "constant serial part lowers the efficiency as well. Compute the serial part that each point implies, and compare them",
        ("grows = intervals[-1][0] > intervals[0][1]",
         "grows = _describe(curve[1]['step_s'])[0] * 2 < _describe(curve[-1]['step_s'])[0] * curve[-1]['workers'] * 0.99"),
    ),
    "grows-by-noise": Way(
        "you say that overhead grows, but the implied serial parts differ by {difference:.2%}, and the times scatter by "
        "{percent:.0f} %",
        ("intervals[-1][0] > intervals[0][1]", "sum(intervals[-1]) > sum(intervals[0])"),
    ),
    "never-grows": Way(
        "you say that a fixed serial part explains the curve. But {workers} workers imply a part of {last:.0%}, and 2 workers "
        "one of {first:.0%}: overhead grows",
        ('"overhead_grows": grows if strong', '"overhead_grows": False if strong'),
    ),
}  # fmt: skip


class Curve(NamedTuple):
    """A curve. `points` has the workers, and the typical milliseconds of a step with and without AllReduce."""

    name: str
    strong: bool
    points: tuple[tuple[int, float, float], ...]
    scatter: float  # how far steps are from the typical one, as a share of it
    bottleneck: str | None
    grows: bool | None
    steps: int = STEPS


CURVES = (
    Curve("weak, slow network", False, ((1, 10, 0), (2, 12, 10.1), (4, 15, 10.2), (8, 20, 10.2)), 0.01, "communication", None),
    Curve("weak, shared cores", False, ((1, 10, 0), (2, 13.2, 13), (4, 21.3, 21)), 0.01, "slower computing", None),
    Curve("weak, faster than one", False, ((1, 10, 0), (2, 9.7, 9.6), (4, 9.5, 9.4)), 0.02, None, None),
    Curve("strong, a tenth serial", True, ((1, 100, 0), (2, 55, 54.9), (4, 32.5, 32.4), (8, 21.23, 21.2)), 0.01,
          "slower computing", False),
    Curve("strong, growing messages", True, ((1, 100, 0), (2, 52.5, 50.5), (4, 30.5, 25.5), (8, 24, 13)), 0.01, "communication",
          True),
    Curve("strong, two equal causes", True, ((1, 100, 0), (2, 55.4, 52.7), (4, 33, 29)), 0.02, None, False),
    Curve("strong, much scatter", True, ((1, 100, 0), (2, 50.3, 50.2), (4, 25.3, 25.2), (8, 12.8, 12.7)), 0.3, None, False),
    Curve("strong, nearly constant", True, ((1, 100, 0), (2, 55, 54.9), (4, 32.52, 32.4), (8, 21.3, 21.2)), 0.06,
          "slower computing", False),
    Curve("weak, wide scatter", False, ((1, 10, 0), (2, 10.6, 10.1), (4, 11.4, 10.2)), 0.4, None, None),
    Curve("strong, wide scatter", True, ((1, 100, 0), (2, 53, 51.5), (4, 31, 28), (8, 23, 17)), 0.4, None, False),
    Curve("strong, only two points", True, ((1, 60, 0), (2, 41, 31)), 0.01, "communication", False),
    Curve("weak, large loss, few steps", False, ((1, 10, 0), (2, 12, 10.1), (4, 14, 10.2)), 0.6, None, None, FEW_STEPS),
    Curve("weak, small loss, hardly any scatter", False, ((1, 10, 0), (2, 10.2, 10), (4, 10.32, 10.01)), 0.001, "communication",
          None),
    Curve("strong, ten points more, wide scatter", True, ((1, 100, 0), (2, 52.5, 51.2), (4, 32.5, 28.7), (8, 25.6, 19)), 0.4,
          None, False),
    Curve("strong, one point more, hardly any scatter", True, ((1, 100, 0), (2, 55, 54.9), (4, 32.9, 32.7), (8, 22.13, 22)),
          0.001, "slower computing", True),
)  # fmt: skip


def judge(part: Part) -> None:
    """Judge the efficiency of every curve, then the named bottlenecks, then the growth."""
    diagnose = part.function("diagnose")
    answers = []
    for curve in CURVES:
        answer = part.call(diagnose, make_curve(curve), case=curve.name)
        listed = sorted(map(str, answer)) if isinstance(answer, Mapping) else answer
        part.compare([Case(f"the names in what it returns for {curve.name}", listed, NAMES)])
        answers.append((curve, answer))
    part.compare([_case_of_efficiency(*answer) for answer in answers], tolerance=0.002)
    for curve, answer in answers:
        losses = answer["losses_ms"]
        listed = sorted(map(str, losses)) if isinstance(losses, Mapping) else losses
        part.compare([Case(f"the names in losses_ms of {curve.name}", listed, CAUSES)])
    part.compare([case for answer in answers for case in _cases_of_losses(*answer)], tolerance=0.02)
    for find_way, key in ((_find_wrong_name, "bottleneck"), (_find_wrong_growth, "overhead_grows")):
        for curve, answer in answers:
            right = curve.bottleneck if key == "bottleneck" else curve.grows
            if answer[key] is not right and answer[key] != right:
                if way := find_way(curve, answer[key], answers):
                    raise part.wrong(way, curve.name, **_describe(curve, answer[key]))
                part.compare([Case(f"{key} of {curve.name}", repr(answer[key]), repr(right))])
    part.note(f"right for {len(CURVES)} curves; {sum(curve.bottleneck is None for curve in CURVES)} of them show no bottleneck")


def make_curve(curve: Curve) -> list[dict[str, Any]]:
    """Return the points as `diagnose` gets them. The median of each list is the typical time. In each list of several workers
    one step is slow by accident."""
    return [
        {"workers": n, "samples": 64 if curve.strong else 64 * n, "step_s": _scatter(curve, step, slow=n > 1),
         "silent_s": _scatter(curve, silent, slow=True) if n > 1 else []}
        for n, step, silent in curve.points
    ]  # fmt: skip


def _scatter(curve: Curve, milliseconds: float, *, slow: bool) -> list[float]:
    """Return times around the typical one in a fixed order that looks random."""
    half = curve.steps // 2
    places = [(8 * number) % curve.steps - half for number in range(curve.steps)]
    factors = [1 + curve.scatter * place / half for place in places]
    if slow:
        factors[places.index(half)] = 6.0
    return [milliseconds * factor / 1e3 for factor in factors]


def _case_of_efficiency(curve: Curve, answer: Mapping[str, Any]) -> Case:
    points = make_curve(curve)
    one, step, n = points[0]["step_s"], points[-1]["step_s"], points[-1]["workers"]
    share = 1 / n if curve.strong else 1.0
    right = 100 * share * median(one) / median(step)
    ways = {
        "weak-as-strong": right / n if not curve.strong else right,
        "strong-as-weak": right * n if curve.strong else right,
        "means": 100 * share * fmean(one) / fmean(step),
        "as-a-share": right / 100,
    }
    return Case(f"efficiency of {curve.name}", answer["efficiency"], right, ways, {"workers": n})


def _cases_of_losses(curve: Curve, answer: Mapping[str, Any]) -> list[Case]:
    """Return a case for each cause. The times are in seconds and the losses in milliseconds."""
    n, step, silent = curve.points[-1]
    one = curve.points[0][1]
    communication, computing = _losses(curve)
    whole = silent - one
    ways = {"communication": {"swapped": computing, "in-seconds": communication / 1e3, "means": _mean_loss(curve)},
            "slower computing": {"swapped": communication, "whole-step": whole, "in-seconds": computing / 1e3}}  # fmt: skip
    rights = dict(zip(CAUSES, (communication, computing), strict=True))
    return [
        Case(f"{cause} of {curve.name}: {step:g} ms, without AllReduce {silent:g} ms, one worker {one:g} ms",
             answer["losses_ms"][cause], right, ways[cause], {"workers": n, "given": answer["losses_ms"][cause]})
        for cause, right in rights.items()
    ]  # fmt: skip


def _mean_loss(curve: Curve) -> float:
    """Return the milliseconds that a step loses to communication if the mean steps are compared."""
    point = make_curve(curve)[-1]
    return 1e3 * (fmean(point["step_s"]) - fmean(point["silent_s"]))


def _losses(curve: Curve) -> tuple[float, float]:
    """Return the milliseconds that a step with the most workers loses to communication and to slower computing."""
    n, step, silent = curve.points[-1]
    return step - silent, silent - curve.points[0][1] / (n if curve.strong else 1)


def _find_wrong_name(curve: Curve, name: object, answers: list[tuple[Curve, Mapping[str, Any]]]) -> str | None:
    if name is None:
        return "never-named" if all(answer["bottleneck"] is None for _, answer in answers) else "too-careful"
    if name not in CAUSES:
        return None
    if curve.bottleneck is not None:
        return "smaller-named"
    communication, computing = _losses(curve)
    return "close-named" if min(communication, computing) > curve.points[-1][1] * curve.scatter else "noise-named"


def _find_wrong_growth(curve: Curve, grows: object, _answers: object) -> str | None:
    if grows is False and curve.grows:
        return "never-grows"
    if grows is True and curve.strong and len(curve.points) > 2:
        return "grows-by-noise" if curve.scatter > 0.02 else "falling-efficiency"
    return None


def _describe(curve: Curve, answer: object) -> dict[str, Any]:
    """Return the figures that the texts of the mistakes mention."""
    communication, computing = _losses(curve)
    serial = [(step / curve.points[0][1] - 1 / n) / (1 - 1 / n) for n, step, _ in curve.points[1:]]
    return {
        "workers": curve.points[-1][0], "given": answer, "communication": communication, "computing": computing,
        "right": curve.bottleneck, "lead": abs(communication - computing), "half": curve.scatter * curve.points[-1][1],
        "loss": max(communication, computing), "scatter": 2 * curve.scatter * curve.points[-1][1], "serial": serial[-1],
        "percent": 100 * curve.scatter, "first": serial[0], "last": serial[-1], "difference": serial[-1] - serial[0],
    }  # fmt: skip
