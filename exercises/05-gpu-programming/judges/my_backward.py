"""Judge my_backward.py of 5.10: gradients against autograd's, then memory, products for each tile, and stores of programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from kernels import PartMemory, Products, TensorCase, WatchedKernels, compare

from gpucourse.judge import Part, Way

HEADS, D, TOLERANCE = 2, 16, 5e-4
PRODUCTS, SLACK = 7, 0.3  # for each tile: S and dP in both loops, dV, dK and dQ; and products outside the tiles
WAYS = {
    "delta-missing": Way(
        "your dS is P ∘ dP, without the derivative of the division by the sum, which subtracts D of each query from dP",
        ("grad_scores = weights * (grad_weights - delta[:, None])", "grad_scores = weights * grad_weights"),
    ),
    "scale-missing": Way(
        "{which_gradient} is {factor:.0f} times too large: the scores are q · kᵀ · scale, so dQ and dK contain the scale, too",
        (
            'grad_k += tl.dot(tl.trans(grad_scores), q, input_precision="ieee") * scale',
            'grad_k += tl.dot(tl.trans(grad_scores), q, input_precision="ieee")',
        ),
    ),
    "scores-unscaled": Way(
        "the weights are exp(q · kᵀ - L) without the scale, but L is the logarithm of a sum of exp(q · kᵀ · scale)",
        ('tl.dot(q, tl.trans(k), input_precision="ieee") * scale', 'tl.dot(q, tl.trans(k), input_precision="ieee")'),
    ),
    "not-causal": Way(
        "if causal, a key after the query has the weight 0, but your backward pass computes one for it: hide it here as well",
        ("        visible = visible & (keys[None, :] <= queries[:, None])", "        visible = visible & (keys[None, :] >= 0)"),
    ),
    "outside-weighted": Way(
        "NaN: a lane after the last key loads 0, so its score is 0. All true scores are near {level:.0f} here, so exp(0 - L) "
        "is infinite, and infinity times 0 is NaN. Give these lanes the weight 0",
        ("(queries[:, None] < length) & (keys[None, :] < length)", "queries[:, None] >= 0"),
    ),
    "last-block-missing": Way(
        "with {length} keys in blocks of {block}, the last block is not whole, and a loop leaves it out",
        ("for first in range(0, end, BLOCK)", "for first in range(0, end - BLOCK + 1, BLOCK)"),
    ),
    "order": Way(
        "the three gradients are right, but in the wrong order: return the gradients of q, k and v, in the order of forward's "
        "arguments",
        ("return *grads, None, None", "return grads[2], grads[0], grads[1], None, None"),
    ),
    "not-contiguous": Way(
        "right only if {which} contiguous: a gradient or an input may be a transposed view, whose rows are not one "
        "after the other in memory. Call contiguous() before a kernel gets it",
        ("[tensor.contiguous() for tensor in (q, k, v, log_sums, delta, grad_out)]", "[q, k, v, log_sums, delta, grad_out]"),
    ),
    "kept-outside": Way(
        "after two forward passes, the backward pass of the first uses the tensors of the second: a model calls attention in "
        "each layer, so what forward keeps must be in ctx",
        (
            "        ctx.save_for_backward(q, k, v, out, log_sums)\n"
            "        ctx.causal, ctx.block = causal, block\n        return out\n\n    @staticmethod\n"
            "    def backward(ctx: Any, grad_out: torch.Tensor) -> tuple[torch.Tensor | None, ...]:\n"
            '        """Return the gradients of q, k and v."""\n'
            "        q, k, v, out, log_sums = ctx.saved_tensors\n",
            "        Attention.kept = q, k, v, out, log_sums\n"
            "        ctx.causal, ctx.block = causal, block\n        return out\n\n    @staticmethod\n"
            "    def backward(ctx: Any, grad_out: torch.Tensor) -> tuple[torch.Tensor | None, ...]:\n"
            '        """Return the gradients of q, k and v."""\n'
            "        q, k, v, out, log_sums = Attention.kept\n",
        ),
    ),
    "outside": Way(
        "{what}: every load and store needs a mask for the rows after the last",
        ("    tl.store(grad_q_ptr + places, grad_q, mask=inside)", "    tl.store(grad_q_ptr + places, grad_q)"),
    ),
    "race": Way(
        "{what}. Programs run at the same time, so one of the two is lost: dQ is a sum over keys, and dK and dV are "
        "sums over queries, so each needs a loop of its own",
        (
            '        grad_k += tl.dot(tl.trans(grad_scores), q, input_precision="ieee") * scale\n',
            '        grad_k += tl.dot(tl.trans(grad_scores), q, input_precision="ieee") * scale\n'
            "        so_far = tl.load(grad_q_ptr + tile, mask=queries[:, None] < length, other=0.0)\n"
            '        so_far += tl.dot(grad_scores, k, input_precision="ieee") * scale\n'
            "        tl.store(grad_q_ptr + tile, so_far, mask=queries[:, None] < length)\n",
        ),
    ),
    "weights-stored": Way(
        "the passes hold up to {bytes:,} bytes at the same time besides their inputs, and N x N numbers of this one head take "
        "{scores:,}: compute the weights of a tile again when you need them, and keep none",
        (
            "        ctx.save_for_backward(q, k, v, out, log_sums)\n",
            "        ctx.save_for_backward(q, k, v, out, log_sums)\n"
            "        ctx.weights = torch.exp(q @ k.mT * q.shape[2] ** -0.5 - log_sums[..., None])\n",
        ),
    ),
    "delta-in-tiles": Way(
        "right, but it computes {products:.1f} products for each tile instead of {enough}: D is summed over the tiles as "
        "P ∘ dP, which computes S and dP a third time. D is also the sum of dO ∘ out for each query, and out is already known",
        (
            "    grad_q = tl.zeros((BLOCK, D), tl.float32)\n",
            "    grad_q = tl.zeros((BLOCK, D), tl.float32)\n    delta = tl.zeros((BLOCK,), tl.float32)\n"
            "    for first in range(0, length, BLOCK):\n        keys = first + tl.arange(0, BLOCK)\n"
            "        tile = (base + keys[:, None]) * D + columns\n"
            "        k = tl.load(k_ptr + tile, mask=keys[:, None] < length, other=0.0)\n"
            "        v = tl.load(v_ptr + tile, mask=keys[:, None] < length, other=0.0)\n"
            "        weights = weigh(q, k, log_sums, rows, keys, length, scale, CAUSAL)\n"
            '        delta += tl.sum(weights * tl.dot(grad_out, tl.trans(v), input_precision="ieee"), axis=1)\n',
        ),
        seen="right, but it computes {products:.1f} products for each tile instead of {enough}: S and dP in each of two loops, "
        "dV, dK and dQ",
    ),
    "tiles-not-skipped": Way(
        "right, but if causal it computes {products:.1f} products for each tile that has a visible weight instead of {enough}: "
        "a tile whose keys all come after its queries need not be computed, in both loops",
        ("range(block * BLOCK if CAUSAL else 0, length, BLOCK)", "range(0, length, BLOCK)"),
    ),
    "tf32": Way(
        'a tl.dot of float32 has no input_precision="ieee": the interpreter computes it exactly, but a GPU of sm_80 or '
        "later rounds its inputs to 10 bits (TF32)",
        (
            'grad_v += tl.dot(tl.trans(weights), grad_out, input_precision="ieee")',
            "grad_v += tl.dot(tl.trans(weights), grad_out)",
        ),
    ),
}  # fmt: skip
FORMULAS = (
    "delta-missing",
    "scale-missing",
    "scores-unscaled",
    "not-causal",
    "last-block-missing",
    "outside-weighted",
    "order",
)
LOOPS = {
    "delta-missing": ("qk", "q", "k"),
    "scale-missing": ("qk", "q", "k"),
    "not-causal": ("qk", "tiles"),
    "last-block-missing": ("q", "k", "qk"),
    "outside-weighted": ("q",),
}  # each error with its forms: the gradients whose loops have it


@dataclass(frozen=True)
class Shape:
    """One input: queries (and keys) of each head, the block, the level of all scores, and whether tensors are transposed."""

    length: int
    block: int
    causal: bool = False
    level: float = 0.0
    views: str = ""  # which tensors are transposed views: "dO", "q, k and v", or none

    @property
    def name(self) -> str:
        """Describe the input in words."""
        level = f", scores near {self.level:.0f}" if self.level else ""
        views = f", {self.views} transposed" if self.views else ""
        return f"{self.length} keys in blocks of {self.block}, {'causal' if self.causal else 'full'}{level}{views}"

    def make(self, seed: int = 0, heads: int = HEADS) -> list[torch.Tensor]:
        """Return q, k, v and the gradient of out."""
        generator = torch.Generator().manual_seed(self.length + 1000 * seed)
        tensors = [torch.randn(heads, self.length, D, generator=generator) for _ in range(4)]
        if self.level:
            tensors[0][..., 0], tensors[1][..., 0] = 20.0, self.level * D**0.5 / 20
        for number, tensor in enumerate(tensors):
            if (number == 3) == (self.views == "dO") and self.views:
                tensors[number] = tensor.transpose(0, 1).contiguous().transpose(0, 1)
        return tensors


SHAPES = (
    Shape(16, 16), Shape(16, 16, causal=True), Shape(48, 16), Shape(48, 16, causal=True),
    Shape(37, 16), Shape(37, 16, causal=True), Shape(40, 32, causal=True), Shape(21, 16, level=-100.0),
    Shape(32, 16, views="dO"), Shape(32, 16, views="q, k and v"),
)  # fmt: skip
LARGE, LARGE_CAUSAL = Shape(192, 16), Shape(128, 16, causal=True)


def judge(part: Part) -> None:
    """Judge the gradients, then what the two passes hold, compute and write."""
    watched, products = WatchedKernels(part), Products()
    function = part.function("Attention")

    def differentiate(shape: Shape, *inputs: torch.Tensor) -> tuple[Any, ...]:
        leaves = [tensor.detach().requires_grad_() for tensor in inputs[:3]]
        out = function.apply(*leaves, shape.causal, shape.block)  # type: ignore[attr-defined]
        return out, *torch.autograd.grad(out, leaves, inputs[3], allow_unused=True)

    cases = []
    for shape in SHAPES:
        inputs = shape.make()
        watched.race = "outside" if shape.length % shape.block else "race"  # a race shows first in whole blocks
        out, *gradients = watched.call(shape.name, differentiate, shape, *inputs)
        cases += make_cases(shape, inputs, out, gradients)
    compare(part, sorted(cases, key=lambda case: (not case.values["level"], case.knobs["transposed"] == "nothing")), TOLERANCE)
    judge_two_passes(part, watched, function)
    if "TF32" in products.precisions:
        raise part.wrong("tf32")
    per_tile = {shape: judge_costs(part, watched, products, function, shape) for shape in (LARGE, LARGE_CAUSAL)}
    part.note(f"right in {len(SHAPES)} cases, with {per_tile[LARGE]:.1f} products for each tile")
    part.note("no N x N numbers, and no two programs write to the same number")


def make_cases(shape: Shape, inputs: list[torch.Tensor], out: Any, gradients: list[Any]) -> list[TensorCase]:
    """Return a case for out and for each gradient, with the values of the mistakes."""
    right = dense(shape, inputs)
    wrong: list[tuple[str, list[torch.Tensor]]] = [
        (way, dense(shape, inputs, way, loops)) for way in FORMULAS for loops in LOOPS.get(way, ("qk",))
    ]
    as_laid_out = [torch.as_strided(tensor, tensor.shape, (shape.length * D, D, 1)) for tensor in inputs]
    grads_only = dense(shape, [*inputs[:3], as_laid_out[3]], kept=inputs)
    laid_out = dense(shape, as_laid_out, kept=inputs)
    wrong += [("not-contiguous", grads_only), ("not-contiguous", laid_out)]
    wrong += [("not-contiguous", [laid_out[0], *map(lay_out_like, laid_out[1:], inputs)])]
    values: dict[str, object] = {
        "length": shape.length, "block": shape.block, "level": shape.level, "factor": D**0.5,
        "which_gradient": "dQ or dK", "which": "the gradient of out is" if shape.views == "dO" else "q, k and v are",
    }  # fmt: skip
    knobs = {
        "keys": shape.length,
        "block": shape.block,
        "causal": shape.causal,
        "transposed": shape.views or "nothing",
        "level": shape.level,
    }
    return [
        TensorCase(f"{shape.name}: {name}", value, right[place], [(way, items[place]) for way, items in wrong], values,
                   {**knobs, "the result": name})
        for place, (name, value) in enumerate(zip(("out", "dQ", "dK", "dV"), (out, *gradients), strict=True))
    ]  # fmt: skip


def lay_out_like(tensor: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Return a tensor with the strides of `other`, into whose memory the numbers of `tensor` were written row after row."""
    result = torch.empty_like(other)
    result.as_strided(tensor.shape, tensor.contiguous().stride()).copy_(tensor)
    return result


