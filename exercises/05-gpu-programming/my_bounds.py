"""Your part of 5.7: find out by counting which kernels are limited by memory, and which by arithmetic.

You will learn    to count operations and bytes before anything runs
You will produce  a `find_bound` that is right for every kernel of 5.7, at any size and on any device
Try it            gpucourse try 5.7; gpucourse run 5.7 calls it with the ridge that it measures
Your part         the body of `find_bound`
Reading           modules/05-gpu-programming/lesson-9-limits.md, "Counting"
"""

from __future__ import annotations


def find_bound(kernel: str, n: int, ridge: float) -> str:
    """Return "memory" or "compute": the limit of the kernel on a device whose ridge is `ridge` operations per byte.

    The kernels, in float32 (4 bytes per number). Each array is read or written once; ignore what is small compared with them.
      saxpy       y = a * x + y, x and y of n numbers
      layer norm  n rows of 1024 numbers, 8 operations per number, into another array
      stencil     a step of the heat equation on n x n points into another grid, 6 operations per point
      spmv        a sparse matrix of n rows times a vector: 8 numbers per row, each with its column in 8 bytes; for each row
                  a pointer of 8 bytes and its result; and the vector of n numbers, read once
      fft         n transforms of 4096 complex numbers (8 bytes each) into another array, 5 N log2 N operations each
      forces      n particles attract each other: 20 operations per pair, n * n pairs; for each particle, position and mass
                  are read (4 numbers), and its force is written (3 numbers)
      gemm        a product of two n x n matrices, with a multiplication and an addition for each of n * n * n
    """
    raise NotImplementedError("find_bound: how many operations does each kernel perform per byte?")
