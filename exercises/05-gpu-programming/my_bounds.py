"""Your part of 5.7: tell by counting which kernels memory limits, and which arithmetic.

You will learn    to count operations and bytes before anything runs
You will produce  a `find_bound` that is right for every kernel of 5.7, at any size and on any device
Try it            gpucourse try 5.7; gpucourse run 5.7 asks it with the ridge that it measures
Your part         the body of `find_bound`
Reading           modules/05-gpu-programming/lesson-5-limits.md, "Counting"
"""

from __future__ import annotations


def find_bound(kernel: str, n: int, ridge: float) -> str:
    """ "memory" or "compute": what limits the kernel on a device whose ridge is `ridge` operations a byte.

    The kernels, in float32 (4 bytes a number). Each array is read or written once, and what is small beside it counts nothing.
      saxpy       y = a * x + y, x and y of n numbers
      layer norm  n rows of 1024 numbers, 8 operations a number, into another array
      stencil     a step of heat on n x n points into another grid, 6 operations a point
      spmv        a sparse matrix of n rows times a vector: 8 numbers a row, beside each its column in 8 bytes; for each row a
                  pointer of 8 bytes and its result; and the vector of n numbers, read once
      fft         n transforms of 4096 complex numbers (8 bytes each) into another array, 5 N log2 N operations each
      forces      n particles pull each other: 20 operations a pair, n * n pairs; of each particle place and mass are read
                  (4 numbers), and its force is written (3 numbers)
      gemm        a product of two n x n matrices, a multiplication and an addition for each of n * n * n
    """
    raise NotImplementedError("find_bound: how many operations does each kernel make with a byte?")
