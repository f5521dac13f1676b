"""Judge my_norm.py of 5.6 in Triton's interpreter: the mask that dropout draws, and rows of several lengths."""

from __future__ import annotations

from typing import Any

import torch
from kernels import PartMemory, TensorCase, WatchedKernel, compare, is_close

from gpucourse.judge import Part, Verdict, Way

SHAPES = ((2, 200), (2, 256), (2, 1), (2, 777))
EPS, P, SEED, TOLERANCE = 1e-5, 0.3, 7, 1e-4
SIGMAS = 5
MIN_OVERLAP = 30  # places that two rows must have in common before they are compared: this many do not all agree by chance
ALIKE = 0.1  # added to the share of neighbours that agree by chance, which varies by 0.01 at most
DRAWN = (12, 300)  # rows and columns of the dropout
WAYS = {
    "masked-in-variance": Way(
        "in rows of {n} numbers the variance is too large: the {outside} lanes of the block outside the row are "
        "loaded as 0, and 0 - mean is not 0. Set to 0 what they add to the sum of squares, not what is loaded",
        ("tl.where(inside, x - mean, 0.0)", "x - mean"),
    ),
    "stride-unused": Way(
        "rows of {n} numbers that begin {stride} numbers apart are wrong, except the first: row r begins at r * stride in x "
        "and y, and not at r * n",
        ("x_ptr + row * stride", "x_ptr + row * n"),
    ),
    "divided-by-block": Way(
        "in rows of {n} numbers it divides by the block, {block}: a mean is a sum over n lanes divided by n",
        ("mean = tl.sum(x, axis=0) / n", "mean = tl.sum(x, axis=0) / BLOCK"),
    ),
    "sample-variance": Way(
        "it divides the squares by n - 1: layer norm uses all numbers of the row and divides by n",
        ("tl.sum(centred * centred, axis=0) / n", "tl.sum(centred * centred, axis=0) / (n - 1)"),
    ),
    "eps-outside": Way(
        "eps is added to the root: it belongs under the root, where it prevents a division by 0 in a row of equal numbers",
        ("centred * tl.rsqrt(variance + eps)", "centred / (tl.sqrt(variance) + eps)"),
    ),
    "outside": Way(
        "{what}: a lane outside the row needs a mask in every load and every store",
        ("    tl.store(y_ptr + row * stride + columns, y, mask=inside)", "    tl.store(y_ptr + row * stride + columns, y)"),
    ),
    "drops-nothing": Way(
        "with p = {p:g} no number is 0: dropout sets a share p of the numbers to 0",
        ("    y = tl.where(is_kept, y / (1 - p), 0.0)\n", ""),
    ),
    "not-scaled": Way(
        "the numbers that are kept are not divided by 1 - p: the mean of y falls by {percent:.0f}%, and without dropout the "
        "next layer gets larger numbers than it was trained with",
        ("y / (1 - p)", "y"),
    ),
    "scaled-by-p": Way(
        "the numbers that are kept are divided by p: a share 1 - p is kept, so divide by 1 - p instead", ("(1 - p)", "p")
    ),
    "keeps-p": Way(
        "it keeps {kept:.0f}% of the numbers, but with p = {p:g} it should drop that share: a random number is below p "
        "in a share p of all places",
        (">= p", "< p"),
    ),
    "drops-before-bias": Way(
        "dropped places contain the bias instead of 0: dropout comes last, after weight and bias",
        (
            "    y = centred * tl.rsqrt(variance + eps) * weight + bias\n    is_kept = tl.rand(seed, row * n + columns) >= p\n"
            "    y = tl.where(is_kept, y / (1 - p), 0.0)\n",
            "    y = centred * tl.rsqrt(variance + eps) * weight\n    is_kept = tl.rand(seed, row * n + columns) >= p\n"
            "    y = tl.where(is_kept, y / (1 - p), 0.0) + bias\n",
        ),
    ),
    "whole-rows": Way(
        "whole rows are dropped: the random number depends only on the row. Each place needs its own offset",
        ("tl.rand(seed, row * n + columns)", "tl.rand(seed, row + 0 * columns)"),
    ),
    "same-in-each-row": Way(
        "every row drops the same columns: the offset depends only on the column, not on the row",
        ("tl.rand(seed, row * n + columns)", "tl.rand(seed, columns)"),
    ),
    "rows-overlap": Way(
        "the mask of each row is the previous row's, moved by {shift}: rows share random numbers, as with the offset "
        "row + column. How many offsets does a row need?",
        ("row * n + columns", "row + columns"),
    ),
    "neighbours-alike": Way(
        "{percent:.0f}% of neighbours in a row are kept or dropped together; by chance {chance:.0f}% would be: places "
        "share random numbers. Each needs its own offset",
        ("tl.rand(seed, row * n + columns)", "tl.rand(seed, (row * n + columns) // 2)"),
    ),
    "seed-unused": Way(
        "another seed drops the same numbers: pass the seed on to tl.rand", ("tl.rand(seed, row", "tl.rand(1, row")
    ),
    "not-repeatable": Way(
        "a second call with the same seed drops different numbers: the backward pass could not draw the mask again",
        (" p, seed, BLOCK=", " p, int(torch.randint(1 << 30, ())), BLOCK="),
    ),
    "stored-besides": Way(
        "right, but launch holds {bytes:,} bytes at the same time, and its result has {result:,}: with the random numbers in "
        "the kernel, no mask has to be stored",
        ("    y = torch.empty_like(x)\n", "    y, mask = torch.empty_like(x), torch.rand_like(x)\n"),
    ),
}


