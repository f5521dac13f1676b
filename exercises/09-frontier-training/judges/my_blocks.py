"""Judge my_blocks.py of 9.5: scales of three kinds by their conditions, and tensors by the numbers that they stand for."""

from __future__ import annotations

import math
from typing import Any

import torch
from number_formats import FORMATS, round_to

from gpucourse.judge import Part, Verdict, Way, plant_ways

SIZE = 32
WAYS = {
    "signed-largest": Way(
        "block {block} contains {x:g} and got the scale of {other:g}: the largest magnitude decides, even if it is negative",
        ("blocks.abs().amax(1, keepdim=True)", "blocks.amax(1, keepdim=True)"),
    ),
    "one-for-all": Way(
        "all {count} blocks have the same scale, from the largest number of the tensor: small blocks lose all their bits",
        ("blocks.abs().amax(1, keepdim=True)", "blocks.abs().amax().expand(len(blocks), 1)"),
    ),
    "exponent-of-the-largest": Way(
        "the largest number of block {block}, {x:g}, divided by the scale {answer:g} is {quotient:.4g}, more than "
        "{largest:g}, and would be cut off. The exponent alone, as in OCP's rule, ignores the mantissa: round the power of "
        "two up",
        (
            "torch.exp2(torch.ceil(torch.log2(exact)))",
            "torch.exp2(torch.floor(torch.log2(exact * largest)) - torch.log2(torch.tensor(largest)).floor())",
        ),
    ),
    "rounded-down": Way(
        "the largest number of block {block}, {x:g}, divided by the scale {answer:g} is {quotient:.4g}, more "
        "than {largest:g}: up to "
        "half of it is cut off. Round the power of two up",
        ("torch.exp2(torch.ceil(", "torch.exp2(torch.floor("),
    ),
    "nearest-power": Way(
        "some blocks exceed {largest:g} and others do not: {answer:g} is the power of two nearest to the "
        "exact scale {exact:g}, and "
        "every second one is too small. Round up",
        ("torch.exp2(torch.ceil(", "torch.exp2(torch.round("),
    ),
    "power-too-large": Way(
        "block {block} has the scale {answer:g}, but {right:g} is enough: half of the format's range is not used",
        ("torch.exp2(torch.ceil(torch.log2(exact)))", "torch.exp2(torch.ceil(torch.log2(exact)) + 1)"),
    ),
    "exact-power-doubled": Way(
        "block {block} has the scale {answer:g}, but divided by {right:g} its largest number, {x:g}, is exactly {largest:g} in "
        "size, and fits: if the exact scale is a power of two, it is the smallest one",
        ("torch.exp2(torch.ceil(torch.log2(exact)))", "torch.exp2(torch.floor(torch.log2(exact)) + 1)"),
    ),
    "not-a-power": Way(
        "{answer:g} is not a power of two: E8M0 has nothing but an exponent",
        ('    if kind == "float32":', '    if kind in ("float32", "E8M0"):'),
    ),
    "tensor-scale-forgotten": Way(
        "the scale {answer:g} of block {block} is a number of E4M3 by itself. {lost} of {count} blocks do not fit into its "
        "range: divide by one float32 for the tensor first, and multiply by it after rounding",
        ("    whole = exact.amax() / 448\n", "    whole = 1.0\n"),
    ),
    "not-rounded": Way(
        "the scale {answer:g} of block {block} is not a number of E4M3 times the float32 that all share: round it",
        ('round_to(exact / whole, "E4M3")', "(exact / whole)"),
    ),
    "zero-scale": Way(
        "block {block} has the scale 0: its numbers divided by it are not finite. Codes that would become 0 get 2 ** -9",
        (".clamp(min=2**-9)", ""),
    ),
    "zero-block": Way(
        "a block of zeros has the scale {answer:g}, and 0 divided by it is not finite: any finite scale above 0 will do",
        (".clamp(min=1e-30)", ""),
    ),
    "upside-down": Way(
        "block {block}, with the largest number {x:g}, has the scale {answer:g}: numbers are divided by it, "
        "and {right:g} makes the "
        "largest {largest:g}",
        (".clamp(min=1e-30) / largest\n", ".clamp(min=1e-30).reciprocal() * largest\n"),
    ),
    "scale-forgotten": Way(
        "the result contains the rounded quotients: multiply by the scale again",
        ("(round_to(blocks / scale, name) * scale)", "round_to(blocks / scale, name)"),
    ),
    "multiplied-first": Way(
        "the result has other sizes: numbers are divided by the scale before rounding, and multiplied after it",
        ("(round_to(blocks / scale, name) * scale)", "(round_to(blocks * scale, name) / scale)"),
    ),
    "other-dimension": Way(
        "numbers of a column share a scale: neighbours along the last dimension must share one, because products sum over it",
        (
            "    blocks = x.reshape(-1, block)\n"
            "    scale = scales(blocks, FORMATS[name].largest, kind)\n"
            "    return (round_to(blocks / scale, name) * scale).view(x.shape)",
            "    blocks = x.flatten(0, -2).T.reshape(-1, block)\n"
            "    scale = scales(blocks, FORMATS[name].largest, kind)\n"
            "    return (round_to(blocks / scale, name) * scale).view(x.shape[-1], -1).T.reshape(x.shape)",
        ),
    ),
}


