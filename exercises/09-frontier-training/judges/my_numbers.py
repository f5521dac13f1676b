"""Judges my_numbers.py of 9.5: every bit of quantise against torch's casts, and stochastic by its means."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from number_formats import FORMATS, list_numbers, round_to
from torch.utils._python_dispatch import TorchDispatchMode

from gpucourse.judge import Part, Verdict, Way, plant_ways

SMALL_TYPES = (torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.float8_e5m2)
WAYS = {
    "library": Way(
        "it converts to {dtype}, a small type of PyTorch: find the nearest number yourself",
        ("    x = x.clamp(-largest, largest)\n", "    x = x.to(torch.float8_e4m3fn).float().clamp(-largest, largest)\n"),
    ),
    "truncated": Way(
        "{x} became {answer} in {form}: cut off, not rounded. {right} is nearer",
        ("torch.round(x / step)", "torch.trunc(x / step)"),
    ),
    "rounded-down": Way(
        "{x} became {answer} in {form}: rounded down, so every sum of such numbers is too small. {right} is nearer",
        ("torch.round(x / step)", "torch.floor(x / step)"),
    ),
    "half-up": Way(
        "{x} is half way between two numbers of {form} and became {answer}: a tie goes to the number whose "
        "last bit is 0, {right}",
        ("torch.round(x / step)", "(torch.sign(x) * torch.floor(x.abs() / step + 0.5))"),
    ),
    "small-to-zero": Way(
        "{x} became {answer} in {form}: below its smallest power of two the format still has equally spaced "
        "numbers, {right} here",
        (
            "    return torch.round(x / step) * step",
            "    return torch.where(x.abs() < 2.0**lowest, 0 * x, torch.round(x / step) * step)",
        ),
    ),
    "endless-exponent": Way(
        "{x} became {answer}, which {form} does not have: below its smallest power of two the spacing stays the same",
        ("exponent.clamp(min=lowest)", "exponent.clamp(min=-140)"),
    ),
    "bias-off": Way(
        "{x} became {answer} in {form}: your smallest exponent is one too low. It is 2 - 2 ** (exponent_bits "
        "- 1), which is {lowest}",
        ("lowest = 2 - 2 ** (exponent_bits - 1)", "lowest = 1 - 2 ** (exponent_bits - 1)"),
    ),
    "top-exponent-kept-free": Way(
        "{x} became {answer} in {form}: you computed the largest number as in IEEE 754, which keeps the top exponent for "
        "infinity. The largest number is the one that is passed, {largest}",
        (
            "    x = x.clamp(-largest, largest)\n",
            "    largest = (2 - 2.0**-mantissa_bits) * 2.0 ** (2 ** (exponent_bits - 1) - 1)\n    x = "
            "x.clamp(-largest, largest)\n",
        ),
    ),
    "never-limited": Way(
        "{x} became {answer} in {form}: beyond the largest number, {largest}, everything becomes the largest",
        ("    x = x.clamp(-largest, largest)\n", ""),
    ),
    "one-bit-less": Way(
        "{x} became {answer} instead of {right} in {form}: {bits} stored bits of mantissa are 2 ** {bits} "
        "numbers from one power of "
        "two to the next, and your steps are twice as large",
        ("exponent.clamp(min=lowest) - mantissa_bits", "exponent.clamp(min=lowest) - mantissa_bits + 1"),
    ),
    "one-bit-more": Way(
        "{x} became {answer}, which {form} does not have: it has {bits} stored bits of mantissa, and your "
        "steps are half as large",
        ("exponent.clamp(min=lowest) - mantissa_bits", "exponent.clamp(min=lowest) - mantissa_bits - 1"),
    ),
    "rounded-twice": Way(
        "{x} became {answer} in {form} instead of {right}: it was rounded to fewer bits before, and the first result was a tie",
        (
            "    x = x.clamp(-largest, largest)\n",
            "    x = ((x.view(torch.int32) + 0x7FFF + (x.view(torch.int32) >> 16 & 1)) & -65536).view(torch.float32)\n"
            "    x = x.clamp(-largest, largest)\n",
        ),
    ),
    "sign-of-zero": Way(
        "{x} became {answer} in {form}: the sign of 0 is lost, so a bit differs from the hardware's result",
        ("    return torch.round(x / step) * step", "    return torch.round(x / step) * step + 0.0"),
    ),
    "always-the-nearest": Way(
        "{x} became {answer} in all of {count:,} roundings: the neighbours must alternate at random, so that the mean is {x}",
        ("torch.floor(x / step + torch.rand(x.shape, generator=generator))", "torch.round(x / step)"),
    ),
    "even-chances": Way(
        "{x} went up in {share:.0%} of the roundings, as if both neighbours were equally near: the mean is {mean:.4g} instead "
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
        "the mean of {x} is {mean:.4g}: right for positive numbers, but cutting off moves negative numbers "
        "up. Round down instead",
        ("torch.floor(x / step + torch", "torch.trunc(x / step + torch"),
    ),
    "other-generator": Way(
        "two calls after the same seed returned different numbers: take the random numbers from `generator`",
        ("torch.rand(x.shape, generator=generator)", "torch.rand(x.shape)"),
    ),
}
COUNT, SIGMAS = 40_000, 5.0


class Watcher(TorchDispatchMode):
    """Remembers the first small floating-point type that an operation returns."""

    dtype: torch.dtype | None = None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Return the result of an operation, and note its type."""
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and result.dtype in SMALL_TYPES:
            self.dtype = self.dtype or result.dtype
        return result