def dense(
    shape: Shape, inputs: list[torch.Tensor], way: str = "", loops: str = "qk", kept: list[torch.Tensor] | None = None
) -> list[torch.Tensor]:
    """Return out, dQ, dK and dV in float32 with the error `way`, by formulas with whole matrices in float64.

    `loops` names the gradients whose loop has the error. `kept`: the inputs from which out, L and D are computed, if they
    differ.
    """
    q, k, v, grad_out = (tensor.double() for tensor in inputs)
    hidden = torch.ones(shape.length, shape.length, dtype=torch.bool).triu(1) & shape.causal
    true_q, true_k, true_v, true_grad = (tensor.double() for tensor in kept or inputs)
    log_sums = (true_q @ true_k.mT * D**-0.5).masked_fill(hidden, float("-inf")).logsumexp(-1, keepdim=True)
    out = torch.exp((true_q @ true_k.mT * D**-0.5).masked_fill(hidden, float("-inf")) - log_sums) @ true_v
    scores = q @ k.mT * (1.0 if way == "scores-unscaled" else D**-0.5)
    weights = torch.exp(scores - log_sums)
    if way != "not-causal":
        weights = weights.masked_fill(hidden, 0)
    elif loops == "tiles":  # tiles that no query sees are skipped
        numbers = torch.arange(shape.length) // shape.block
        weights = weights.masked_fill(hidden & (numbers > numbers[:, None]), 0)
    delta = (true_grad * out).sum(-1, keepdim=True)
    delta_q, delta_k = (0 if way == "delta-missing" and name in loops else delta for name in "qk")
    scores_q, scores_k = (weights * (grad_out @ v.mT - subtracted) * D**-0.5 for subtracted in (delta_q, delta_k))
    end = shape.length // shape.block * shape.block if way == "last-block-missing" else shape.length
    columns, rows = (end if "q" in loops else shape.length), (end if "k" in loops else shape.length)
    grads = [
        scores_q[..., :columns] @ k[:, :columns],
        scores_k[:, :rows].mT @ q[:, :rows],
        weights[:, :rows].mT @ grad_out[:, :rows],
    ]
    if way == "scale-missing":
        grads = [grad * D**0.5 if name in loops else grad for name, grad in zip("qkv", grads, strict=True)]
    if way == "outside-weighted" and shape.length % shape.block and shape.level < -88:
        grads[0] = torch.full_like(grads[0], float("nan"))
    if way == "order":
        grads = [grads[2], grads[0], grads[1]]
    return [tensor.float() for tensor in (out, *grads)]