def make_blocks() -> dict[str, torch.Tensor]:
    """Return blocks to scale: of sizes 2**-30 to 2**9, and with a block of zeros, one of negatives, two with exact powers."""
    source = torch.Generator().manual_seed(9)
    even = torch.randn(24, SIZE, generator=source)
    sizes = torch.exp2(torch.linspace(-30, 9, 40))[:, None]
    special = even.clone()
    special[3] = 0.0
    special[4] = -special[4].abs() * 5
    special[5] = 0.01
    special[5, 0] = 448.0
    special[6] = 0.01
    special[6, 3] = -1.5
    return {
        "blocks of very different sizes": torch.randn(40, SIZE, generator=source) * sizes, "blocks of one size": even,
        "zeros, negative numbers, and the largest number of the format": special,
    }  # fmt: skip


def judge(part: Part) -> None:
    """Judge scales of every kind, then fake_quantise."""
    torch.set_num_threads(1)
    scales = part.function("scales")
    for kind in ("float32", "E8M0", "E4M3"):
        for form in ("E4M3", "E2M1"):
            for name, blocks in make_blocks().items():
                case = f"kind {kind} for {form}, {name}"
                largest = FORMATS[form].largest
                answer = part.call(scales, blocks.clone(), largest, kind, case=case)
                _judge_scales(part, case, kind, largest, blocks, _read(answer, (len(blocks), 1), case))
    _judge_tensors(part)
    part.note("the scales of MXFP8, MXFP4 and NVFP4 fit, and tensors stand for the right numbers")


def _read(result: Any, shape: tuple[int, ...], case: str) -> torch.Tensor:
    if result is None:
        raise Verdict("failed", "no-answer", "it returned None: is the return missing?", case)
    if not isinstance(result, torch.Tensor) or tuple(result.shape) != shape or result.dtype != torch.float32:
        form = (
            f"{result.dtype} of the shape {list(result.shape)}" if isinstance(result, torch.Tensor) else type(result).__name__
        )
        raise Verdict("failed", "other", f"it returned {form}, not float32 of the shape {list(shape)}", case)
    return result


def compute_exact(blocks: torch.Tensor, largest: float) -> torch.Tensor:
    """Return the exact scale of each block in float64, 0 for a block of zeros."""
    return blocks.double().abs().amax(1, keepdim=True) / largest


def _judge_scales(part: Part, case: str, kind: str, largest: float, blocks: torch.Tensor, answer: torch.Tensor) -> None:
    exact = compute_exact(blocks, largest)
    zeros = exact[:, 0] == 0
    if bool(zeros.any()) and not bool(((answer[zeros] > 0) & answer[zeros].isfinite()).all()):
        raise part.wrong("zero-block", case, answer=float(answer[zeros][0]))
    if kind == "float32":
        off = (answer.double() - exact).abs() > 1e-5 * exact
    elif kind == "E8M0":
        off = (answer.double() < exact * (1 - 1e-6)) | (answer.double() >= 2 * exact * (1 + 1e-6)) | (answer.log2() % 1 != 0)
        off |= (exact.log2() % 1 == 0) & (answer.double() != exact)
    else:
        off = _find_wrong_codes(exact, answer)
    off[zeros] = False
    off |= ~answer.isfinite()
    if not bool(off.any()):
        return
    _name_way(part, case, kind, largest, blocks, answer, int(off[:, 0].nonzero()[0]))


