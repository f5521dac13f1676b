"""Judges my_zero.py of 6.2: the bytes of weights, gradients and optimizer state at each stage, and the numbers sent."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any

from gpucourse.judge import Case, Part, Verdict, Way

PAPER = (7_500_000_000, 64, 2, 2, 12)  # 120, 31.4, 16.6 and 1.9 GB
INPUTS = (PAPER, (110_400, 4, 4, 4, 8), (1001, 3, 4, 2, 12), (50, 2, 4, 4, 8), (7, 1, 2, 2, 12))
WAYS = {
    "gradients-whole": Way(
        "at stage 2 you hold all gradients: {given} bytes. Stage 2 divides the gradients: once they are summed, each rank "
        "needs only those of the weights that it updates",
        ("gradient * (share if stage >= 2", "gradient * (share if stage >= 3"),
    ),
    "gradients-too-early": Way(
        "at stage 1 you divide the gradients. Stage 1 divides only the optimizer's state, stage 2 the gradients as well",
        ("gradient * (share if stage >= 2", "gradient * (share if stage >= 1"),
    ),
    "weights-too-early": Way(
        "at stage 2 you divide the weights. They stay whole there, for forward and backward; only stage 3 divides them",
        ("weight * (share if stage >= 3", "weight * (share if stage >= 2"),
    ),
    "others-only": Way(
        "you divide by the other {others} ranks: with {ranks} ranks each holds 1/{ranks}, this one included",
        ("share = parameters / ranks", "share = parameters / max(1, ranks - 1)"),
    ),
    "optimizer-whole": Way(
        "at stage 1 you hold the whole optimizer state: stage 1 divides it",
        ("optimizer * (share if stage >= 1", "optimizer * (share if stage >= 2"),
    ),
    "ddp-divided": Way(
        "stage 0 divides nothing: in DDP every rank holds all weights, all gradients and the whole optimizer state",
        ("optimizer * (share if stage >= 1", "optimizer * (share if stage >= 0"),
    ),
    "one-number": Way(
        "you returned one number, {given}, instead of three: the bytes of weights, of gradients and of optimizer state",
        ("return weights, gradients, state", "return weights + gradients + state"),
    ),
    "whole-bytes": Way(
        "{given} is rounded: {right} is right. The padding that makes shares whole is not in the formula",
        ("share = parameters / ranks", "share = -(-parameters // ranks)"),
    ),
    "rounded-down": Way(
        "{given} is rounded down: {right} is right. Divide with /, as // drops the remainder",
        ("share = parameters / ranks", "share = parameters // ranks"),
    ),
    "no-ring": Way(
        "traffic: a rank keeps one of {ranks} shares to itself, and sends (n - 1) / n of the numbers in each all-gather or "
        "reduce-scatter, not all of them. One rank alone sends nothing",
        ("(ranks - 1) / ranks * parameters", "parameters"),
    ),
    "all-ranks-together": Way(
        "traffic: that is what all {ranks} ranks send together. Return what one of them sends",
        ("(ranks - 1) / ranks * parameters", "(ranks - 1) * parameters"),
    ),
    "all-reduce-once": Way(
        "traffic: you count one collective at stages 0 to 2. An all-reduce is a reduce-scatter and an all-gather; and where "
        "gradients are reduce-scattered, the new weights are all-gathered",
        ("3 if stage == 3 else 2", "2 if stage == 3 else 1"),
    ),
    "weights-once": Way(
        "traffic: at stage 3 weights are freed after forward, and gathered again for backward: two all-gathers and a "
        "reduce-scatter",
        ("3 if stage == 3 else 2", "2"),
    ),
    "torch-stage-1": Way(
        "traffic: that is what ZeroRedundancyOptimizer sends at stage 1, an all-reduce of the gradients and a broadcast of the "
        "weights. The paper's stage 1 needs only this rank's share of the sums: a reduce-scatter, then an all-gather",
        ("3 if stage == 3 else 2", "3 if stage in (1, 3) else 2"),
    ),
    "less-at-2": Way(
        "traffic: at stage 2 you send less than at stage 0. It reduce-scatters gradients and all-gathers the new weights: two "
        "collectives, as many numbers as an all-reduce",
        ("3 if stage == 3 else 2", "{2: 1, 3: 3}.get(stage, 2)"),
    ),
    "in-bytes": Way(
        "traffic: you return bytes, 4 for each number. Return numbers",
        ("return collectives *", "return 4 * collectives *"),
    ),
    "more-and-more": Way(
        "traffic: you count one more collective with each stage. Stages 1 and 2 send what stage 0 sends: they split the "
        "all-reduce, and put the optimizer's step between its halves",
        ("3 if stage == 3 else 2", "2 + stage"),
    ),
}  # fmt: skip


def judge(part: Part) -> None:
    """Judge both formulas at four stages, for the paper's model and for small ones."""
    formula, traffic = part.function("bytes_per_rank"), part.function("traffic")
    part.compare([case for inputs in INPUTS for stage in range(4) for case in _compare_bytes(part, formula, stage, *inputs)])
    part.compare([_compare_traffic(part, traffic, stage, *inputs[:2]) for inputs in INPUTS for stage in range(4)])
    sums = [sum(formula(stage, *PAPER)) / 1e9 for stage in range(4)]
    part.note(f"7.5 billion parameters on 64 ranks: {', '.join(f'{size:.1f}' for size in sums)} GB per rank, as in the paper")
    part.note(f"right for {len(INPUTS)} sizes at four stages, in bytes held and in numbers sent")


