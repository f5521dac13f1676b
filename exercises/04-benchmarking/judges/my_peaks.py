"""Judges my_peaks.py of 4.1 by the peaks that vendors print for real GPUs, and by those of an invented GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpucourse.judge import Case, Part, Way

NAMES = ["bandwidth", "float16", "float32", "ridge"]
WAYS = {
    "one-operation": Way(
        "you counted a multiply-add as one operation in {what}: it is two, a multiplication and an addition. Every data sheet "
        "counts in this way, and with half the peak a measurement could exceed 100%",
        ("tensor_fma_per_clock * 2", "tensor_fma_per_clock"),
    ),
    "sparse": Way(
        "your {what} peak is twice what a dense product can reach: that is the figure with sparsity, or each multiply-add "
        "counted as four operations. Count two, and do not count skipped multiplications by zero",
        ("tensor_fma_per_clock * 2", "tensor_fma_per_clock * 4"),
    ),
    "of-one-processor": Way(
        "your {what} peak is that of one processor: a GPU has {sms} of them, and all work at the same time",
        ("sms * cores_per_sm", "cores_per_sm"),
    ),
    "cores-again": Way(
        "you took the {cores} cores of a processor for the float16 peak: float16 is multiplied by its tensor cores, which "
        "perform {fma} multiply-adds a clock",
        ("sms * tensor_fma_per_clock", "sms * cores_per_sm"),
    ),
    "one-transfer": Way(
        "your bandwidth is half: the memory makes two transfers a clock (double data rate), at the rising and the falling edge",
        ("memory_mhz * 1e6 * 2", "memory_mhz * 1e6"),
    ),
    "bits": Way(
        "your bandwidth counts bits: a bus of {bus} bits moves {bytes} bytes in a transfer, and GB/s counts bytes",
        ("(bus_bits / 8)", "bus_bits"),
    ),
    "upside-down": Way(
        "your ridge is bytes per operation: the ridge is the inverse, operations per byte",
        ("float16 * 1e12 / (bandwidth * 1e9)", "bandwidth * 1e9 / (float16 * 1e12)"),
    ),
    "ridge-of-float32": Way(
        "your ridge uses the float32 peak: it says when tensor cores become the limit, and their peak is the float16 peak",
        ('"ridge": float16 * 1e12', '"ridge": float32 * 1e12'),
    ),
    "ridge-units": Way(
        "your ridge mixes units: TFLOP/s over GB/s leaves a factor of 1000. Convert both to operations and bytes a second",
        ("float16 * 1e12 / (bandwidth * 1e9)", "float16 / bandwidth"),
    ),
}
# processors, cores each, multiply-adds a clock, MHz, memory MHz, bits of the bus
INPUTS = (
    ("a T4", (40, 64, 512, 1590.0, 5001.0, 256)),
    ("an A100", (108, 64, 1024, 1410.0, 1215.0, 5120)),
    ("an H100", (132, 128, 2048, 1830.0, 2619.0, 5120)),
    ("a GPU with 3 processors", (3, 48, 96, 700.0, 1333.0, 96)),
)


def judge(part: Part) -> None:
    """Judge every figure of four GPUs. The ridge comes last, because it is computed from the others."""
    derive_peaks = part.function("derive_peaks")
    answers = [(name, numbers, part.call(derive_peaks, *numbers, case=name)) for name, numbers in INPUTS]
    for name, _, answer in answers:
        listed = sorted(map(str, answer)) if isinstance(answer, Mapping) else answer
        part.compare([Case(f"the names in the result for {name}", listed, NAMES)])
    for figure in ("float32", "float16", "bandwidth", "ridge"):
        part.compare([_case(figure, name, numbers, answer[figure]) for name, numbers, answer in answers], tolerance=1e-6)
    part.note(f"right for {len(INPUTS)} GPUs; an H100 needs {answers[2][2]['ridge']:.0f} operations per byte, a T4 "
              f"{answers[0][2]['ridge']:.0f}")  # fmt: skip


def _case(figure: str, name: str, numbers: tuple[Any, ...], answer: object) -> Case:
    sms, cores, fma, mhz, memory_mhz, bits = numbers
    float32, float16 = sms * cores * 2 * mhz / 1e6, sms * fma * 2 * mhz / 1e6
    bandwidth = memory_mhz * 2 * bits / 8 / 1e3
    ridge = float16 * 1e3 / bandwidth
    right = {"float32": float32, "float16": float16, "bandwidth": bandwidth, "ridge": ridge}[figure]
    peak_ways = {"one-operation": right / 2, "sparse": right * 2, "of-one-processor": right / sms}
    ways = {
        "float32": peak_ways,
        "float16": {**peak_ways, "cores-again": float32},
        "bandwidth": {"one-transfer": bandwidth / 2, "bits": bandwidth * 8},
        "ridge": {"upside-down": 1 / ridge, "ridge-of-float32": float32 * 1e3 / bandwidth, "ridge-units": ridge / 1e3},
    }
    values = {"what": figure, "sms": sms, "cores": cores, "fma": fma, "bus": bits, "bytes": bits // 8}
    return Case(f"{figure} of {name}", answer, right, ways[figure], values)
