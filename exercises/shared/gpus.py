"""The limits of GPUs: a table with its sources, the formulas behind it, and the ceilings that follow.

A GPU whose exact name is not in the table is unknown. It never gets the figures of another GPU.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DTYPES = {"float32": "fp32", "tf32": "tf32", "float16": "fp16", "bfloat16": "bf16", "float8_e4m3fn": "fp8"}


@dataclass(frozen=True)
class Gpu:
    """One row of gpus.json. Speeds are dense TFLOP/s at boost clock, or None if the hardware lacks the format.

    `drawn`: in the pictures of 4.1.
    `clock_may_exceed`: its boost clock is a typical one, not the highest.
    `aws`: the instance types that have it, with their prices.
    """

    gpu: str
    names: list[str]
    capability: str
    sms: int
    cores_per_sm: int
    tensor_fma_per_clock: int | None
    boost_ghz: float | None
    fp32: float
    tf32: float | None
    fp16: float
    bf16: float | None
    fp8: float | None
    memory_gb: float
    memory: str
    bus_bits: int
    memory_mhz: float
    gb_per_s: float
    tdp_w: float
    l2_mb: float | None
    link: str
    measured_fp16: list[float] | None
    note: str
    drawn: bool = False
    clock_may_exceed: bool = False
    aws: dict[str, Any] = field(default_factory=dict)

    def peak_tflops(self, dtype: str) -> float | None:
        """Return the data sheet's peak for torch's name of a dtype. float32 means true fp32, tf32 the shortened format."""
        return getattr(self, DTYPES[dtype]) if dtype in DTYPES else None

    @property
    def ridge_flop_per_byte(self) -> float:
        """Return the operations per byte, in fp16, above which the tensor cores are the limit, not the memory."""
        return self.fp16 * 1e3 / self.gb_per_s


@dataclass(frozen=True)
class DerivedPeaks:
    """The ceilings of a GPU without a row, derived from its own numbers.

    They are TFLOP/s by torch's name of a dtype (None if its generation has no such unit), and the bandwidth in GB/s (None if
    the driver does not report it).
    """

    tflops: dict[str, float | None]
    gb_per_s: float | None


def derive(props: Any, clock_mhz: float | None) -> DerivedPeaks | None:
    """Return the ceilings of a GPU that is not in the table, from torch's properties and its highest clock.

    GPUs of one generation differ in how many of each unit they have. The largest number in the table per processor and clock is
    used, so no real GPU exceeds the result. Return None for an unknown generation or clock.
    """
    device_clock = getattr(props, "clock_rate", None)
    ghz = clock_mhz / 1e3 if clock_mhz else device_clock / 1e6 if device_clock else None
    kin = [gpu for gpu in table() if gpu.capability == f"{props.major}.{props.minor}" and gpu.boost_ghz]
    if not kin or not ghz:
        return None
    tflops = {}
    for dtype in DTYPES:
        peaks = [(gpu.peak_tflops(dtype), gpu.sms * (gpu.boost_ghz or ghz)) for gpu in kin]
        per_clock = [peak / units for peak, units in peaks if peak]
        tflops[dtype] = max(per_clock) * props.multi_processor_count * ghz if per_clock else None
    khz, bus = getattr(props, "memory_clock_rate", None), getattr(props, "memory_bus_width", None)
    return DerivedPeaks(tflops, memory_gb_per_s(khz, bus) if khz and bus else None)


def table() -> list[Gpu]:
    """Return every GPU of gpus.json, in its order."""
    return [Gpu(**row) for row in document()["gpus"]]


def document() -> dict[str, Any]:
    """Return all of gpus.json: the sources of its figures, the GPUs, and the instance types that have them."""
    data: dict[str, Any] = json.loads(Path(__file__).resolve().with_name("gpus.json").read_text(encoding="utf-8"))
    return data


def find(device_name: str) -> Gpu | None:
    """Return the GPU with exactly this name, ignoring case and spaces, or None if it is not in the table."""
    name = _normal(device_name)
    return next((gpu for gpu in table() if name in map(_normal, gpu.names)), None)


def cores_per_sm(capability: str) -> int | None:
    """Return the cores of one processor in that generation of GPUs ("8.9"), or None for an unknown generation."""
    by_capability = {gpu.capability: gpu.cores_per_sm for gpu in table()}
    return by_capability.get(capability, document()["cores_per_sm"].get(capability))


def _normal(name: str) -> str:
    return " ".join(name.lower().split())


def tensor_peak_tflops(sms: int, fma_per_clock: int, ghz: float) -> float:
    """Return the dense tensor peak: processors x multiply-adds per clock x 2 operations each x clock."""
    return sms * fma_per_clock * 2 * ghz / 1e3


def fp32_peak_tflops(sms: int, cores_per_sm: int, ghz: float) -> float:
    """Return the peak without tensor cores: each core performs one multiply-add, two operations, per clock."""
    return sms * cores_per_sm * 2 * ghz / 1e3


def memory_gb_per_s(clock_khz: float, bus_bits: int) -> float:
    """Return the peak of the memory: two transfers per clock (DDR) over the whole width of the bus."""
    return clock_khz * 1e3 * 2 * bus_bits / 8 / 1e9


def matmul_tflops(n: int, seconds: float) -> float:
    """Return the speed of a product of two n x n matrices: n³ multiplications and as many additions."""
    return 2 * n**3 / seconds / 1e12


def format_flops(tflops: float | None) -> str | None:
    """Return a speed in the unit that suits it, "42.1 TFLOP/s" or "196 GFLOP/s", or None if it was not measured."""
    if tflops is None:
        return None
    value, unit = (tflops, "TFLOP/s") if tflops >= 1 else (tflops * 1e3, "GFLOP/s")
    return f"{value:,.{0 if value >= 100 else 1}f} {unit}"


def decode_ceiling(batch: int, gb_per_s: float, weight_bytes: float, kv_bytes_per_sequence: float = 0.0) -> float:
    """Return the tokens per second that no engine can exceed, because each step reads all weights and each sequence's cache."""
    return batch * gb_per_s * 1e9 / (weight_bytes + batch * kv_bytes_per_sequence)


def compute_ceiling(tflops: float, parameters: float) -> float:
    """Return the tokens per second that no engine can exceed with any batch: a token takes two operations per parameter."""
    return tflops * 1e12 / (2 * parameters)


def cpu_limit_tflops(cores: int) -> float:
    """Return a limit in float32 TFLOP/s for any CPU: 6 GHz on every core, two multiply-adds of 16 numbers each per clock."""
    return cores * 6 * 2 * 16 * 2 / 1e3
