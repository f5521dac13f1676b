"""Judge my_norm_backward.py of 5.6 in Triton's interpreter: the gradient of x, with the mask drawn again."""

from __future__ import annotations

import numpy as np
import torch
from kernels import PartMemory, TensorCase, WatchedKernel, compare

from gpucourse.judge import Part, Way

SHAPES = ((2, 256), (2, 200), (3, 77))
COUNTED = (12, 300)  # rows and numbers of the call whose memory and bytes are counted
EPS, P, SEED, TOLERANCE = 1e-5, 0.3, 7, 1e-4
WAYS = {
    "mask-forgotten": Way(
        "the gradient of y passes through the places that the forward pass dropped: their y was 0 whatever x was, so nothing "
        "may come back through them",
        ("tl.where(is_kept, grad / (1 - p), 0.0) * weight", "grad * weight"),
    ),
    "not-scaled": Way(
        "the gradient is {percent:.0f} % too small: the forward pass also divided what it kept",
        ("tl.where(is_kept, grad / (1 - p), 0.0) * weight", "tl.where(is_kept, grad, 0.0) * weight"),
    ),
    "mask-last": Way(
        "the mask is applied to the gradient of x: dropout came last in the forward pass, so it comes first in the backward "
        "pass. A number that was dropped still takes part in the mean and the variance of its row",
        (
            "    grad = tl.where(is_kept, grad / (1 - p), 0.0) * weight\n    first = tl.sum(grad, axis=0) / n\n"
            "    second = tl.sum(grad * normed, axis=0) / n\n"
            "    tl.store(grad_x_ptr + places, (grad - first - normed * second)",
            "    grad = grad * weight\n    first = tl.sum(grad, axis=0) / n\n    second = tl.sum(grad * normed, axis=0) / n\n"
            "    tl.store(grad_x_ptr + places, tl.where(is_kept, (grad - first - normed * second) / (1 - p), 0.0)",
        ),
    ),
    "other-places": Way(
        "the mask is that of other places: the offset of a random number has to depend on row and column as in the forward "
        "pass, row by row with n places each",
        ("tl.rand(seed, row * n + columns)", "tl.rand(seed, row * BLOCK + columns)"),
    ),
    "seed-unused": Way(
        "another seed draws the same mask: pass the seed on to tl.rand", ("tl.rand(seed, row", "tl.rand(7, row")
    ),
    "keeps-p": Way(
        "the gradient passes through the places that were dropped, and not through those that were kept", (">= p", "< p")
    ),
    "weight-forgotten": Way(
        "the gradient is right for a weight of 1 alone: y is the normalised number times the weight",
        ("grad / (1 - p), 0.0) * weight", "grad / (1 - p), 0.0)"),
    ),
    "mean-is-constant": Way(
        "the gradients of a row do not add up to 0: a change of one number also changes the mean of its row, and so every y",
        ("(grad - first - normed * second)", "(grad - normed * second)"),
    ),
    "variance-is-constant": Way(
        "the gradient is that of a row whose variance does not depend on x, but a change of one number changes it",
        ("(grad - first - normed * second)", "(grad - first)"),
    ),
    "scale-forgotten": Way(
        "in each row one factor is missing: y contains x divided by the root of the variance",
        ("(grad - first - normed * second) * scale", "(grad - first - normed * second)"),
    ),
    "masked-in-variance": Way(
        "in rows of {n} numbers the gradient is wrong, in rows of {block} it is right: what do the {outside} lanes outside the "
        "row add to each of your sums?",
        ("tl.where(inside, x - mean, 0.0)", "x - mean"),
    ),
    "divided-by-block": Way(
        "in rows of {n} numbers a mean is divided by the block, {block}: a row has n numbers",
        ("first = tl.sum(grad, axis=0) / n", "first = tl.sum(grad, axis=0) / BLOCK"),
    ),
    "outside": Way(
        "{what}: a lane outside the row needs a mask in every load and every store",
        ("normed * second) * scale, mask=inside)", "normed * second) * scale)"),
    ),
    "stored-besides": Way(
        "right, but backward holds {bytes:,} bytes at the same time, and its result has {result:,}: neither a mask nor any "
        "other tensor has to be stored",
        ("    grad_x = torch.empty_like(x)\n", "    grad_x, mask = torch.empty_like(x), torch.rand_like(x)\n"),
    ),
    "read-again": Way(
        "right, but the kernel loads {loaded:,} bytes, and {enough:,} are enough: load each number once, and keep it",
        (
            "    tl.store(grad_x_ptr",
            "    normed = (tl.load(x_ptr + places, mask=inside, other=0.0).to(tl.float32) - mean) * scale\n"
            "    tl.store(grad_x_ptr",
        ),
    ),
}

