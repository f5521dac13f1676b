"""Judge my_softmax.py of 5.10: it counts the blocks in memory, and tries scores that rise, fall and overflow."""

from __future__ import annotations

import weakref
from collections.abc import Iterator

import torch
from kernels import TensorCase, compare

from gpucourse.judge import Part, Way

M, D, E, SCALE, TOLERANCE = 3, 8, 5, 0.35, 1e-4
MAX_BLOCKS = 2  # the latest one, and the next while it is created
WAYS = {
    "out-not-rescaled": Way(
        "the weighted values so far belong to the old highest score: when that rises from a to b, multiply all of them by "
        "exp(a - b), and the sum as well",
        ("out = out * shrink + weights", "out = out + weights"),
    ),
    "sum-not-rescaled": Way(
        "the values are rescaled when the highest score rises, but the sum of the weights is not: rescale both",
        ("total = total * shrink +", "total = total +"),
    ),
    "nothing-rescaled": Way(
        "each block is weighted by its own highest score, and the blocks are never rescaled to the same one: a block of small "
        "scores counts as much as one of large scores",
        ("shrink = torch.exp(highest - new)", "shrink = 1.0"),
    ),
    "max-not-carried": Way(
        "the highest score is only that of the last block: after a block with a score of {peak:.0f} the factor "
        "exp(old - new) is infinite. Keep the highest of all blocks so far",
        ("torch.maximum(highest, scores.amax(1, keepdim=True))", "scores.amax(1, keepdim=True)"),
    ),
    "one-max": Way(
        "one highest score is subtracted from the scores of all queries, but each has its own: if a query's scores are "
        "{apart:.0f} below it, all its weights are 0 in float32, and 0 / 0 is NaN. Take the highest along axis 1",
        ("torch.maximum(highest, scores.amax(1, keepdim=True))", "torch.maximum(highest, scores.max())"),
    ),
    "no-max": Way(
        "exp({peak:.0f}) is infinite in float32, and infinity over infinity is NaN: subtract the highest score first",
        (
            "        weights = torch.exp(scores - new)\n        shrink = torch.exp(highest - new)\n",
            "        weights = torch.exp(scores)\n        shrink = 1.0\n",
        ),
    ),
    "starts-at-zero": Way(
        "the highest score begins at 0, which counts as a score: if all scores are near -150, every weight is exp(-150), "
        "which is 0 in float32. Begin with -inf",
        ('queries.new_full((len(queries), 1), float("-inf"))', "queries.new_zeros((len(queries), 1))"),
    ),
    "scale-missing": Way("the scores are not multiplied by scale", (" * scale", "")),
    "not-divided": Way("the result is not divided by the sum of the weights", ("return out / total", "return out")),
    "keeps-blocks": Way(
        "{blocks} blocks are held at the same time: with all of them any softmax works, but a kernel has only one at a time",
        ("for keys, values in blocks:", "for keys, values in list(blocks):"),
    ),
}