def _show(number: object) -> str:
    """Return a number of bytes in words."""
    return f"{number:,.3f}".rstrip("0").rstrip(".") if isinstance(number, (int, float)) else repr(number)


def _divide(stages: tuple[int, int, int], stage: int, parameters: int, ranks: int, sizes: tuple[float, ...]) -> list[float]:
    """Return the bytes of the three kinds. Each kind is divided from its own stage on."""
    return [
        size * parameters / (ranks if stage >= first else 1) for size, first in zip(sizes, stages, strict=True)
    ]  # fmt: skip


def _compare_bytes(
    part: Part, formula: Callable[..., Any], stage: int, parameters: int, ranks: int, *sizes: float
) -> list[Case]:
    name = f"stage {stage}, {parameters:,} parameters, {ranks} rank{'s'[: ranks > 1]}, {' + '.join(map(str, sizes))} bytes"
    answer = part.call(formula, stage, parameters, ranks, *sizes, case=name)
    if isinstance(answer, Real):
        raise part.wrong("one-number", name, given=_show(float(answer)))
    if not isinstance(answer, (tuple, list)) or len(answer) != 3:
        if answer is None:
            raise Verdict("failed", "no-answer", "bytes_per_rank returned None: is the return missing?", name)
        raise Verdict("failed", "shape", f"bytes_per_rank returned {answer!r}, not three numbers", name)
    answer = [float(number) if isinstance(number, Real) else number for number in answer]
    right = _divide((3, 2, 1), stage, parameters, ranks, sizes)
    ways = {
        "gradients-whole": _divide((3, 3, 1), stage, parameters, ranks, sizes),
        "gradients-too-early": _divide((3, 1, 1), stage, parameters, ranks, sizes),
        "weights-too-early": _divide((2, 2, 1), stage, parameters, ranks, sizes),
        "optimizer-whole": _divide((3, 2, 2), stage, parameters, ranks, sizes),
        "ddp-divided": _divide((3, 2, 0), stage, parameters, ranks, sizes),
        "others-only": _divide((3, 2, 1), stage, parameters, max(1, ranks - 1), sizes),
        "whole-bytes": [
            size * (-(-parameters // ranks) if stage >= first else parameters)
            for size, first in zip(sizes, (3, 2, 1), strict=True)
        ],
        "rounded-down": [
            size * (parameters // ranks if stage >= first else parameters) for size, first in zip(sizes, (3, 2, 1), strict=True)
        ],
    }
    kinds = ("weights", "gradients", "optimizer state")
    return [
        Case(f"{kind} of {name}", answer[place], right[place], {way: numbers[place] for way, numbers in ways.items()},
             {"ranks": ranks, "others": ranks - 1, "given": _show(answer[place]), "right": _show(right[place])})
        for place, kind in enumerate(kinds)
    ]  # fmt: skip


def _compare_traffic(part: Part, traffic: Callable[..., Any], stage: int, parameters: int, ranks: int) -> Case:
    name = f"numbers sent at stage {stage}, {parameters:,} parameters, {ranks} rank{'s'[: ranks > 1]}"
    traffic_answer = part.call(traffic, stage, parameters, ranks, case=name)
    traffic_answer = float(traffic_answer) if isinstance(traffic_answer, Real) else traffic_answer
    share = (ranks - 1) / ranks * parameters
    collectives = 3 if stage == 3 else 2
    ways = {
        "no-ring": collectives * parameters,
        "all-ranks-together": collectives * share * ranks,
        "all-reduce-once": (collectives - 1) * share,
        "weights-once": 2 * share,
        "torch-stage-1": (3 if stage in {1, 3} else 2) * share,
        "less-at-2": {2: 1, 3: 3}.get(stage, 2) * share,
        "in-bytes": 4 * collectives * share,
        "more-and-more": (2 + stage) * share,
    }
    return Case(name, traffic_answer, collectives * share, ways, {"ranks": ranks})