Inputs = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def judge(part: Part) -> None:
    """Judge the memory and the bytes of one call, then the gradients in rows that fill their block and in shorter rows."""
    torch.manual_seed(SEED)
    call, memory = WatchedKernel(part, "backward", "gradient_of_row"), PartMemory()
    inputs = make_inputs(*COUNTED)
    case = f"{COUNTED[0]} rows of {COUNTED[1]} numbers, p = {P:g}"
    with memory:
        result = call(case, *inputs, P, SEED)  # first: a part that is open says so here
    loaded = call.memory.loaded_bytes()
    cases = []
    for p, seed in ((0.0, SEED), (P, SEED), (P, SEED + 1)):
        for rows, n in SHAPES:
            these = make_inputs(rows, n)
            name = f"{rows} rows of {n} numbers, p = {p:g}, seed {seed}"
            cases.append(make_case(name, call(name, *these, p, seed), these, p, seed))
    compare(part, [*cases, make_case(case, result, inputs, P, SEED)], TOLERANCE)
    if memory.peak() >= result.nbytes + result.numel():  # a mask has at least a byte for each number
        raise part.wrong("stored-besides", case, bytes=memory.peak(), result=result.nbytes)
    enough = 4 * 3 * COUNTED[0] * COUNTED[1]  # each program loads its row of grad and of x, and the weight
    if loaded > enough:
        raise part.wrong("read-again", case, loaded=loaded, enough=enough)
    part.note(f"right in rows of {', '.join(str(n) for _, n in SHAPES)} numbers, with dropout and without")
    part.note("the mask was drawn again, and nothing but the result was stored")


def make_inputs(rows: int, n: int) -> Inputs:
    """Return the gradient of y, x and the weight. The mean of x is far from 0, and no sum of a row is near 0."""
    return torch.rand(rows, n) + 0.5, torch.rand(rows, n) + 0.5, torch.rand(n) + 0.5


def make_case(name: str, answer: torch.Tensor, inputs: Inputs, p: float, seed: int) -> TensorCase:
    """Return a case with the right gradient, and the gradients of the mistakes."""
    grad, x, weight = (tensor.double() for tensor in inputs)
    rows, n = x.shape
    block = 1 << (n - 1).bit_length()

    def find_gradient(
        factor: torch.Tensor, weight: torch.Tensor = weight, *, first: float = 1.0, second: float = 1.0, extra: float = 0.0
    ) -> torch.Tensor:
        mean = x.mean(1, keepdim=True)
        scale = (x.var(1, keepdim=True, correction=0) + extra * mean.square() + EPS).rsqrt()
        normed, gradient = (x - mean) * scale, grad * factor * weight
        slope = (gradient * normed).mean(1, keepdim=True)
        return (gradient - first * gradient.mean(1, keepdim=True) - second * normed * slope) * scale

    mask = draw(seed, torch.arange(rows)[:, None] * n + torch.arange(n)) >= p
    kept, ones = mask / (1 - p), torch.ones_like(x)
    scale = (x.var(1, keepdim=True, correction=0) + EPS).rsqrt()
    right = find_gradient(kept)
    ways = [
        ("mask-forgotten", find_gradient(ones)),
        ("not-scaled", find_gradient(mask.double())),
        ("mask-last", find_gradient(ones) * kept),
        ("mask-last", find_gradient(ones) * mask),
        *(("other-places", find_gradient((draw(seed, offsets) >= p) / (1 - p))) for offsets in (
            torch.arange(rows)[:, None] * block + torch.arange(n), torch.arange(n).expand(rows, n),
            torch.arange(rows)[:, None].expand(rows, n), torch.arange(rows)[:, None] + torch.arange(n),
        )),
        ("seed-unused", find_gradient((draw(SEED, torch.arange(rows)[:, None] * n + torch.arange(n)) >= p) / (1 - p))),
        ("keeps-p", find_gradient((draw(seed, torch.arange(rows)[:, None] * n + torch.arange(n)) < p) / (1 - p))),
        ("weight-forgotten", find_gradient(kept, torch.ones_like(weight))),
        ("mean-is-constant", find_gradient(kept, first=0.0)),
        ("variance-is-constant", find_gradient(kept, second=0.0)),
        ("variance-is-constant", find_gradient(kept, first=0.0, second=0.0)),
        ("scale-forgotten", right / scale),
        ("masked-in-variance", find_gradient(kept, extra=(block - n) / n)),
        ("divided-by-block", find_gradient(kept, first=n / block)),
        ("divided-by-block", find_gradient(kept, second=n / block)),
        ("divided-by-block", find_gradient(kept, first=n / block, second=n / block)),
    ]  # fmt: skip
    values: dict[str, object] = {"n": n, "block": block, "outside": block - n, "percent": 100 * P}
    return TensorCase(name, answer, right.float(), [(way, wrong.float()) for way, wrong in ways], values)


def draw(seed: int, offsets: torch.Tensor) -> torch.Tensor:
    """Return the numbers of tl.rand for small seeds.

    They come from Philox with ten rounds: Triton takes the first of its four words.
    """
    words = [offsets.numpy().astype(np.uint64), *(np.zeros(offsets.shape, np.uint64) for _ in range(3))]
    keys = [seed, 0]
    for _ in range(10):
        high, low = words[2] * np.uint64(0xCD9E8D57), words[0] * np.uint64(0xD2511F53)
        first = (high >> np.uint64(32)) ^ words[1] ^ np.uint64(keys[0])
        third = (low >> np.uint64(32)) ^ words[3] ^ np.uint64(keys[1])
        words = [first, high & np.uint64(0xFFFFFFFF), third, low & np.uint64(0xFFFFFFFF)]
        keys = [(keys[0] + 0x9E3779B9) & 0xFFFFFFFF, (keys[1] + 0xBB67AE85) & 0xFFFFFFFF]
    signed = words[0].astype(np.uint32).view(np.int32).astype(np.int64)
    return torch.from_numpy(np.where(signed < 0, -signed - 1, signed)) * 4.6566127342e-10
