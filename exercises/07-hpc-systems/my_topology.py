"""Your part of 7.2: how the GPUs of a computer are linked, which should work together, and in which order a ring goes.

You will learn    what `nvidia-smi topo -m` says; why groups and rings of GPUs are as fast as their slowest link;
                  how to find the best of more than can be tried
You will produce  a reader of the listing, the best groups for tensor parallelism, the best ring for an all-reduce
Try it            gpucourse try 7.2
Your part         the bodies of `read`, `find_groups` and `find_ring`; keep their names and parameters
Reading           modules/07-hpc-systems/lesson-2-links.md, "Reading the listing"
"""

from __future__ import annotations

# Links from the fastest to the slowest; NV18 is eighteen NVLinks together, and faster than NV2.
ORDER = ("NV#", "PIX", "PXB", "PHB", "NODE", "SYS")


def read(text: str) -> list[list[str]]:
    """Return the links between the GPUs of a listing: `read(text)[2][5]` is the link between GPU 2 and GPU 5, such as "NV2".

    The diagonal has "X". The table also has rows and columns for network cards, and a legend below it. These are not GPUs.
    """
    raise NotImplementedError("read: which lines and which columns of the text belong to GPUs?")


def find_groups(links: list[list[str]], size: int) -> list[list[int]]:
    """Return all GPUs, divided into groups of `size`, so that the slowest link inside any group is as fast as possible.

    Of several such divisions, return one with as few links of that speed as possible. There are at most 16 GPUs. `links` may be
    read five million times; after that it raises an error.
    """
    raise NotImplementedError("find_groups: which link of a group decides how fast its members communicate?")


def find_ring(links: list[list[str]]) -> list[int]:
    """Return all GPUs in an order whose slowest hop is as fast as possible, including the hop from the last to the first.

    Of several such orders, return one with as few hops of that speed as possible. The limits of `find_groups` apply here, too.
    """
    raise NotImplementedError(
        "find_ring: how many different rings are there through 16 GPUs, and which of them need not be compared?"
    )
