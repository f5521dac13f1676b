"""Judge my_kernels.cu of 5.1: vector_add and block_sum, by the emulator's findings."""

from __future__ import annotations

from typing import Any

import kernel_judge

from gpucourse.judge import Part, Way

MAX_SHARED_LOADS = 40  # per block of 256: 25 if the active threads are the first ones, 95 if they are spread

WAYS = {
    "out-of-bounds": Way(
        "{where}. The last block has more threads than there are elements left: a thread whose i is not below n has none, and "
        "must not access the arrays",
        ("if (i < n) sum[i]", "sum[i]"),
    ),
    "barrier": Way(
        f"{kernel_judge.BARRIER}. A thread past the end must not return: it adds 0",
        ("  part[t] = i < n ? x[i] : 0.0f;", "  if (i >= n) return;\n  part[t] = x[i];"),
        seen=kernel_judge.BARRIER,
    ),
    "unwritten": Way(
        "{unwritten}. Shared memory begins with whatever the last block left in it: each thread must write to its place; those "
        "past the end write a 0",
        ("part[t] = i < n ? x[i] : 0.0f;", "if (i < n) part[t] = x[i];"),
    ),
    "race": Way(
        "{race}. A __syncthreads() between the write and the read fixes the order: you need one after all have written, and "
        "one after each step",
        ("    __syncthreads();  // the next", "    // the next"),
    ),
    "race-of-blocks": Way(
        "{race}. *sum += ... is a read, an addition and a write: two blocks may read the same old sum, and one addition is "
        "lost. atomicAdd(sum, ...) does all three in one step",
        ("atomicAdd(sum, part[0])", "*sum += part[0]"),
        seen=kernel_judge.RACE_OF_BLOCKS,
    ),
    "atomic-of-each": Way(
        "block_sum makes an atomic addition for each element, {atomics:,} with only {blocks} blocks. Additions to "
        "one place are done one after the other: let the threads of a block add up in shared memory, and one of them add the "
        "block's sum",
        ("  if (t == 0) atomicAdd(sum, part[0]);", "  if (i < n) atomicAdd(sum, x[i]);"),
        seen="block_sum makes {atomics:,} atomic additions with only {blocks} blocks, and additions to one place are done one "
        "after the other: let one thread of a block add the block's sum",
    ),
    "spread": Way(
        "block_sum is right, but its warps read shared memory {loads:.0f} times per block, although 25 are enough: too many "
        "warps still use it in each step. Let only the first d threads add, with d = blockDim.x / 2, then half of that, and so "
        "on: then whole warps are idle",
        (
            "for (int d = blockDim.x / 2; d > 0; d /= 2) {\n    if (t < d)",
            "for (int d = 1; d < blockDim.x; d *= 2) {\n    if (t % (2 * d) == 0)",
        ),
        seen="block_sum is right, but its warps read shared memory {loads:.0f} times per block, although 25 are enough: in "
        "which steps do warps read numbers although they have nothing to add?",
    ),
    "fixed-block": Way(kernel_judge.FIXED_BLOCK, ("int d = blockDim.x / 2", "int d = 128")),
    "renamed": Way(kernel_judge.RENAMED, ("void block_sum(", "void sum_of_blocks(")),
}


def judge(part: Part) -> None:
    """Judge both kernels at five sizes and in four orders of their threads."""
    kernel_judge.judge_kernels(part, {"vector_add": _look_at_add, "block_sum": _look_at_sum})


def _look_at_add(part: Part, row: dict[str, Any]) -> None:
    """Do nothing: for vector_add, checking values and bounds is enough."""


def _look_at_sum(part: Part, row: dict[str, Any]) -> None:
    blocks = kernel_judge.COUNTED // kernel_judge.BLOCK
    if row["atomics"] > blocks and not row["wrong_sizes"]:
        output = [row["atomics"], row["shared_loads"]]
        raise part.wrong("atomic-of-each", output=output, atomics=row["atomics"], blocks=blocks)
    if row["shared_loads"] / blocks > MAX_SHARED_LOADS:
        raise part.wrong("spread", output=row["shared_loads"], loads=row["shared_loads"] / blocks)