def judge_two_passes(part: Part, watched: WatchedKernels, function: Any) -> None:
    """Judge a backward pass after two forward passes. Raises Verdict."""
    shape, name = Shape(32, 16), "two forward passes, then the backward pass of the first"
    inputs, other_inputs = shape.make(1), shape.make(2)

    def differentiate() -> Any:
        leaves = [tensor.requires_grad_() for tensor in inputs[:3]]
        out = function.apply(*leaves, False, shape.block)
        function.apply(*other_inputs[:3], False, shape.block)
        return torch.autograd.grad(out, leaves, inputs[3], allow_unused=True)

    gradients = watched.call(name, differentiate)
    inputs = [tensor.detach() for tensor in inputs]
    right = dense(shape, inputs)[1:]
    ways = [dense(shape, [*other_inputs[:3], inputs[3]])[1:], dense(shape, inputs, kept=[*other_inputs[:3], inputs[3]])[1:]]
    compare(part, [TensorCase(name, gradient, right[place], [("kept-outside", items[place]) for items in ways])
                   for place, gradient in enumerate(gradients)], TOLERANCE)  # fmt: skip


def judge_costs(part: Part, watched: WatchedKernels, products: Products, function: Any, shape: Shape) -> float:
    """Return how many products the backward pass computes for each tile.

    Raises Verdict if it holds, computes or shares too much.
    """
    from torch.utils.flop_counter import FlopCounterMode  # imports Triton, which then decides whether to interpret

    inputs, memory, counter = shape.make(heads=1), PartMemory(), FlopCounterMode(display=False)

    def differentiate() -> Any:
        leaves = [tensor.requires_grad_() for tensor in inputs[:3]]
        with memory:
            out = function.apply(*leaves, shape.causal, shape.block)
            memory.reset_peak()
            products.multiply_adds = 0
            with counter:
                gradients = torch.autograd.grad(out, leaves, inputs[3])
        return gradients

    gradients = watched.call(shape.name, differentiate)
    compare(part, make_cases(shape, [tensor.detach() for tensor in inputs], None, list(gradients))[1:], TOLERANCE)
    scores = 4 * shape.length**2
    if not shape.causal and memory.peak() >= scores:
        raise part.wrong("weights-stored", shape.name, bytes=memory.peak(), scores=scores)
    blocks = shape.length // shape.block
    tiles = blocks * (blocks + 1) // 2 if shape.causal else blocks**2
    per_tile = (products.multiply_adds + counter.get_total_flops() / 2) / (tiles * shape.block**2 * D)
    if per_tile > PRODUCTS + SLACK:
        way = "tiles-not-skipped" if shape.causal else "delta-in-tiles"
        raise part.wrong(way, shape.name, output=round(per_tile, 1), products=per_tile, enough=PRODUCTS)
    uses_atomics = bool(watched.memory.atomic_bytes)
    if per_tile < PRODUCTS - SLACK and not uses_atomics:
        text = (f"{per_tile:.1f} products for each tile are fewer than the {PRODUCTS} of two loops: the same tile adds to dQ "
                "and to dK, so two turns of the outer loop write to the same numbers")  # fmt: skip
        raise part.wrong("race", shape.name, what=text)
    return per_tile
