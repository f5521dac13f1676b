"""Another solution of 4.1: compute in operations and bytes per nanosecond, and scale at the end."""

from __future__ import annotations

OPERATIONS_OF_A_MULTIPLY_ADD = 2
TRANSFERS_A_CLOCK = 2


def derive_peaks(
    sms: int, cores_per_sm: int, tensor_fma_per_clock: int, boost_mhz: float, memory_mhz: float, bus_bits: int
) -> dict[str, float]:
    """Return the peaks of a GPU: TFLOP/s, GB/s, and operations per byte."""
    giga = {"float32": cores_per_sm, "float16": tensor_fma_per_clock}
    for name, units in giga.items():
        giga[name] = sms * units * OPERATIONS_OF_A_MULTIPLY_ADD * boost_mhz / 1000
    bytes_per_ns = TRANSFERS_A_CLOCK * memory_mhz / 1000 * bus_bits / 8
    peaks = {name: operations / 1000 for name, operations in giga.items()}
    return {**peaks, "bandwidth": bytes_per_ns, "ridge": giga["float16"] / bytes_per_ns}
