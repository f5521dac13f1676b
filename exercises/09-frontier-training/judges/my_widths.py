"""Judge my_widths.py of 9.7 under Adam: by the size of each product at the start, and by how much one step changes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpucourse.judge import Part, Verdict, Way

TRIALS = (
    ("hidden", (64, 64), (64, 64)),
    ("embedding", (50, 64), (50, 64)),
    ("head", (64, 50), (64, 50)),
    ("embedding", (50, 512), (50, 64)),
    ("hidden", (128, 512), (32, 128)),
    ("hidden", (512, 128), (128, 32)),
    ("head", (512, 50), (64, 50)),
)
WAYS = {
    "nothing-changes": Way(
        "these are the standard settings, even for a width that is {wider:g} times as large: the scores then change more in "
        "each step, and the best learning rate falls",
        ("ratio = base_shape[0] / shape[0]", "ratio = 1.0\n    base_shape = shape"),
    ),
    "rate-everywhere": Way(
        "the embedding's rate falls with the width. It must not: each token uses one row, so no sum becomes longer",
        ("    return 1.0, 1.0, 1.0", "    return 1.0, base_shape[1] / shape[1], 1.0"),
    ),
    "output-forgotten": Way(
        "the scores grow with the width: each is a sum of {wider:g} times as many products, and after the first steps all "
        "products have the same sign. Multiply the output of the head by base / width",
        ("return base_shape[0] ** -0.5, 1.0, ratio", "return base_shape[0] ** -0.5, 1.0, 1.0"),
    ),
    "init-only": Way(
        "the rate of a hidden matrix with {inputs} inputs is as large as with {base}. Adam's step has the same size for every "
        "number, and {inputs} of these steps are added up: divide the rate by {wider:g}",
        ("return shape[0] ** -0.5, ratio, 1.0", "return shape[0] ** -0.5, 1.0, 1.0"),
    ),
    "square-root": Way(
        "you divide the rate of hidden matrices by the root of the ratio. The steps of Adam do not average out: they "
        "all follow the direction of the gradient, so their sum grows with the ratio itself",
        ("return shape[0] ** -0.5, ratio, 1.0", "return shape[0] ** -0.5, ratio**0.5, 1.0"),
    ),
    "init-too-small": Way(
        "a hidden matrix with {inputs} inputs begins with products of the size {size:.2g} instead of 1: the first values are "
        "random and do average out, so their standard deviation is 1 / sqrt(inputs)",
        ("return shape[0] ** -0.5, ratio, 1.0", "return shape[0] ** -0.5 * ratio, ratio, 1.0"),
    ),
    "by-the-outputs": Way(
        "for {inputs} inputs and {outputs} outputs you took the outputs. An output of a matrix is a sum over its inputs",
        ("return shape[0] ** -0.5, ratio, 1.0", "return shape[1] ** -0.5, ratio, 1.0"),
    ),
    "head-rate-twice": Way(
        "the head's output falls with the width, and its rate as well. One of them is enough: Adam's step, times the output, "
        "must fall by the ratio once",
        ("return base_shape[0] ** -0.5, 1.0, ratio", "return base_shape[0] ** -0.5, ratio, ratio"),
    ),
}


def judge(part: Part) -> None:
    """Judge seven matrices. Times and rate are judged as a product, because only the product has an effect."""
    settings = part.function("settings")
    for kind, shape, base in TRIALS:
        case = f"{kind} {shape[0]} x {shape[1]}, in the narrow model {base[0]} x {base[1]}"
        answer = _ask(part, settings, kind, shape, base, case)
        right = _find_effect(kind, shape, base)
        if not _near(answer, right):
            _explain(part, kind, shape, base, answer, right, case)
    part.note("the first size of each product, and how far a step moves it, for seven matrices")


def _ask(part: Part, settings: Callable[..., Any], kind: str, shape: Any, base: Any, case: str) -> tuple[float, float]:
    """Return the size of the initial values with these settings, and of a step. Raises Verdict if the answer is not numeric."""
    values = part.call(settings, kind, shape, base, case=case)
    try:
        deviation, rate, times = (float(value) for value in values)
    except (TypeError, ValueError):
        raise Verdict("failed", "no-numbers", f"it returned {values!r} instead of three numbers", case) from None
    if not (0 < deviation < 1e9 and 0 < rate < 1e9 and 0 < times < 1e9):
        raise Verdict("failed", "no-numbers", f"it returned {values!r}: all three are above 0", case)
    return deviation * times, rate * times


def _find_effect(kind: str, shape: tuple[int, int], base: tuple[int, int]) -> tuple[float, float]:
    """Return the right deviation and the right rate, each multiplied by `times` (Yang et al. 2022, table 8, for Adam)."""
    if kind == "embedding":
        return 1.0, 1.0
    ratio = base[0] / shape[0]
    return (shape[0] ** -0.5 if kind == "hidden" else base[0] ** -0.5 * ratio), ratio


def _near(answer: tuple[float, float], right: tuple[float, float]) -> bool:
    return all(abs(value / its - 1) < 1e-6 for value, its in zip(answer, right, strict=True))


def _explain(
    part: Part, kind: str, shape: Any, base: Any, answer: tuple[float, float], right: tuple[float, float], case: str
) -> None:
    """Raise the verdict on wrong settings. It names the known mistake with the same effect. If there is none, it says by which
    factors the first values and the step are off."""
    ratio, wider = base[0] / shape[0], shape[0] / base[0]
    ways: dict[str, dict[str, tuple[float, float]]] = {
        "embedding": {"rate-everywhere": (1.0, base[1] / shape[1])},
        "hidden": {
            "nothing-changes": (shape[0] ** -0.5, 1.0),
            "square-root": (shape[0] ** -0.5, ratio**0.5),
            "init-too-small": (shape[0] ** -0.5 * ratio, ratio),
            "by-the-outputs": (shape[1] ** -0.5, ratio),
        },
        "head": {
            "output-forgotten": (base[0] ** -0.5, 1.0),
            "head-rate-twice": (right[0], ratio**2),
        },
    }
    values = {"inputs": shape[0], "outputs": shape[1], "base": base[0], "wider": wider, "size": answer[0] * shape[0] ** 0.5}
    for way, effect in ways[kind].items():
        if _near(answer, effect):
            if way == "nothing-changes":  # do the other kinds change?
                head = _ask(part, part.function("settings"), "head", (512, 50), (64, 50), case)
                raise part.wrong("nothing-changes" if _near(head, (512**-0.5, 1.0)) else "init-only", case, **values)
            raise part.wrong(way, case, **values)
    size, rate = (value / its for value, its in zip(answer, right, strict=True))
    text = f"the first values, times the output factor, are {size:.3g} times as large as they should be, and a step "
    text += f"{rate:.3g} times"
    raise Verdict("failed", "other", text, case)
