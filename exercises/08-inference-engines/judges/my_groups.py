"""Judge my_groups.py of 8.6: shapes and bytes first, then each function together with the course's version of the other."""

from __future__ import annotations

from typing import Any

import torch

from gpucourse.judge import Part, Verdict, Way, plant_ways

ALIKE = 0.995  # two results count as equal if at least this share of their codes is
ALMOST_HALF = 1e-3  # of a step: a weight this close to the middle between two codes may have either


WAYS = {
    "one-scale-for-all": Way(
        "the errors are {times:.1f} times as large as with groups: one large weight sets the steps of all {count:,} weights. "
        "Each group has its own range",
        (
            "low, high = groups.amin(-1).clamp(max=0), groups.amax(-1).clamp(min=0)",
            ("low, high = (end.expand(groups.shape[:2]) for end in (groups.amin().clamp(max=0), groups.amax().clamp(min=0)))"),
        ),
    ),
    "one-scale-a-row": Way(
        "the errors are {times:.1f} times as large as with groups: you use one range for each row, but its {inputs} weights "
        "form {groups} groups of {group}",
        (
            "low, high = groups.amin(-1).clamp(max=0), groups.amax(-1).clamp(min=0)",
            (
                "low, high = (\n        end.expand(groups.shape[:2])\n        for end in (\n"
                "        groups.amin((1, 2)).clamp(max=0)[:, None],\n"
                "        groups.amax((1, 2)).clamp(min=0)[:, None])\n    )"
            ),
        ),
    ),
    "cut-off": Way(
        "{share:.0%} of the weights came back smaller than they were: you cut off the fraction instead of rounding to the "
        "nearest code",
        ("(groups / step[..., None]).round()", "(groups / step[..., None]).floor()"),
    ),
    "one-step-too-many": Way(
        "the scale is the range divided by {codes}. Between {codes} codes there are {top} steps",
        ("top = 2**bits - 1", "top = 2**bits"),
    ),
    "not-clamped": Way(
        "a code was not limited to 0 to {top} after rounding: it wraps around, or overwrites its neighbour in the byte",
        (
            "((groups / step[..., None]).round() + zero[..., None]).clamp(0, top)",
            "((groups / step[..., None]).round() + zero[..., None])",
        ),
    ),
    "range-without-zero": Way(
        "in row {row} all weights are far above 0, and your range does not include 0: then no code stands for 0.0",
        (
            "low, high = groups.amin(-1).clamp(max=0), groups.amax(-1).clamp(min=0)",
            "low, high = groups.amin(-1), groups.amax(-1)",
        ),
    ),
    "one-zero-for-all": Way(
        "the codes are centred on {middle} in every group, but each group has its own zero",
        ("zero = (-low / step).round().clamp(0, top)", "zero = torch.full_like(step, 2 ** (bits - 1))"),
    ),
    "scale-not-as-stored": Way(
        "the codes were computed with a scale that is more precise than the stored one, so {wrong} of {count:,} codes are not "
        "the nearest: round the scale to float16 first",
        ("step = scale.float()", "step = ((high - low) / top).clamp(min=2**-24)"),
    ),
    "places-swapped": Way(
        "in each byte the two codes are exchanged: the even place belongs to the low four bits",
        (
            "codes[:, ::2] | codes[:, 1::2] << 4",
            "codes[:, 1::2] | codes[:, ::2] << 4",
        ),
    ),
    "halves": Way(
        "you put a code of the first half of the row and one of the second half into a byte. Two neighbouring codes share a "
        "byte",
        (
            "codes[:, ::2] | codes[:, 1::2] << 4",
            "codes[:, : codes.shape[1] // 2] | codes[:, codes.shape[1] // 2 :] << 4",
        ),
    ),
    "not-packed": Way(
        "with 4 bits, codes, scales and zeros have {result:,} bytes instead of {right:,}: two codes share a byte",
        (
            "    if bits == 4:\n        codes = codes[:, ::2] | codes[:, 1::2] << 4\n",
            "",
        ),
    ),
    "scale-in-32-bits": Way(
        "the scales are {dtype}, 4 bytes each; they must be float16, which makes {right:,} bytes in all",
        ("return codes, scale, zero", "return codes, scale.float(), zero"),
    ),
    "zero-lost": Way(
        "dequantise multiplied the codes by the scale, without the zero: all weights of a group are too large by zero × scale",
        ("(groups - zero.float()[..., None])", "groups"),
    ),
    "zero-after-the-scale": Way(
        "dequantise subtracted the zero after multiplying: the zero is a code, so subtract it from the code",
        (
            "(groups - zero.float()[..., None]) * scale.float()[..., None]",
            "groups * scale.float()[..., None] - zero.float()[..., None]",
        ),
    ),
    "counted-from-the-low-end": Way(
        "the codes count steps from the smallest weight of the group, but a code stands for (code - zero) × scale. {wrong:,} "
        "of {count:,} codes are not the nearest one",
        (
            "((groups / step[..., None]).round() + zero[..., None])",
            "((groups - low[..., None]) / step[..., None]).round()",
        ),
    ),
}
FORMATS = (4, 32), (8, 16), (3, 64), (2, 8), (4, 64)  # bits, weights of a group
Result = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def make_weight() -> torch.Tensor:
    """Return weights [64, 256] with outliers, rows away from 0, a row of positive weights, and a group of zeros."""
    source = torch.Generator().manual_seed(0)
    weight = torch.randn(64, 256, generator=source)
    weight *= 1 + 4 * (torch.rand(64, 256, generator=source) < 0.01)
    weight += 0.3 * torch.randn(64, 1, generator=source)
    weight[3] = weight[3].abs() + 2
    weight[5] = -weight[5].abs() - 1
    weight[7, 64:128] = 0
    return weight


