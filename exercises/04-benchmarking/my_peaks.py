"""Your part of 4.1: compute the peaks of a GPU from the numbers that it reports.

You will learn    where each figure of a data sheet comes from, and how to check one that looks too good
You will produce  a `derive_peaks` that is right for any GPU
Try it            gpucourse try 4.1
Your part         the body of `derive_peaks`; keep its name, its parameters and the names in its result
Reading           modules/04-benchmarking/lesson.md, "Five numbers of a GPU"
"""

from __future__ import annotations


def derive_peaks(
    sms: int, cores_per_sm: int, tensor_fma_per_clock: int, boost_mhz: float, memory_mhz: float, bus_bits: int
) -> dict[str, float]:
    """Return the peaks of a GPU: {"float32", "float16", "bandwidth", "ridge"}.

    The GPU has `sms` processors (SM), each with `cores_per_sm` cores and with tensor cores. Together, the tensor cores of one
    processor perform `tensor_fma_per_clock` multiply-adds of float16 numbers per clock. Cores and tensor cores run at
    `boost_mhz`. The memory runs at `memory_mhz`, as the driver reports it (two transfers per clock), over a bus of `bus_bits`.

    No number assumes sparsity.

    "float32": the peak of the cores in TFLOP/s (10**12 operations a second); a core performs one multiply-add per clock.
    "float16": the peak of the tensor cores in TFLOP/s.
    "bandwidth": the bandwidth of the memory, in GB/s (10**9 bytes a second).
    "ridge": the float16 operations per byte above which the tensor cores are the limit, not the memory.
    """
    raise NotImplementedError("derive_peaks: how many operations is a multiply-add, and how many bytes is the bus wide?")
