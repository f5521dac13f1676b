"""Help the judges of 5.0 and 5.1: build the learner's file, run each kernel in the emulator, and name faults."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpucourse.judge import Part
from gpucourse.judge.cases import describe_passing
from gpucourse.judge.verdict import Verdict

BLOCK, COUNTED = 256, 4096  # threads of a block, and elements when requests are counted: see findings.py
OTHER_BLOCKS = (32, 1024)  # one warp, and the most threads that a block may have
FIXED_BLOCK = (
    "{kernel} is right in blocks of {usual} threads, but not in blocks of {block}: {why}. Is there a constant instead of "
    "blockDim.x, or too little shared memory for the 1,024 threads of the largest block?"
)
RENAMED = (
    "{file} has no kernel {kernel}, which the harness launches{others}: keep its name, and write __global__ void {kernel}(...)"
)
BARRIER = (
    "{diverged}. Every thread of a block must reach every __syncthreads(): on a GPU the others wait for ever, or go on before "
    "the numbers are there"
)
RACE_OF_BLOCKS = "{race}. Which thread should write there, and does it add with atomicAdd?"
SUMS = ("block_sum", "clip_sum")  # kernels whose blocks add to one number
Look = Callable[[Part, dict[str, Any]], None]


def judge_kernels(part: Part, looks: dict[str, Look]) -> None:
    """Judge the written kernels in the order of `looks`, which has a function for each kernel.

    It raises a verdict on mistakes that only this kernel can have.

    The part is open if all written kernels are right, and another kernel still has its line OPEN.
    """
    import findings  # shared files are on the path when a part is judged, but not when its ways are only listed

    bodies = {kernel: findings.find_body(part.text, kernel) for kernel in looks}
    missing = next((kernel for kernel, body in bodies.items() if body is None), None)
    if missing is not None:
        raise part.wrong(
            "renamed", file=part.file.name, kernel=missing, others=list_others(findings.list_kernels(part.text), set(looks))
        )
    is_open = {kernel: findings.is_open(body or "") for kernel, body in bodies.items()}
    if not all(is_open.values()):
        program = build(part)
        for kernel in (kernel for kernel in looks if not is_open[kernel]):
            row = examine(program, kernel, BLOCK)
            _judge_faults(part, row)
            looks[kernel](part, row)
            _judge_values(part, row)
            judge_other_blocks(part, program, kernel)
            part.note(
                f"{kernel} is right for {len(row['sizes'])} sizes, and for {len(findings.ORDERS)} more orders of its threads"
            )
    if any(is_open.values()):
        names = " and ".join(kernel for kernel in looks if is_open[kernel])
        raise Verdict("open", sentence=f"{names}: not written yet, or the line OPEN(...) is still there")


def list_others(names: list[str], right_names: set[str]) -> str:
    """Return the kernels of a file that are not expected, in brackets, or an empty text."""
    names = [name for name in names if name not in right_names]
    return f" (it has {', '.join(names[:5])})" if names else ""


def build(part: Part) -> Any:
    """Return the harness with the learner's kernels, for the emulator. Raises Verdict if the file does not compile."""
    import emulator
    import findings

    try:
        return findings.build(part.file, Path.cwd() / "build")
    except emulator.CompileError as error:
        raise Verdict("failed", "compile", f"the compiler refuses it:\n{error.text}") from None
    except emulator.Unsupported as error:
        raise Verdict("error", "no-compiler", str(error)) from None


def examine(program: Any, kernel: str, block: int, counted: int = COUNTED) -> dict[str, Any]:
    """Return the findings about a kernel. Raises Verdict if it does not end."""
    import emulator
    import findings

    try:
        return findings.examine(program, kernel, findings.Setting(block=block), counted=counted)
    except emulator.Endless as error:
        raise Verdict("failed", "endless", f"{kernel} does not end: {error}") from None
    except emulator.TooMuchOutput as error:
        raise Verdict("failed", "too-much-output", f"{kernel}: {error}") from None


def judge_other_blocks(part: Part, program: Any, kernel: str, counted: int = COUNTED) -> None:
    """Raise the verdict if a kernel is right only in blocks of the usual size. A transpose always has blocks of 32 x 32."""
    import findings

    for block in OTHER_BLOCKS if kernel != "transpose" else ():
        if reason := findings.find_fault(examine(program, kernel, block, counted)):
            raise part.wrong("fixed-block", f"blocks of {block} threads", kernel=kernel, usual=BLOCK, block=block, why=reason)


def _judge_faults(part: Part, row: dict[str, Any]) -> None:
    """Raise the verdict if the kernel accesses memory out of bounds, if only some threads reach a barrier, if two threads race,
    if a thread reads memory that was never written, or if the kernel was ended. Causes come before their consequences."""
    kernel = row["kernel"]
    if row["out_of_bounds"]:
        if not _is_past_the_end(row):
            raise Verdict("failed", "other", row["where"], kernel)
        raise part.wrong("out-of-bounds", kernel, output=remove_line(row["where"]), where=row["where"])
    if row["barrier_divergence"]:
        raise part.wrong("barrier", kernel, output=remove_line(row["diverged"]), diverged=row["diverged"])
    if row["races"]:  # before the next fault: without a barrier a thread may read what no thread has written yet
        raise _name_race(part, row)
    if row["unwritten_reads"]:
        raise part.wrong("unwritten", kernel, unwritten=row["unwritten"])
    if row["ended"]:
        raise Verdict("failed", "ended", f"{kernel} was ended: {row['ended']}", kernel)


def remove_line(text: str) -> str:
    """Return the description of a thread's access without the lines of the file."""
    return re.sub(r"\S+\.cu:\d+(: )?", "", text)


def _is_past_the_end(row: dict[str, Any]) -> bool:
    """Return whether the first access out of bounds is at the thread's own number, where no element exists.

    The threads of a transpose have no such number, so any access behind an array counts.
    """
    text = row["where"].replace(",", "")
    access = re.search(r"thread \((\d+)00\) of block \((\d+)00\) \w+ 4 bytes at byte (\d+) of an allocation", text)
    if row["kernel"] == "transpose":
        return "of an allocation" in text and "before" not in text
    return access is not None and int(access[3]) == 4 * (int(access[2]) * BLOCK + int(access[1]))


def _name_race(part: Part, row: dict[str, Any]) -> Verdict:
    """Return the verdict on a race between a write and a read in shared memory, or between additions to a kernel's sum."""
    kernel, race = row["kernel"], row["race"]
    if "shared" in race and "reads" in race:
        return part.wrong("race", kernel, race=race)
    if "shared" not in race and kernel in SUMS:
        return part.wrong("race-of-blocks", kernel, race=race, output=row["wrong_rows"])
    return Verdict("failed", "other", f"{race}. Which thread should write there?", kernel)


def _judge_values(part: Part, row: dict[str, Any]) -> None:
    kernel, sizes = row["kernel"], row["sizes"]
    wrong_sizes = [size for size, *_ in row["wrong_rows"]]
    if wrong_sizes:
        beside = describe_passing({"n": min(wrong_sizes)}, [{"n": size} for size in sizes if size not in wrong_sizes])
        complaint = f"{kernel} is wrong for {len(wrong_sizes)} of {len(sizes)} sizes: {row['wrong']}{beside}"
        if kernel == "transpose":
            raise part.wrong("blocks-not-swapped", kernel, says=complaint, output=row["wrong_rows"])
        raise Verdict("failed", "values", complaint, kernel)
    if row["orders_wrong"]:
        raise Verdict(
            "failed", "orders", f"{row['kernel']} is wrong in {row['orders_wrong']} of the other orders of its threads"
        )
