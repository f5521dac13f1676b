"""Your second part of 5.12: the bytes that a fused kernel cannot save.

You will learn    what fusion saves, and what remains
You will produce  the minimum number of bytes that a compiled graph has to read and write
Try it            gpucourse try 5.12; gpucourse run 5.12 uses it on the operations of a block
Your part         the body of `least_bytes`
Reading           modules/05-gpu-programming/lesson-14-compile.md
"""

from __future__ import annotations


def least_bytes(operations: list[tuple[list[str], list[str]]], bytes_of: dict[str, int], results: list[str]) -> int:
    """Return the minimum number of bytes that one kernel for all the operations reads and writes.

    `operations`, in their order: for each, the names of the tensors that it reads, and of those that it writes. No name is
    written twice. `bytes_of`: the bytes of each named tensor, including tensors that no operation uses.
    `results`: what is used after the kernel; a result may be an input that nothing changes.
    Between its operations the kernel keeps everything on the chip.
    """
    raise NotImplementedError("least_bytes: which tensors exist before the kernel, and which must exist after it?")
