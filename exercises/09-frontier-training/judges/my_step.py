"""Judge my_step.py of 9.5: the three products of a layer and what is kept for backward, then `stochastic` by the means of
its results."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from number_formats import truncate
from recipes import Rounded, cast, count_kept_bytes, multiply

from gpucourse.judge import Part, Verdict, Way, plant_ways

WAYS = {
    "output-wide": Way(
        "the output is the product of float32 numbers: the operands of each product are in E4M3",
        ("multiply(cast(x), cast(weight))", "x @ weight.T"),
    ),
    "of-x-wide": Way(
        "the gradient of x is a product of float32 numbers: the products of backward have operands in E4M3, too",
        ("multiply(cast(gradient), cast(weight.T))", "gradient @ weight"),
    ),
    "weight-along-inputs": Way(
        "the gradient of x uses the weight with scales along its inputs: this product sums over the outputs, so every term of "
        "a sum has a different scale, and a GPU cannot apply the scales after the sum",
        ("multiply(cast(gradient), cast(weight.T))", "cast(gradient).values() @ cast(weight).values()"),
    ),
    "gradient-along-outputs": Way(
        "the weight's gradient uses the gradient with scales along the outputs: this product sums over the tokens, so every "
        "term of a sum has a different scale, and a GPU cannot apply the scales after the sum",
        ("multiply(cast(gradient.T), columns)", "cast(gradient).values().T @ columns.values().T"),
    ),
    "kept-along-inputs": Way(
        "the weight's gradient uses x with scales along its inputs, as the output needs them: this product sums over the "
        "tokens, so every term of a sum has a different scale",
        (
            "(cast(x.T),)",
            "(type(cast(x))(cast(x).values().T.reshape(x.shape[1], -1, 32), torch.ones(x.shape[1], len(x) // 32, 1)),)",
        ),
    ),
    "x-rounded-twice": Way(
        "the weight's gradient uses an x that was rounded twice, along its inputs and then along the tokens: the second "
        "rounding adds its error to that of the first. Round float32 numbers only",
        ("(cast(x.T),)", "(cast(cast(x).values().T),)"),
    ),
    "kept-wide": Way(
        "forward keeps {bytes:.4g} bytes for each number of x: the operand that backward needs is known in forward, and takes "
        "little more than one",
        ("(cast(x.T),)", "(cast(x.T), x)"),
    ),
    "kept-both": Way(
        "forward keeps two copies of x, {bytes:.4g} bytes for each of its numbers: which of the two does backward multiply?",
        ("(cast(x.T),)", "(cast(x.T), cast(x))"),
    ),
    "always-the-nearest": Way(
        "{x} became {answer} in all of {count:,} roundings: the neighbours must alternate at random, so that the mean is {x}",
        ("torch.floor(x / step + torch.rand(x.shape, generator=generator))", "torch.round(x / step)"),
    ),
    "even-chances": Way(
        "{x} went up in {share:.0%} of the roundings, as if both neighbours were equally near: the mean is {mean:.6g} instead "
        "of {x}",
        (
            "torch.floor(x / step + torch.rand(x.shape, generator=generator))",
            "(torch.floor(x / step) + (x % step != 0) * (torch.rand(x.shape, generator=generator) < 0.5))",
        ),
    ),
    "one-coin-for-all": Way(
        "all {count:,} equal numbers went the same way: each needs its own random number, or their errors add up",
        ("torch.rand(x.shape, generator=generator)", "torch.rand(1, generator=generator)"),
    ),
    "towards-zero": Way(
        "the mean of {x} is {mean:.6g}: right for positive numbers, but cutting off moves negative numbers up. Round down "
        "instead",
        ("torch.floor(x / step + torch", "torch.trunc(x / step + torch"),
    ),
    "one-step-for-all": Way(
        "{x} became {answer}: the distance of two numbers of the format is 2 ** -{bits} only between 1 and 2. It doubles with "
        "every power of two",
        ("torch.ldexp(torch.ones_like(x), exponent - mantissa_bits)", "2.0**-mantissa_bits"),
    ),
    "step-of-the-next-power": Way(
        "{x} became {answer}: its neighbours are {low} and {high}, and your steps are twice as large. torch.frexp returns an "
        "exponent that is one larger than that of the power of two below x",
        ("torch.frexp(x).exponent - 1", "torch.frexp(x).exponent"),
        seen="{x} became {answer}: its neighbours are {low} and {high}",
    ),
    "other-generator": Way(
        "two calls after the same seed returned different numbers: take the random numbers from `generator`",
        ("torch.rand(x.shape, generator=generator)", "torch.rand(x.shape)"),
    ),
}
COUNT, SIGMAS, MAX_BYTES, TOLERANCE = 40_000, 5.0, 1.2, 1e-5
SHAPES = (64, 96, 128), (32, 32, 64), (160, 64, 32)  # tokens, inputs, outputs
CHANCES = (7, 1.003), (7, -1.003), (7, 100.1), (10, 0.30001), (3, -0.0131), (7, 0.9975), (7, 1.5), (7, 0.0)


class Products(NamedTuple):
    """The results of one layer, and the bytes that it keeps for each number of x."""

    output: torch.Tensor
    of_x: torch.Tensor
    of_weight: torch.Tensor
    kept_bytes: float


def judge(part: Part) -> None:
    """Judge the layer with three shapes, then stochastic."""
    torch.set_num_threads(1)
    for shape in SHAPES:
        _judge_layer(part, shape)
    part.note(f"the three products of {len(SHAPES)} layers are those of a GPU, and x is kept in little more than a byte")
    for mantissa_bits, x in CHANCES:
        _judge_stochastic(part, mantissa_bits, x)
    part.note(f"stochastic rounding keeps means within {SIGMAS:g} standard errors")


def make_layer(tokens: int, inputs: int, outputs: int) -> list[torch.Tensor]:
    """Return x, the weight and a gradient. Their rows and their columns have very different sizes."""
    source = torch.Generator().manual_seed(tokens)
    shapes = (tokens, inputs), (outputs, inputs), (tokens, outputs)
    sizes = [[torch.exp2(torch.randint(-5, 6, (n,), generator=source).float()) for n in shape] for shape in shapes]
    return [
        torch.randn(shape, generator=source) * rows[:, None] * columns
        for shape, (rows, columns) in zip(shapes, sizes, strict=True)
    ]


def _judge_layer(part: Part, shape: tuple[int, int, int]) -> None:
    case = "a layer of {} tokens, {} inputs and {} outputs".format(*shape)
    x, weight, gradient = make_layer(*shape)
    forward, backward = part.function("forward"), part.function("backward")
    pair = _read_pair(part.call(forward, x.clone(), weight.clone(), cast, multiply, case=case), "forward", case)
    output = _read(pair[0], (shape[0], shape[2]), "the output", case)
    right = multiply(cast(x), cast(weight))
    if not _is_close(output, right):
        _name_product(part, case, shape, (output, None, None))
        raise Verdict("failed", "other", f"the output is {_show_off(output, right)}", case)
    try:
        kept_bytes = count_kept_bytes(pair[1]) / x.numel()
    except TypeError as error:
        raise Verdict("failed", "other", str(error), case) from None
    results = part.call(backward, gradient.clone(), weight.clone(), pair[1], cast, multiply, case=case)
    results = _read_pair(results, "backward", case)
    of_x = _read(results[0], (shape[0], shape[1]), "the gradient of x", case)
    of_weight = _read(results[1], (shape[2], shape[1]), "the gradient of the weight", case)
    products = ("x", of_x, multiply(cast(gradient), cast(weight.T))), (
        "the weight", of_weight, multiply(cast(gradient.T), cast(x.T)))  # fmt: skip
    for number, (name, result, expected) in enumerate(products):
        if not _is_close(result, expected):
            _name_product(part, case, shape, (None, result, None) if number == 0 else (None, None, result))
            raise Verdict("failed", "other", f"the gradient of {name} is {_show_off(result, expected)}", case)
    if kept_bytes >= MAX_BYTES:
        has_copies = isinstance(pair[1], tuple) and all(isinstance(item, Rounded) for item in pair[1])
        raise part.wrong("kept-both" if has_copies else "kept-wide", case, bytes=kept_bytes)


def _name_product(part: Part, case: str, shape: tuple[int, int, int], results: tuple[torch.Tensor | None, ...]) -> None:
    """Raise the verdict for the known mistake that has the same wrong product, if there is one."""
    x, weight, gradient = make_layer(*shape)
    for way, module in plant_ways(WAYS, __file__):
        if way == "always-the-nearest":
            return
        output, context = module.forward(x, weight, cast, multiply)
        planted = output, *module.backward(gradient, weight, context, cast, multiply)
        if all(result is None or _is_close(result, other) for result, other in zip(results, planted, strict=True)):
            raise part.wrong(way, case, bytes=0.0)


def _is_close(result: torch.Tensor, right: torch.Tensor) -> bool:
    return bool((result - right).abs().amax() <= TOLERANCE * right.abs().amax())


def _show_off(result: torch.Tensor, right: torch.Tensor) -> str:
    off = float((result - right).abs().amax() / right.abs().amax())
    return f"off by {off:.2g} of its largest number from what a GPU computes with operands that were each rounded once"


def _read_pair(result: Any, name: str, case: str) -> tuple[Any, Any]:
    if not isinstance(result, tuple) or len(result) != 2:
        shape = f"a tuple of {len(result)}" if isinstance(result, tuple) else type(result).__name__
        raise Verdict("failed", "no-answer", f"{name} returned {shape}: it returns two things", case)
    return result


def _read(result: Any, shape: tuple[int, ...], name: str, case: str) -> torch.Tensor:
    if not isinstance(result, torch.Tensor):
        raise Verdict("failed", "other", f"{name} is {type(result).__name__}, not a tensor", case)
    if tuple(result.shape) != shape or result.dtype != torch.float32:
        text = f"{name} is {result.dtype} of the shape {list(result.shape)}, not float32 of the shape {list(shape)}"
        raise Verdict("failed", "other", text, case)
    return result


def _seed(number: int) -> torch.Generator:
    return torch.Generator().manual_seed(number)


def _judge_stochastic(part: Part, bits: int, x: float) -> None:
    stochastic, case = part.function("stochastic"), f"stochastic, {x:g} with {bits} bits of mantissa"
    source = torch.full((COUNT // 8, 8), x)
    first, again, other = (
        _read(part.call(stochastic, source.clone(), bits, _seed(seed), case=case), (COUNT // 8, 8), "the result", case)
        for seed in (1, 1, 2)
    )
    if not torch.equal(first, again):
        raise part.wrong("other-generator", case)
    low, high = truncate(x, bits)
    values = {
        "x": f"{x:g}", "low": f"{low:.8g}", "high": f"{high:.8g}", "count": COUNT, "bits": bits,
        "mean": float(first.double().mean()), "share": float((other == high).double().mean()),
        "answer": f"{float(first[0, 0]):.8g}",
    }  # fmt: skip
    strange = (first != low) & (first != high)
    if float(strange.float().mean()) > 1e-4:  # a sum of a number and a random one below 1 may itself round up, rarely
        _name_neighbour(part, case, values | {"answer": f"{float(first[strange][0]):.8g}"}, (bits, x), first)
    if low < high:
        _judge_mean(part, case, values, (x, low, high), other, bits)


def _name_neighbour(part: Part, case: str, values: dict[str, Any], call: tuple[int, float], result: torch.Tensor) -> None:
    """Raise the verdict if a result is not one of the two neighbours of x."""
    bits, x = call
    numbers = set(result.unique().tolist())
    for way, module in plant_ways(WAYS, __file__):
        if way in ("one-step-for-all", "step-of-the-next-power", "towards-zero"):
            planted = set(module.stochastic(torch.full_like(result, x), bits, _seed(1)).unique().tolist())
            if numbers == planted:
                raise part.wrong(way, case, **values)
    if values["low"] == values["high"]:
        raise Verdict(
            "failed", "other", "{x} became {answer}: it is a number of the format, so it stays".format_map(values), case
        )
    raise Verdict("failed", "other", "{x} became {answer}: its neighbours are {low} and {high}".format_map(values), case)


def _judge_mean(
    part: Part, case: str, values: dict[str, Any], place: tuple[float, float, float], result: torch.Tensor, bits: int
) -> None:
    x, low, high = place
    share, right = float(values["share"]), (x - low) / (high - low)
    if share in (0.0, 1.0):
        stochastic, single = part.function("stochastic"), torch.full((1,), x)
        results = {float(part.call(stochastic, single.clone(), bits, _seed(seed), case=case)) for seed in range(3, 40)}
        raise part.wrong("one-coin-for-all" if len(results) > 1 else "always-the-nearest", case, **values)
    if abs(share - right) <= SIGMAS * math.sqrt(right * (1 - right) / COUNT):
        return
    if abs(share - 0.5) <= SIGMAS * 0.5 / math.sqrt(COUNT):
        raise part.wrong("even-chances", case, **values)
    if x < 0 and abs(share - 1 + right) <= SIGMAS * math.sqrt(right * (1 - right) / COUNT):
        raise part.wrong("towards-zero", case, **values)
    mean = float(result.double().mean())
    raise Verdict(
        "failed", "other", f"{x:g} went up to {high:.8g} in {share:.1%} of the roundings: their mean is {mean:.8g}", case
    )
