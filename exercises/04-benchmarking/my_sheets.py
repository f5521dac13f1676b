"""Your part of 4.1: find the data sheet that cannot be true.

You will learn    where each figure of a data sheet comes from, which claims are possible, and what a test says about a claim
You will produce  a `find_impossible` that is right for any card with GDDR memory
Try it            gpucourse try 4.1
Your part         the body of `find_impossible`; keep its name and parameters
Reading           modules/04-benchmarking/lesson.md, "Five numbers of a GPU"
"""

from __future__ import annotations


def find_impossible(sheet: dict, tests: list[dict]) -> str | None:
    """Return the figure that cannot be true: "float32", "float16", "bandwidth" or "memory". Return None if all can be true.

    At most one is false. It is more than a card with these properties can have, or it is less than the tests show.

    What the card consists of: `sms` processors, each with `cores_per_sm` cores and with tensor cores that together perform
    `tensor_fma_per_clock` float16 multiply-adds per clock; the highest clock `boost_mhz`; a bus of `bus_bits` to the memory,
    whose clock is `memory_mhz` as the driver reports it; a cache of `l2_mb` MB between the memory and the processors.
    What the vendor claims: `float32` and `float16` in TFLOP/s, `bandwidth` in GB/s, `memory` in GB. `float16_sparse` says
    whether the float16 figure is one "with sparsity". Vendors round their figures, by at most 1.5 %.
    Correct measurements of this card (`ms` is the median of many calls, none of which empties the cache):

    - {"work": "product", "format": "float16", "tf32": False, "n": 8192, "ms": 21.3}: a product of two dense n x n matrices.
      With "tf32" a float32 product ran on the tensor cores, with shorter numbers.
    - {"work": "copy", "mb": 512, "ms": 3.9}: an array of `mb` MB was copied to another place in the GPU's memory.
    """
    raise NotImplementedError("find_impossible: what can the cores do in one clock at most, and what does each test prove?")