def _find_wrong_codes(exact: torch.Tensor, answer: torch.Tensor) -> torch.Tensor:
    """Return a mask of the scales that are not the nearest E4M3 number times one float32. Near a tie, the neighbour is right as
    well.
    """
    ratio = exact / exact.amax() * 448
    codes = answer.double() / exact.amax() * 448
    allowed = torch.stack([round_to((ratio * (1 + shift)).float(), "E4M3").clamp(min=2**-9) for shift in (-1e-6, 1e-6)])
    return ((codes - allowed.double()).abs() > 1e-5 * allowed).all(0)


def _name_way(part: Part, case: str, kind: str, largest: float, blocks: torch.Tensor, answer: torch.Tensor, block: int) -> None:
    exact = compute_exact(blocks, largest)
    size = float(blocks[block].abs().max())
    values: dict[str, object] = {
        "block": block, "x": float(blocks[block, blocks[block].abs().argmax()]), "other": float(blocks[block].max()),
        "count": len(blocks), "answer": float(answer[block]), "exact": float(exact[block]), "largest": largest,
        "quotient": size / float(answer[block]) if float(answer[block]) else math.inf,
        "right": 2.0 ** math.ceil(math.log2(float(exact[block]))) if kind == "E8M0" else float(exact[block]),
        "lost": int(((exact > 464) | (exact < 2**-10)).sum()),
    }  # fmt: skip
    for way, module in plant_ways(WAYS, __file__):
        planted = module.scales(blocks.clone(), largest, kind)
        if planted.shape == answer.shape and torch.allclose(planted, answer, rtol=1e-5, atol=0, equal_nan=True):
            raise part.wrong(way, case, **values)
    text = (
        f"block {block}, with the largest number {values['x']:g}, has the scale {float(answer[block]):g}: {values['right']:g} "
    )
    raise Verdict("failed", "other", text + ("is the smallest that is large enough" if kind == "E8M0" else "is exact"), case)


def _judge_tensors(part: Part) -> None:
    fake_quantise = part.function("fake_quantise")
    source = torch.Generator().manual_seed(10)
    sizes = torch.exp2(torch.randint(-8, 8, (6, 64, 1), generator=source))
    tensors = {
        "a matrix": torch.randn(64, 96, generator=source) * sizes[0],
        "a tensor of three dimensions": torch.randn(6, 64, 128, generator=source) * sizes,
        "a matrix that is not contiguous": (torch.randn(64, 96, generator=source) * sizes[0]).T,
        "zeros": torch.zeros(4, 64),
    }
    scales = part.function("scales")
    for name, block, kind in (("E4M3", 32, "E8M0"), ("E2M1", 16, "E4M3"), ("E4M3", 32, "float32")):
        for title, tensor in tensors.items():
            case = f"{name}, {block} share a scale of kind {kind}, {title}"
            answer = part.call(fake_quantise, tensor.clone(), name, block, kind, case=case)
            answer = _read(answer, tuple(tensor.shape), case)
            blocks = tensor.reshape(-1, block)
            scale = part.call(scales, blocks.clone(), FORMATS[name].largest, kind, case=case)
            right = (round_to(blocks / scale, name) * scale).view(tensor.shape)
            wrong = ~((answer - right).abs() <= 1e-5 * right.abs())
            if float(wrong.float().mean()) > 1e-3:  # a scale that differs in its last bit moves a number at a tie
                _name_tensor(part, case, (tensor, name, block, kind), answer, right)


def _name_tensor(part: Part, case: str, call: tuple[Any, ...], answer: torch.Tensor, right: torch.Tensor) -> None:
    for way, module in plant_ways(WAYS, __file__):
        if torch.allclose(module.fake_quantise(*call), answer, rtol=1e-5, atol=0, equal_nan=True):
            raise part.wrong(way, case)
    wrong = ~((answer - right).abs() <= 1e-5 * right.abs())
    first = tuple(int(index) for index in wrong.nonzero()[0])
    x, result, expected = (float(tensor[first]) for tensor in (call[0], answer, right))
    text = f"element {list(first)}, {x:g}, stands for {result:g} instead of {expected:g}"
    raise Verdict("failed", "other", text, case)
