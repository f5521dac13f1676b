"""Judge my_attention.py of 5.10 in Triton's interpreter: full and causal, whole and ragged blocks, and loaded tiles."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from kernels import Products, TensorCase, WatchedKernel, compare, is_close

from gpucourse.judge import Part, Verdict, Way

HEADS, D, TOLERANCE, HALF_TOLERANCE = 2, 16, 1e-4, 1e-3
WAYS = {
    "out-not-rescaled": Way(
        "`out` keeps the weights of the old highest score: when a tile raises it from a to b, multiply `out` by "
        "exp(a - b)",
        ("out = out * shrink[:, None] + tl.dot", "out = out + tl.dot"),
    ),
    "sum-not-rescaled": Way(
        "`out` is rescaled when the highest score rises, but the sum of the weights is not",
        ("total = total * shrink +", "total = total +"),
    ),
    "max-not-carried": Way(
        "the highest score is only that of the last tile: after a tile with a score of {peak:.0f} the factor "
        "exp(old - new) is infinite. Keep the highest of all tiles",
        ("tl.maximum(highest, tl.max(scores, axis=1))", "tl.max(scores, axis=1)"),
    ),
    "one-max": Way(
        "one highest score is subtracted in all rows, but each query has its own: if the scores of a query are {apart:.0f} "
        "below it, all its weights are 0 in float32, and 0 / 0 is NaN. Take the highest along axis 1",
        ("tl.maximum(highest, tl.max(scores, axis=1))", "tl.maximum(highest, tl.max(scores))"),
    ),
    "no-max": Way(
        "exp({peak:.0f}) is infinite in float32: subtract the highest score of the row before exp",
        (
            "weights = tl.exp(scores - new[:, None])\n        shrink = tl.exp(highest - new)",
            "weights = tl.exp(scores)\n        shrink = tl.exp(total * 0)",
        ),
    ),
    "scale-missing": Way(
        "the scores are not multiplied by scale", (' input_precision="ieee") * scale', ' input_precision="ieee")')
    ),
    "not-divided": Way(
        "`out` is not divided by the sum of the weights before it is stored", ("out = out / total[:, None]", "out = out")
    ),
    "not-causal": Way(
        "with CAUSAL every query still sees all keys that were loaded: query i sees the keys 0 to i",
        ("visible = visible & (keys[None, :] <= queries[:, None])", "visible = visible"),
    ),
    "causal-after-softmax": Way(
        "keys after the query are removed from `out`, but their weights stay in the sum: hide their scores (-inf) before you "
        "compute the highest and the sum",
        (
            "            visible = visible & (keys[None, :] <= queries[:, None])\n"
            '        scores = tl.where(visible, scores, float("-inf"))\n'
            "        new = tl.maximum(highest, tl.max(scores, axis=1))\n        weights = tl.exp(scores - new[:, None])\n"
            "        shrink = tl.exp(highest - new)\n        total = total * shrink + tl.sum(weights, axis=1)\n",
            '            v = v\n        scores = tl.where(visible, scores, float("-inf"))\n'
            "        new = tl.maximum(highest, tl.max(scores, axis=1))\n        weights = tl.exp(scores - new[:, None])\n"
            "        shrink = tl.exp(highest - new)\n        total = total * shrink + tl.sum(weights, axis=1)\n"
            "        if CAUSAL:\n            weights = tl.where(keys[None, :] <= queries[:, None], weights, 0.0)\n",
        ),
    ),
    "masked-as-zero": Way(
        "hidden scores are set to 0, but exp(0 - highest) is not 0: scores that must not count have to be -inf",
        ('tl.where(visible, scores, float("-inf"))', "tl.where(visible, scores, 0.0)"),
    ),
    "outside-counted": Way(
        "with {length} keys in tiles of {block_k}, the last tile has {outside} lanes without a key. They load 0, their score "
        "is 0, and the sum of the weights includes them. Hide them, too",
        ("visible = keys[None, :] < length", "visible = keys[None, :] >= 0"),
    ),
    "last-tile-missing": Way(
        "with {length} keys in tiles of {block_k}, the last tile is not whole, and it is left out: the loop has to go "
        "to the last key",
        ("for first in range(0, end, BLOCK_K)", "for first in range(0, end - BLOCK_K + 1, BLOCK_K)"),
    ),
    "not-itself": Way(
        "with CAUSAL a query does not see its own key: it sees the keys 0 to i, so query 0 sees one key",
        ("keys[None, :] <= queries[:, None]", "keys[None, :] < queries[:, None]"),
    ),
    "tiles-not-skipped": Way(
        "right, but with CAUSAL it loads {loaded:,} bytes of k, and only {needed:,} are needed: a tile whose keys all come "
        "after the queries of the program need not be loaded. How far does the loop go?",
        ("if CAUSAL:\n        end =", "if CAUSAL:\n        other ="),
    ),
    "outside": Way(
        "{what}: every load and store needs a mask for the rows after the last",
        ("mask=queries[:, None] < length)\n", "mask=queries[:, None] >= 0)\n"),
    ),
    "scores-in-half": Way(
        "in float16 it is off by {off:.0e}: scores of 30 that are rounded to float16 are off by 0.01, and their weights by "
        "1%. Compute in float32, and convert to float16 only what tl.dot and the store take",
        (' input_precision="ieee") * scale', ' input_precision="ieee").to(v.dtype).to(tl.float32) * scale'),
        seen="in float16 it is off by {off:.0e}, although it is right in float32",
    ),
    "out-in-half": Way(
        "in float16 it is off by {off:.0e}: the weighted values so far are kept in float16, where a small tile that is added "
        "to a large sum is lost. Keep `out` in float32, and convert it only for the store",
        (
            'out = out * shrink[:, None] + tl.dot(weights.to(v.dtype), v, input_precision="ieee")',
            'out = (out * shrink[:, None] + tl.dot(weights.to(v.dtype), v, input_precision="ieee")).to(v.dtype).to(tl.float32)',
        ),
        seen="in float16 it is off by {off:.0e}, although it is right in float32",
    ),
    "tf32": Way(
        'a tl.dot of float32 has no input_precision="ieee": the interpreter computes it exactly, but a GPU of sm_80 or '
        "later rounds its inputs to 10 bits (TF32)",
        ('tl.dot(q, tl.trans(k), input_precision="ieee")', "tl.dot(q, tl.trans(k))"),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """One input: keys (and queries) of each head, the tiles, and two offsets that raise some scores above the others.

    One offset raises the scores of the first key, the other the scores of even queries.
    """

    length: int
    block_q: int
    block_k: int
    causal: bool = False
    peak: float = 0.0
    apart: float = 0.0

    @property
    def name(self) -> str:
        """Describe the input in words."""
        kind = "causal" if self.causal else "full"
        peak = f", a score of {self.peak:.0f} in the first tile" if self.peak else ""
        apart = f", scores of two queries {self.apart:.0f} apart" if self.apart else ""
        return f"{self.length} keys in tiles of {self.block_q} x {self.block_k}, {kind}{peak}{apart}"

    def make(self) -> list[torch.Tensor]:
        """Return q, k and v of all heads."""
        generator = torch.Generator().manual_seed(self.length)
        q, k, v = (torch.randn(HEADS, self.length, D, generator=generator) for _ in range(3))
        if self.peak:
            q[..., 0] = 2.0
            k[:, 0, 0] = self.peak * D**0.5 / 2
        if self.apart:
            q[:, ::2, 0], q[:, 1::2, 0] = 2.0, -2.0
            k[..., 0] = self.apart * D**0.5 / 4
        return [q, k, v]

    def loaded_bytes(self) -> int:
        """Return how many bytes of k the tiles of all programs need."""
        keys = 0
        for first in range(0, self.length, self.block_q):
            end = min(self.length, first + self.block_q) if self.causal else self.length
            keys += min(self.length, -(-end // self.block_k) * self.block_k)
        return keys * HEADS * D * 4


SHAPES = (
    Shape(16, 16, 16), Shape(16, 16, 16, causal=True),
    Shape(32, 16, 16), Shape(32, 16, 16, causal=True), Shape(37, 16, 16), Shape(37, 16, 32, causal=True),
    Shape(48, 32, 16, causal=True), Shape(48, 16, 16, peak=150.0),
    Shape(32, 16, 16, apart=150.0),
)  # fmt: skip
HALF, LONG_HALF = Shape(64, 16, 16), Shape(256, 64, 16)


def judge(part: Part) -> None:
    """Judge the values in float32 and float16, then the tiles that were loaded."""
    call = WatchedKernel(part, "attention", "attend")
    products = Products()
    cases = []
    for shape in SHAPES:
        inputs = shape.make()
        answer = call(shape.name, *inputs, shape.causal, shape.block_q, shape.block_k)
        right = attend_wrong(shape, inputs, "")
        ways = [(way, attend_wrong(shape, inputs, way)) for way in SIMULATED]
        values: dict[str, object] = {
            "length": shape.length, "block_k": shape.block_k, "outside": -shape.length % shape.block_k, "peak": shape.peak,
            "apart": shape.apart,
            "loaded": call.memory.tensors["k_ptr"].loaded_bytes, "needed": shape.loaded_bytes(),
        }  # fmt: skip
        knobs = {"keys": shape.length, "queries of a tile": shape.block_q, "keys of a tile": shape.block_k,
                 "causal": shape.causal, "first score": shape.peak, "queries apart by": shape.apart}  # fmt: skip
        cases.append(TensorCase(shape.name, answer, right, ways, values, knobs))
    compare(part, sort_cases(cases), TOLERANCE)
    if "TF32" in products.precisions:
        raise part.wrong("tf32")
    judge_half(part, call)
    for case in cases:
        if case.values["loaded"] != case.values["needed"]:
            raise part.wrong("tiles-not-skipped", case.name, **case.values)
    part.note(f"right in {len(cases)} cases in float32, and in float16; no tile is loaded unnecessarily")


def sort_cases(cases: list[TensorCase]) -> list[TensorCase]:
    """Return the cases in another order: those that fill in the most messages come first."""
    return sorted(cases, key=lambda case: (not case.values["peak"], not case.values["apart"], not case.values["outside"]))


def judge_half(part: Part, call: WatchedKernel) -> None:
    """Compare float16 with the exact result for the same rounded inputs. Raises Verdict."""
    q, k, v = (tensor.half() for tensor in HALF.make())
    q, v = q * 8, v.clamp(-1, 1)
    answer = call(f"{HALF.name}, float16", q, k, v, False, HALF.block_q, HALF.block_k)
    right = attend_wrong(HALF, [q, k, v], "")
    if not isinstance(answer, torch.Tensor) or answer.dtype != torch.float16:
        raise Verdict("failed", "other", "it should return a tensor of the same type as q, float16", HALF.name)
    if not is_close(answer, right, HALF_TOLERANCE):
        off = float((answer.float() - right).abs().max())
        raise part.wrong("scores-in-half", f"{HALF.name}, float16", output=answer, off=off)
    q, k, v = (tensor.half() for tensor in LONG_HALF.make())
    q, v = q * 0, torch.full_like(v, 0.01)
    v[:, : LONG_HALF.block_k] = 60.0
    answer, right = call(LONG_HALF.name, q, k, v, False, LONG_HALF.block_q, LONG_HALF.block_k), v.double().mean(1, keepdim=True)
    if not is_close(answer, right.expand_as(v).float(), HALF_TOLERANCE):
        off = float((answer.float() - right).abs().max())
        raise part.wrong("out-in-half", f"{LONG_HALF.name}, float16, small values after large ones", output=answer, off=off)


SIMULATED = (
    "masked-as-zero", "outside-counted", "last-tile-missing", "not-causal", "causal-after-softmax", "not-itself",
    "scale-missing", "not-divided", "out-not-rescaled", "sum-not-rescaled", "max-not-carried", "one-max", "no-max",
)  # fmt: skip


def attend_wrong(shape: Shape, inputs: list[torch.Tensor], way: str) -> torch.Tensor:
    """Return the float32 result of a tiled attention with the error `way`.

    If `way` is empty, return the float64 result without an error.
    """
    dtype = torch.float32 if way else torch.float64
    return torch.cat([attend_tiles(shape, [tensor.to(dtype) for tensor in inputs], way, first)
                      for first in range(0, shape.length, shape.block_q)], 1).float()  # fmt: skip


def attend_tiles(shape: Shape, inputs: list[torch.Tensor], way: str, start: int) -> torch.Tensor:
    """Return the results for the queries of one program, which begin at `start`."""
    length, block_k, infinite = shape.length, shape.block_k, float("-inf")
    outside = -length % block_k
    q = inputs[0][:, start : start + shape.block_q]
    k, v = (torch.nn.functional.pad(tensor, (0, 0, 0, outside)) for tensor in inputs[1:])
    queries = torch.arange(start, start + q.shape[1])[:, None]
    highest, total, out = torch.full_like(q[..., :1], infinite), torch.zeros_like(q[..., :1]), torch.zeros_like(q)
    end = min(length, start + shape.block_q) if shape.causal else length
    for first in range(0, end - block_k + 1 if way == "last-tile-missing" else end, block_k):
        keys = torch.arange(first, first + block_k)[None, :]
        scores = q @ k[:, first : first + block_k].mT * (1.0 if way == "scale-missing" else D**-0.5)
        past = keys < queries if way == "not-itself" else keys <= queries
        visible = keys < length + (outside if way == "outside-counted" else 0)
        if shape.causal and way not in {"not-causal", "causal-after-softmax"}:
            visible = visible & past
        scores = torch.where(visible, scores, 0.0 if way == "masked-as-zero" else infinite)
        peak = scores.amax((-2, -1) if way == "one-max" else -1, keepdim=True)
        new = peak if way == "max-not-carried" else torch.maximum(highest, peak)
        weights = torch.exp(scores if way == "no-max" else scores - new)
        shrink = torch.exp(torch.zeros_like(new) if way == "no-max" else highest - new)
        total = total * (1.0 if way == "sum-not-rescaled" else shrink) + weights.sum(-1, keepdim=True)
        if shape.causal and way == "causal-after-softmax":
            weights = weights * past
        out = out * (1.0 if way == "out-not-rescaled" else shrink) + weights @ v[:, first : first + block_k]
        highest = new
    return out if way == "not-divided" else out / total
