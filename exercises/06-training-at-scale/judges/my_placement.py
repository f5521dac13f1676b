"""Judge my_placement.py of 6.1: placements of checkpoints that fit, with as few operations as the best one."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from gpucourse.judge import Case, Part, Verdict, Way

Blocks = Sequence[tuple[int, int, int]]
SMALL, MANY = 7, 40
WAYS = {
    "only-after-forward": Way(
        "after forward your placement fits, but in backward a recomputed block is whole again, in addition to what the blocks "
        "before it have kept: {given}",
        ("if item[0] + all_bytes <= limit]", "if item[0] + few_bytes <= limit]"),
    ),
    "whole-largest": Way(
        "you leave room for the largest block in addition to all that forward kept: {given}. When a block is whole, only the "
        "blocks before it still have activations: those after it have ended their backward",
        ("    return list(min(", "    sums = [item for item in sums if item[0] + max(kept) <= limit]\n    return list(min("),
    ),
    "nothing-left": Way(
        "a recomputed block still keeps `left` bytes: its input or output has to wait for backward. You count none: {given}",
        ("(held + few_bytes, cost + count", "(held, cost + count"),
    ),
    "every-block": Way(
        "you recompute every block: {given}. Some of them may keep their activations",
        ("longer = [(held + all_bytes, cost, chosen) for held, cost, chosen in fitting]", "longer = []"),
    ),
    "largest-first": Way(
        "you recompute the blocks with the most activations first: {given}. They may be the most expensive ones, and the "
        "position of a block decides at which moments recomputing it saves memory",
        (
            "    sums: list",
            "    by_size = sorted(range(len(kept)), key=lambda number: left[number] - kept[number])\n"
            "    for count in range(len(kept) + 1):\n"
            "        sizes = [left[n] if n in by_size[:count] else kept[n] for n in range(len(kept))]\n"
            "        if all(sum(sizes[:n]) + kept[n] <= limit for n in range(len(kept))):\n"
            "            return by_size[:count]\n"
            "    return None\n    sums: list",
        ),
    ),
    "cheapest-first": Way(
        "you recompute the blocks that save the most bytes for an operation first: {given}. The last one that you take may be "
        "much larger than what was still missing",
        (
            "    sums: list",
            "    by_price = sorted(range(len(kept)), key=lambda number: (left[number] - kept[number]) / operations[number])\n"
            "    for count in range(len(kept) + 1):\n"
            "        sizes = [left[n] if n in by_price[:count] else kept[n] for n in range(len(kept))]\n"
            "        if all(sum(sizes[:n]) + kept[n] <= limit for n in range(len(kept))):\n"
            "            return by_price[:count]\n"
            "    return None\n    sums: list",
        ),
    ),
}  # fmt: skip


def judge(part: Part) -> None:
    """Judge placements of few and of many blocks against the cheapest, which dynamic programming finds."""
    place, cases = part.function("place"), []
    for number, (blocks, limit) in enumerate(_draw_cases()):
        name = f"case {number}: blocks {_show(blocks)}, limit {limit}"
        columns = [list(column) for column in zip(*blocks, strict=True)]
        answer = part.call(place, *columns, limit, case=name)
        right = _find_best(blocks, limit)
        if answer is not None and (not isinstance(answer, (list, tuple, set)) or not set(answer) <= set(range(len(blocks)))):
            raise Verdict("failed", "shape", f"place returned {answer!r}, not numbers of blocks", name)
        ways = {way: _describe(blocks, limit, wrong(blocks, limit)) for way, wrong in _WRONG.items()}
        result = _describe(blocks, limit, answer)
        cases.append(Case(name, result, _describe(blocks, limit, right), ways, {"given": result}, {"blocks": len(blocks)}))
    part.compare(cases)
    part.note(f"the fewest operations in {len(cases)} cases of up to {MANY} unequal blocks")


def _draw_cases() -> Iterator[tuple[Blocks, int]]:
    source = random.Random(6)
    for count in (1, 2, 3, SMALL, SMALL, SMALL, SMALL, SMALL, MANY):
        blocks = [(kept := source.randrange(20, 100), source.randrange(2, 1 + kept // 4), source.randrange(5, 60))
                  for _ in range(count)]  # fmt: skip
        lowest, highest = _find_peak(blocks, range(count)), _find_peak(blocks, ())
        for share in (0.0, 0.3, 0.6, 1.0) if count < MANY else (0.4,):
            yield blocks, lowest + round(share * (highest - lowest))
        yield blocks, lowest - 1


def _show(blocks: Blocks) -> str:
    return (
        "; ".join(f"{kept} or {left} for {count}" for kept, left, count in blocks) if len(blocks) <= SMALL else f"{len(blocks)}"
    )


def _find_peak(blocks: Blocks, chosen: Sequence[int]) -> int:
    """Return the largest number of bytes that are held when the backward of a block begins."""
    held, peak = 0, 0
    for number, (kept, left, _) in enumerate(blocks):
        peak = max(peak, held + kept)
        held += left if number in chosen else kept
    return peak


def _describe(blocks: Blocks, limit: int, chosen: Sequence[int] | None) -> str:
    if chosen is None:
        return "nothing fits"
    over = _find_peak(blocks, tuple(chosen)) - limit
    return f"{over} bytes too many" if over > 0 else f"{sum(blocks[number][2] for number in set(chosen))} operations"


def _find_best(blocks: Blocks, limit: int, moment: Callable[[int, int], int] = max, reserve: int = 0) -> Sequence[int] | None:
    """Return the cheapest placement. `moment(kept, left)` is what a block holds when its backward begins. `reserve` is what has
    to be free after the forward of all blocks.
    """
    best: dict[int, tuple[int, tuple[int, ...]]] = {0: (0, ())}
    for number, (kept, left, count) in enumerate(blocks):
        following: dict[int, tuple[int, tuple[int, ...]]] = {}
        for held, (cost, chosen) in best.items():
            if held + moment(kept, left) <= limit:
                for size, item in ((held + kept, (cost, chosen)), (held + left, (cost + count, (*chosen, number)))):
                    following[size] = min(following.get(size, item), item)
        best = following
    return min((item for held, item in best.items() if not reserve or held + reserve <= limit), default=(0, None))[1]


def _take_in_order(blocks: Blocks, limit: int, order: Callable[[int], float]) -> Sequence[int] | None:
    numbers = sorted(range(len(blocks)), key=order)
    fitting = (numbers[:count] for count in range(len(blocks) + 1) if _find_peak(blocks, numbers[:count]) <= limit)
    return next(fitting, None)


_WRONG: dict[str, Callable[[Blocks, int], Sequence[int] | None]] = {
    "only-after-forward": lambda blocks, limit: _find_best(blocks, limit, min),
    "whole-largest": lambda blocks, limit: _find_best(blocks, limit, reserve=max(kept for kept, _, _ in blocks)),
    "every-block": lambda blocks, limit: range(len(blocks)) if _find_peak(blocks, range(len(blocks))) <= limit else None,
    "nothing-left": lambda blocks, limit: _find_best([(kept, 0, count) for kept, _, count in blocks], limit),
    "largest-first": lambda blocks, limit: _take_in_order(blocks, limit, lambda n: blocks[n][1] - blocks[n][0]),
    "cheapest-first": lambda blocks, limit: _take_in_order(
        blocks, limit, lambda n: (blocks[n][1] - blocks[n][0]) / blocks[n][2]
    ),
}