class Blocks:
    """Pairs of keys and values, each created on demand. The scores of the first query are `apart` higher than those of the
    second.

    `held` is the largest number of pairs that existed at the same time.
    """

    def __init__(self, sizes: tuple[int, ...], levels: tuple[float, ...], seed: int, apart: float = 0.0) -> None:
        self.sizes, self.levels, self.seed, self.apart, self.held = sizes, levels, seed, apart, 0
        torch.manual_seed(seed)
        self.queries = torch.randn(M, D)
        inverse = torch.linalg.pinv(self.queries)
        self.direction = inverse @ torch.ones(M, 1)  # a key along it raises the scores of all queries
        self.parting = inverse @ torch.tensor(
            [[0.5], [-0.5], [0.0]]
        )  # a key along it raises the scores of the first query, and lowers those of the second

    @property
    def highest(self) -> str:
        """Return the name of the block with the highest score."""
        if len(set(self.levels)) == 1:
            return "in any block"
        return "in the first block" if self.levels[0] == max(self.levels) else "in the last block"

    def make(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yield the same blocks at each call. All scores of a block are raised by its number in `levels`."""
        generator = torch.Generator().manual_seed(self.seed)
        living: list[tuple[weakref.ref[torch.Tensor], ...]] = []
        for size, level in zip(self.sizes, self.levels, strict=True):
            keys = torch.randn(size, D, generator=generator) + level / SCALE * self.direction.T
            keys += self.apart / SCALE * self.parting.T
            values = torch.randn(size, E, generator=generator)
            living.append((weakref.ref(keys), weakref.ref(values)))
            self.held = max(self.held, sum(any(item() is not None for item in pair) for pair in living))
            yield keys, values
            del keys, values


CASES = {
    "three blocks": Blocks((5, 3, 7), (0, 0, 0), 1),
    "one block": Blocks((4,), (0,), 2),
    "scores that rise": Blocks((4, 6, 1, 5), (-4, 0, 3, 8), 3),
    "scores that fall": Blocks((4, 6, 5), (6, 0, -3), 4),
    "a peak of 150 in the first block": Blocks((3, 4, 4), (150, 0, 0), 5),
    "scores of 150 everywhere": Blocks((4, 5), (150, 150), 6),
    "scores of -150 everywhere": Blocks((4, 5), (-150, -150), 7),
    "a peak of 150 in the last block": Blocks((3, 4, 4), (0, 0, 150), 8),
    "two queries whose scores are 300 apart": Blocks((4,), (0,), 9, apart=300),
}


def judge(part: Part) -> None:
    """Compare every case with a softmax in float64."""
    torch.set_num_threads(1)
    function = part.function("attend")
    cases, held_blocks = [], 0
    for name, blocks in CASES.items():
        answer = part.call(function, blocks.queries, blocks.make(), SCALE, case=name)
        held_blocks = max(held_blocks, blocks.held)
        right = attend_wrong(blocks, "", torch.float64).float()
        ways = [(way, attend_wrong(blocks, way, torch.float32)) for way in WAYS if way != "keeps-blocks"]
        knobs = {"blocks": len(blocks.sizes), "the highest score": blocks.highest, "queries apart by": blocks.apart}
        cases.append(TensorCase(name, answer, right, ways, {"peak": max(blocks.levels), "apart": blocks.apart}, knobs))
    cases.sort(key=lambda case: (not case.values["apart"], -float(str(case.values["peak"]))))  # for messages that name them
    compare(part, cases, TOLERANCE)
    if held_blocks > MAX_BLOCKS:
        raise part.wrong("keeps-blocks", blocks=held_blocks)
    part.note(f"right in {len(cases)} cases, with scores up to 150 or 300 apart, and never more than one block kept")


def attend_wrong(blocks: Blocks, way: str, dtype: torch.dtype) -> torch.Tensor:
    """Return the result of an online softmax with the error `way`. If `way` is empty, there is no error."""
    scale = 1.0 if way == "scale-missing" else SCALE
    highest = torch.full((M, 1), 0.0 if way == "starts-at-zero" else float("-inf"), dtype=dtype)
    total, out = torch.zeros(M, 1, dtype=dtype), torch.zeros(M, E, dtype=dtype)
    for keys, values in blocks.make():
        scores = blocks.queries.to(dtype) @ keys.to(dtype).T * scale
        peak = scores.amax() if way == "one-max" else scores.amax(1, keepdim=True)
        new = peak if way == "max-not-carried" else torch.maximum(highest, peak)
        weights = torch.exp(scores if way == "no-max" else scores - new)
        shrink = torch.ones_like(new) if way in {"nothing-rescaled", "no-max"} else torch.exp(highest - new)
        total = total * (1.0 if way == "sum-not-rescaled" else shrink) + weights.sum(1, keepdim=True)
        out = out * (1.0 if way == "out-not-rescaled" else shrink) + weights @ values.to(dtype)
        highest = new
    return out if way == "not-divided" else out / total