def judge(part: Part) -> None:
    """Judge quantise for several formats, then dequantise."""
    torch.set_num_threads(1)
    quantise, dequantise = part.function("quantise"), part.function("dequantise")
    weight = make_weight()
    for bits, group in FORMATS:
        case = f"quantise, {bits} bits, groups of {group}"
        result = part.call(quantise, weight.clone(), bits, group, case=case)
        _judge_form(part, result, bits, group, case)
        _judge_codes(part, result, weight, bits, group, case)
    for bits, group in FORMATS:
        case = f"dequantise, {bits} bits, groups of {group}"
        source = torch.Generator().manual_seed(bits)
        codes = torch.randint(2**bits, (6, 128), generator=source).byte()
        codes = codes[:, ::2] | codes[:, 1::2] << 4 if bits == 4 else codes
        scale = torch.rand(6, 128 // group, generator=source).half()
        zero = torch.randint(2**bits, (6, 128 // group), generator=source).byte()
        _judge_weights(part, dequantise, (codes, scale, zero, bits, group), case)
    part.note("codes, scales and zeros of five formats; with 4 bits in groups of 32, a weight takes 4.75 bits")


def encode(weight: torch.Tensor, bits: int, group: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the codes before rounding, float32 [out, in], the scales and the zeros before rounding."""
    groups = weight.view(len(weight), -1, group)
    low, high = groups.amin(-1).clamp(max=0), groups.amax(-1).clamp(min=0)
    scale = ((high - low) / (2**bits - 1)).half()
    step = scale.float().clamp(min=2**-24)
    return (groups / step[..., None]).view(weight.shape), scale, -low / step


def unpack(codes: torch.Tensor, bits: int) -> torch.Tensor:
    """Return one code in each place, as float32."""
    return (torch.stack([codes & 15, codes >> 4], -1).flatten(1) if bits == 4 else codes).float()


def _judge_form(part: Part, result: Any, bits: int, group: int, case: str) -> None:
    """Judge types and shapes, which determine the bytes of the format."""
    if not isinstance(result, tuple) or len(result) != 3 or not all(isinstance(item, torch.Tensor) for item in result):
        raise Verdict("failed", "other", "it must return three tensors: codes, scales and zeros", case)
    codes, scale, _ = result
    rows, inputs = 64, 256
    shapes = [rows, inputs // 2 if bits == 4 else inputs], [rows, inputs // group], [rows, inputs // group]
    right = sum(shape[0] * shape[1] * size for shape, size in zip(shapes, (1, 2, 1), strict=True))
    if bits == 4 and list(codes.shape) == [rows, inputs]:
        raise part.wrong("not-packed", case, result=sum(item.numel() * item.element_size() for item in result), right=right)
    if scale.dtype == torch.float32 and list(scale.shape) == shapes[1]:
        raise part.wrong("scale-in-32-bits", case, dtype=scale.dtype, right=right)
    types = torch.uint8, torch.float16, torch.uint8
    for name, item, shape, dtype in zip(("codes", "scales", "zeros"), result, shapes, types, strict=True):
        if list(item.shape) != shape or item.dtype != dtype:
            text = f"the {name} are {item.dtype} {list(item.shape)}, not {dtype} {shape}"
            raise Verdict("failed", "other", text, case)


def _judge_codes(part: Part, result: Result, weight: torch.Tensor, bits: int, group: int, case: str) -> None:
    """Judge the codes. A number that is almost in the middle between two codes may have either of them."""
    top = 2**bits - 1
    exact, scale, exact_zero = encode(weight, bits, group)
    zero = exact_zero.round().clamp(0, top)
    codes = (exact.round() + zero.repeat_interleave(group, 1)).clamp(0, top)
    packed_codes = unpack(result[0], bits)
    wrong_scales = ((result[1].float() - scale.float()).abs() > 1e-3 * scale.float() + 2**-24).nonzero()
    wrong_zeros = ((result[2].float() != zero) & ~_is_tied(exact_zero) & (scale > 0)).nonzero()
    is_wrong = (packed_codes != codes) & ~_is_tied(exact) & (scale > 0).repeat_interleave(group, 1)
    wrong_codes = is_wrong.nonzero()
    if not len(wrong_scales) and not len(wrong_zeros) and not len(wrong_codes):
        return
    decoded = decode(*result, bits, group)
    change = measure(decoded, weight) / measure(decode_codes(codes, scale, zero, group), weight)
    values = {
        "times": change, "count": weight.numel(), "inputs": 256, "groups": 256 // group, "group": group, "top": top, "row": 3,
        "share": float((decoded < weight).float().mean()), "codes": top + 1, "middle": 2 ** (bits - 1),
        "wrong": len(wrong_codes),
    }  # fmt: skip
    likeness = {name: _compare(result, module.quantise(weight, bits, group)) for name, module in plant_ways(WAYS, __file__)}
    if likeness and max(likeness.values()) > ALIKE:
        raise part.wrong(max(likeness, key=likeness.__getitem__), case, **values)
    for name, places, numbers, due in (("scale", wrong_scales, result[1], scale), ("zero", wrong_zeros, result[2], zero)):
        if len(places):
            row, place = places[0].tolist()
            text = f"the {name} of group {place} in row {row} is {float(numbers[row, place]):g}"
            raise Verdict("failed", "other", f"{text} instead of {float(due[row, place]):g}", case)
    row, place = wrong_codes[0].tolist()
    text = (
        f"{len(wrong_codes):,} of {weight.numel():,} codes are wrong. The weight {float(weight[row, place]):g} in row {row}, "
    )
    text += f"place {place} has the code {int(packed_codes[row, place])} instead of {int(codes[row, place])}"
    raise Verdict("failed", "other", text, case)


def _judge_weights(part: Part, dequantise: Any, arguments: tuple[Any, ...], case: str) -> None:
    *tensors, bits, group = arguments
    restored = part.call(dequantise, *(tensor.clone() for tensor in tensors), bits, group, case=case)
    right = decode(*tensors, bits, group)
    if not isinstance(restored, torch.Tensor) or restored.shape != right.shape or restored.dtype != torch.float32:
        form = f"{restored.dtype} {list(restored.shape)}" if isinstance(restored, torch.Tensor) else type(restored).__name__
        raise Verdict("failed", "other", f"it returned {form}, not torch.float32 {list(right.shape)}", case)
    if torch.allclose(restored, right, rtol=1e-5, atol=1e-6):
        return
    for name, module in plant_ways(WAYS, __file__):
        if torch.equal(module.dequantise(*tensors, bits, group), restored):
            raise part.wrong(name, case)
    row, place = (restored != right).nonzero()[0].tolist()
    text = f"place {place} of row {row} came back as {float(restored[row, place]):g} instead of {float(right[row, place]):g}"
    raise Verdict("failed", "other", text, case)


def decode(codes: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor, bits: int, group: int) -> torch.Tensor:
    """Return the weights that the packed codes, scales and zeros represent."""
    return decode_codes(unpack(codes, bits), scale, zero.float(), group)


def decode_codes(codes: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor, group: int) -> torch.Tensor:
    """Return the weights that codes without packing represent."""
    return (codes - zero.repeat_interleave(group, 1)) * scale.float().repeat_interleave(group, 1)


def measure(left: torch.Tensor, right: torch.Tensor) -> float:
    """Return the root of the mean square of the difference."""
    return float((left - right).pow(2).mean().sqrt())


def _is_tied(exact: torch.Tensor) -> torch.Tensor:
    """Return a mask of the numbers that are almost in the middle between two whole numbers."""
    return ((exact - exact.floor()) - 0.5).abs() < ALMOST_HALF


def _compare(left: Result, right: Result) -> float:
    """Return the share of numbers that agree, in the tensor with the fewest; 0 if types or shapes differ."""
    if any(mine.shape != other.shape or mine.dtype != other.dtype for mine, other in zip(left, right, strict=True)):
        return 0.0
    shares = [float((mine == other).float().mean()) for mine, other in zip(left, right, strict=True)]
    return min(shares)