Rows = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def judge(part: Part) -> None:
    """Judge the norm against torch's without dropout, then the numbers that dropout keeps, drops and repeats."""
    torch.manual_seed(SEED)
    call, memory = WatchedKernel(part, "launch", "norm_dropout"), PartMemory()
    rows = make_rows(*DRAWN)
    case = f"{DRAWN[0]} rows of {DRAWN[1]} numbers, p = {P:g}"
    with memory:
        dropout_result = call(case, *rows, P, SEED)  # first: a part without dropout says here that it is open
    judge_mask(part, case, rows, dropout_result)
    judge_values(part, case, rows, dropout_result, named_only=True)
    judge_norm(part, call)
    judge_stride(part, call.kernels[0])
    judge_values(part, case, rows, dropout_result)
    if not torch.equal(dropout_result, call(case, *rows, P, SEED)):
        raise part.wrong("not-repeatable", case)
    if torch.equal(dropout_result, call(case, *rows, P, SEED + 1)):
        raise part.wrong("seed-unused", case)
    if memory.peak() >= dropout_result.nbytes + dropout_result.numel():  # a mask has at least a byte for each number
        raise part.wrong("stored-besides", case, bytes=memory.peak(), result=dropout_result.nbytes)
    part.note(f"right in rows of {', '.join(str(n) for _, n in SHAPES)} numbers, whose blocks are powers of two")
    part.note(f"{DRAWN[0] * DRAWN[1]:,} places: {100 * float((dropout_result != 0).float().mean()):.1f}% kept with p = {P:g}")


def make_rows(rows: int, n: int) -> Rows:
    """Return x, weight and bias. The mean of x is far from 0, its variance is so small that eps counts, and y stays below 0."""
    x = torch.rand(rows, n) * 0.1 + 0.4
    return x, torch.rand(n) + 0.5, torch.rand(n) - 5.0


def judge_norm(part: Part, call: WatchedKernel) -> None:
    """Judge p = 0 in rows that fill their block and in shorter rows."""
    cases = []
    for count, n in SHAPES:
        rows, block = make_rows(count, n), 1 << (n - 1).bit_length()
        name = f"{count} rows of {n} numbers, p = 0"
        right = torch.nn.functional.layer_norm(rows[0], (n,), *rows[1:], EPS)
        values: dict[str, object] = {"n": n, "block": block, "outside": block - n}
        cases.append(TensorCase(name, call(name, *rows, 0.0, SEED), right, list_wrong(rows, block), values))
    compare(part, cases, TOLERANCE)


