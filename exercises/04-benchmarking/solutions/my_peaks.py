"""A solution of 4.1: peaks from processors, units, clocks and the width of the bus."""

from __future__ import annotations


def derive_peaks(
    sms: int, cores_per_sm: int, tensor_fma_per_clock: int, boost_mhz: float, memory_mhz: float, bus_bits: int
) -> dict[str, float]:
    """Return the peaks of a GPU: TFLOP/s, GB/s, and operations per byte."""
    clocks_per_s = boost_mhz * 1e6
    float32 = sms * cores_per_sm * 2 * clocks_per_s / 1e12
    float16 = sms * tensor_fma_per_clock * 2 * clocks_per_s / 1e12
    bandwidth = memory_mhz * 1e6 * 2 * (bus_bits / 8) / 1e9
    return {"float32": float32, "float16": float16, "bandwidth": bandwidth, "ridge": float16 * 1e12 / (bandwidth * 1e9)}