def judge(part: Part) -> None:
    """Judge quantise for five formats, then stochastic."""
    torch.set_num_threads(1)
    _judge_quantise(part)
    _judge_stochastic(part)


def list_inputs() -> Iterator[tuple[str, torch.Tensor]]:
    """Return what is rounded: numbers of every size, and a matrix that is not contiguous."""
    yield "numbers of every size", list_numbers(200_000, seed=4)
    yield "a matrix", torch.linspace(-500, 500, 60).view(6, 10).T


def _judge_quantise(part: Part) -> None:
    quantise = part.function("quantise")
    failures = []
    inputs = dict(list_inputs())
    for name in sorted(FORMATS, key=lambda name: name != "E4M3"):
        form = FORMATS[name]
        for case, numbers in inputs.items():
            with Watcher() as watcher:
                result = part.call(
                    quantise, numbers.clone(), form.exponent_bits, form.mantissa_bits, form.largest, case=f"{name}, {case}"
                )
            if watcher.dtype is not None:
                raise part.wrong("library", f"{name}, {case}", dtype=watcher.dtype)
            result = _read(result, numbers, f"{name}, {case}")
            if bool((result.contiguous().view(torch.int32) != round_to(numbers, name).contiguous().view(torch.int32)).any()):
                failures.append((name, case, result))
    if not failures:
        count = sum(map(torch.Tensor.numel, inputs.values()))
        part.note(f"{count:,} numbers equal PyTorch's casts in every bit, in {len(FORMATS)} formats")
        return
    name, values = _describe(failures[0], inputs)
    for way, module in plant_ways(WAYS, __file__):
        if way == "library":
            continue
        if all(_is_same(result, _apply(module, inputs[case], name)) for name, case, result in failures):
            raise part.wrong(way, name, **values)
    text = f"{values['x']} became {values['answer']} instead of {values['right']} in {values['form']}"
    raise Verdict("failed", "other", text, name)


def _apply(module: Any, numbers: torch.Tensor, name: str) -> torch.Tensor:
    form = FORMATS[name]
    result: torch.Tensor = module.quantise(numbers.clone(), form.exponent_bits, form.mantissa_bits, form.largest)
    return result


def _is_same(left: torch.Tensor, right: torch.Tensor) -> bool:
    return torch.equal(left.contiguous().view(torch.int32), right.contiguous().view(torch.int32))