def judge_stride(part: Part, kernel: Any) -> None:
    """Judge p = 0 in rows that are the left part of longer rows.

    `launch` never creates such rows, but the kernel takes a stride.
    """
    count, n, stride = 3, 20, 28
    rows = make_rows(count, n)
    x, y = torch.zeros(count, stride), torch.zeros(count, stride)
    x[:, :n] = rows[0]
    case = f"{count} rows of {n} numbers, {stride} apart, p = 0"
    part.call(lambda: kernel[(count,)](x, *rows[1:], y, stride, n, EPS, 0.0, SEED, BLOCK=32), case=case)
    right = torch.nn.functional.layer_norm(rows[0], (n,), *rows[1:], EPS)
    if not is_close(y[:1, :n], right[:1], TOLERANCE):
        compare(part, [TensorCase(case, y[:, :n], right)], TOLERANCE)
    if not is_close(y[:, :n], right, TOLERANCE) or y[:, n:].any():
        raise part.wrong("stride-unused", case, n=n, stride=stride)


def list_wrong(rows: Rows, block: int) -> list[tuple[str, torch.Tensor]]:
    """Return the results of the mistakes for `rows` in blocks of length `block`."""
    x, weight, bias = rows
    n = x.shape[1]

    def norm(mean: torch.Tensor, squares: torch.Tensor, divisor: float) -> torch.Tensor:
        return (x - mean) / torch.sqrt(squares / divisor + EPS) * weight + bias

    mean, mean_of_block = x.mean(1, keepdim=True), x.sum(1, keepdim=True) / block
    squares, squares_of_block = ((x - middle).square().sum(1, keepdim=True) for middle in (mean, mean_of_block))
    root = torch.sqrt(squares / n) + EPS
    return [
        ("masked-in-variance", norm(mean, squares + (block - n) * mean.square(), n)),
        ("divided-by-block", norm(mean_of_block, squares_of_block, n)),
        ("divided-by-block", norm(mean, squares, block)),
        ("divided-by-block", norm(mean_of_block, squares_of_block, block)),
        ("sample-variance", norm(mean, squares, n - 1)),
        ("eps-outside", (x - mean) / root * weight + bias),
    ]


def judge_mask(part: Part, case: str, rows: Rows, dropped: torch.Tensor) -> None:
    """Judge which places are 0. Raises Verdict."""
    bias = rows[2].expand_as(dropped)
    is_kept = dropped != 0
    share, sigma = float(is_kept.float().mean()), (P * (1 - P) / is_kept.numel()) ** 0.5
    if is_kept.all():
        at_bias = float(torch.isclose(dropped, bias, rtol=0, atol=1e-6).float().mean())
        raise part.wrong("drops-before-bias" if at_bias > P / 2 else "drops-nothing", case, p=P)
    if bool((is_kept.all(1) | ~is_kept.any(1)).all()):
        raise part.wrong("whole-rows", case)
    if torch.equal(is_kept, is_kept[:1].expand_as(is_kept)):
        raise part.wrong("same-in-each-row", case)
    for shift in range(1, is_kept.shape[1] - MIN_OVERLAP):
        if torch.equal(is_kept[1:, :-shift], is_kept[:-1, shift:]):
            raise part.wrong("rows-overlap", case, shift=shift)
    if (alike := float((is_kept[:, 1:] == is_kept[:, :-1]).float().mean())) > P**2 + (1 - P) ** 2 + ALIKE:
        raise part.wrong("neighbours-alike", case, percent=100 * alike, chance=100 * (P**2 + (1 - P) ** 2))
    if abs(share - P) < SIGMAS * sigma:
        raise part.wrong("keeps-p", case, kept=100 * share, p=P)
    if abs(share - (1 - P)) > SIGMAS * sigma:
        raise Verdict(
            "failed", "other", f"it keeps {100 * share:.1f}% of the numbers, but should keep {100 - 100 * P:.0f}%", case
        )


def judge_values(part: Part, case: str, rows: Rows, dropped: torch.Tensor, *, named_only: bool = False) -> None:
    """Judge the values in the places that are kept. With `named_only`, ignore unnamed errors. Raises Verdict."""
    is_kept = dropped != 0
    answer, norm = dropped[is_kept], torch.nn.functional.layer_norm(rows[0], (DRAWN[1],), *rows[1:], EPS)[is_kept]
    ways = [("not-scaled", norm), ("scaled-by-p", norm / P)]
    if not named_only or any(is_close(answer, values, TOLERANCE) for _, values in ways):
        compare(part, [TensorCase(case, answer, norm / (1 - P), ways, {"percent": 100 * P})], TOLERANCE)
