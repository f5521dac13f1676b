"""Matrix products in several number formats, each checked against double precision."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

# how far a product may be off, as a share of its largest element, by the rounding of the inputs and of the result
FORMATS = {"float64": 1e-12, "float32": 1e-4, "tf32": 5e-3, "float16": 4e-3, "bfloat16": 2e-2, "float8_e4m3fn": 2e-2}
ROWS = 32


@dataclass(frozen=True)
class Product:
    """One matrix product.

    `call` computes it.
    `error` returns its largest error as a share of its largest element, or NaN.
    """

    call: Callable[[], object]
    error: Callable[[], float]
    allowed: float


def impossible(dtype: str, device: torch.device) -> str | None:
    """Return why this device's hardware cannot multiply this format, or None if it can. Emulation does not count."""
    if device.type == "cpu":
        return None if dtype in {"float64", "float32", "bfloat16"} else f"{dtype} is for GPUs"
    capability = torch.cuda.get_device_capability(device)
    if dtype == "bfloat16" and not torch.cuda.is_bf16_supported(including_emulation=False):
        return "this GPU has no bfloat16 in hardware; it would be emulated, which is slow"
    if dtype == "tf32" and capability < (8, 0):
        return "no tf32 before compute capability 8.0: the flag is ignored, and float32 is used"
    if dtype == "float8_e4m3fn" and capability < (8, 9):
        return "no fp8 before compute capability 8.9"
    return None


def prepare(dtype: str, n: int, device: torch.device, seed: int) -> Product:
    """Return the product of two random matrices. Its memory is allocated here, so the call itself allocates nothing."""
    torch.manual_seed(seed)
    torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
    kind = torch.float32 if dtype == "tf32" else getattr(torch, dtype)
    a, b = (torch.randn(n, n, device=device) for _ in range(2))
    if dtype == "float8_e4m3fn":
        scale, low, high = torch.ones((), device=device), a.to(kind), b.t().contiguous().to(kind).t()
        box = [torch._scaled_mm(low, high, scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16)]  # noqa: SLF001 (no public name yet)

        def eight_bits() -> None:
            box[0] = torch._scaled_mm(low, high, scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16)  # noqa: SLF001

        return Product(eight_bits, lambda: _error(box[0], low, high), FORMATS[dtype])
    x, y = a.to(kind), b.to(kind)
    out = torch.full((n, n), float("nan"), dtype=kind, device=device)
    return Product(lambda: torch.mm(x, y, out=out), lambda: _error(out, x, y), FORMATS[dtype])


def _error(product: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> float:
    rows = torch.linspace(0, len(a) - 1, min(ROWS, len(a))).long()
    exact = a.cpu()[rows].double() @ b.cpu().double()
    return ((product.cpu()[rows].double() - exact).abs().max() / exact.abs().max()).item()


def use_part(_world: object, n: int, calls: list[tuple[float, float]], peak: float) -> dict[str, float | None]:
    """Return the learner's rates for a run of products of side `n`: when each call began, and how many seconds it took."""
    import my_rate

    return dict(my_rate.rates(n, n, n, [(began, took) for began, took in calls], peak))


def trace_run(
    calls: Sequence[tuple[float, float]], n: int, rates: Mapping[str, float | None] | None, windows: int = 40
) -> list[dict[str, object]]:
    """Return the points of a plot of a long run: the median TFLOP/s of each of its windows, and the learner's two rates.

    The learner's burst is drawn over the first second, and the sustained rate from the moment at which the run had settled.
    """
    start, length, tera = calls[0][0], sum(calls[-1]) - calls[0][0], 2 * n**3 / 1e12
    by_window: dict[int, list[float]] = {}
    for began, took in calls:
        by_window.setdefault(int((began - start) / length * windows), []).append(took)
    points: list[tuple[str, float, float | None]] = [
        ("measured", length * (window + 0.5) / windows, tera / statistics.median(times))
        for window, times in sorted(by_window.items())
    ]
    if rates:
        points += [("your burst", second, rates["burst"]) for second in (0.0, min(1.0, length))]
        settled_s = rates["settled_s"]
        if settled_s is not None:
            points += [("your sustained rate", second, rates["sustained"]) for second in (settled_s, length)]
    return [{"line": line, "seconds": second, "tflops": tflops} for line, second, tflops in points]


def count_wrong_rates(rates: Mapping[str, float | None], n: int, calls: Sequence[tuple[float, float]], peak: float) -> int:
    """Return how many of a learner's figures are wrong.

    `burst` must be a median of the rates of the first second. The rate must settle in the first two thirds of the run. The
    sustained rate, times the seconds of all calls since then, must be their operations. The percentage must match the sustained
    rate. These three may be None, but only together.
    """
    start, length = calls[0][0], sum(calls[-1]) - calls[0][0]
    tera, burst = 2e-12 * n**3, rates["burst"]
    early_rates = [tera / took for began, took in calls if began < start + 1]
    at_most = sum(rate <= burst * (1 + 1e-6) for rate in early_rates)
    at_least = sum(rate >= burst * (1 - 1e-6) for rate in early_rates)
    wrong = int(2 * min(at_most, at_least) < len(early_rates))
    settled_s, sustained, percent = (rates[name] for name in ("settled_s", "sustained", "percent"))
    if settled_s is None or sustained is None or percent is None:
        return wrong + (not settled_s is sustained is percent)
    late_times = [took for began, took in calls if began - start >= settled_s - 1e-9]
    wrong += not 0 <= settled_s <= length * 2 / 3
    wrong += not math.isclose(sustained * sum(late_times), tera * len(late_times), rel_tol=1e-6)
    return wrong + (not math.isclose(percent * peak, 100 * sustained, rel_tol=1e-6))