def _describe(failure: tuple[str, str, torch.Tensor], inputs: dict[str, torch.Tensor]) -> tuple[str, dict[str, object]]:
    """Return the case, and the first wrong number that is easy to read: not too large and not too small, if there is one."""
    name, case, result = failure
    form, numbers, right = FORMATS[name], inputs[case], round_to(inputs[case], name)
    wrong = result.contiguous().view(torch.int32) != right.contiguous().view(torch.int32)
    easy = wrong & (numbers.abs() < 1000) & (numbers.abs() > 1e-3)
    first = int((easy if bool(easy.any()) else wrong).flatten().nonzero()[0])
    values = {
        key: f"{float(tensor.flatten()[first]):.8g}" for key, tensor in (("x", numbers), ("answer", result), ("right", right))
    }
    return f"{name}, {case}", {
        **values, "form": name, "bits": form.mantissa_bits, "largest": f"{form.largest:g}",
        "lowest": 2 - 2 ** (form.exponent_bits - 1),
    }  # fmt: skip


def _read(result: Any, source: torch.Tensor, case: str) -> torch.Tensor:
    if result is None:
        raise Verdict("failed", "no-answer", "it returned None: is the return missing?", case)
    if not isinstance(result, torch.Tensor):
        raise Verdict("failed", "other", f"it returned {type(result).__name__}, not a tensor", case)
    if result.shape != source.shape or result.dtype != torch.float32:
        text = f"it returned {result.dtype} of the shape {list(result.shape)}, not float32 of the shape {list(source.shape)}"
        raise Verdict("failed", "other", text, case)
    return result


def _judge_stochastic(part: Part) -> None:
    stochastic = part.function("stochastic")
    for step, units in ((0.5, 2.1), (2.0**-7, 128.25), (0.25, -3.9), (8.0, -0.3), (1.0, 5.0)):
        x, case = step * units, f"stochastic, {step * units:g} with steps of {step:g}"
        source = torch.full((COUNT // 8, 8), x)
        results = [
            _read(part.call(stochastic, source.clone(), step, _seed(seed), case=case), source, case) for seed in (1, 1, 2)
        ]
        if not torch.equal(results[0], results[1]):
            raise part.wrong("other-generator", case)
        low, high = step * math.floor(units), step * math.ceil(units)
        strange = (results[0] != low) & (results[0] != high)
        if bool(strange.any()):
            answer = float(results[0][strange][0])
            if units < 0 and answer == high + step:
                raise part.wrong("towards-zero", case, x=f"{x:g}", mean=float(results[0].mean()))
            text = f"{x:g} became {answer:g}: its neighbours are {low:g} and {high:g}"
            raise Verdict("failed", "other", text, case)
        if low != high:
            _judge_mean(part, results, case, (x, low, high))
    part.note(f"stochastic rounding keeps means within {SIGMAS:g} standard errors")


def _seed(number: int) -> torch.Generator:
    return torch.Generator().manual_seed(number)


def _judge_mean(part: Part, results: list[torch.Tensor], case: str, place: tuple[float, float, float]) -> None:
    x, low, high = place
    ups = [float((result == high).double().mean()) for result in results[1:]]
    right, mean = (x - low) / (high - low), float(results[0].double().mean())
    values = {"x": f"{x:g}", "answer": f"{float(results[0][0, 0]):g}", "count": COUNT, "share": ups[0], "mean": mean}
    if ups[0] in (0.0, 1.0):
        stochastic, single = part.function("stochastic"), torch.full((1,), x)
        seeds = [_read(part.call(stochastic, single.clone(), high - low, _seed(seed)), single, case)
                 for seed in range(3, 40)]  # fmt: skip
        is_random = len({float(result) for result in seeds}) > 1
        raise part.wrong("one-coin-for-all" if is_random else "always-the-nearest", case, **values)
    if abs(ups[0] - right) <= SIGMAS * math.sqrt(right * (1 - right) / COUNT):
        return
    if abs(ups[0] - 0.5) <= SIGMAS * 0.5 / math.sqrt(COUNT):
        raise part.wrong("even-chances", case, **values)
    if x < 0 and ups[0] > right:
        raise part.wrong("towards-zero", case, **values)
    text = f"{x:g} went up to {high:g} in {ups[0]:.1%} of the roundings, so their mean is {mean:.4g}"
    raise Verdict("failed", "other", text, case)
