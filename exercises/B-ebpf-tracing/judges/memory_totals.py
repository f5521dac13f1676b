"""Judge my_trace.bt and my_preload.c of B.3 by the ledger of one workload with frees, a leak and failed calls."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import allocations
from allocations import Totals

from gpucourse.judge import Part, Verdict

CASE = "an engine of 4 layers: four requests, and too little memory for two of them"
LONG = allocations.MAX_PROMPT
WORKLOAD = allocations.Workload("judged", 4, 7, ((40, 9), (LONG, 5), (LONG, 2), (33, 6)), 64 * allocations.MIB)
PAGE_BYTES = 2 * 4 * 448 * 2 * 16  # bytes of the blocks whose allocation fails: engine.c, with 4 layers and seed 7


def refuse_open(part: Part) -> None:
    """Raise the verdict if the part is not written yet, or if this computer cannot run it."""
    if allocations.is_open(part.file):
        raise Verdict("open", sentence="nothing in it counts allocations yet")
    if sys.platform != "linux":
        raise Verdict("open", sentence="it cannot be tried here: uprobes and LD_PRELOAD need Linux")


def judge_totals(part: Part, answer: Totals, ledger: dict[str, Any]) -> None:
    """Compare the counts of the part's tracer with the ledger of the same workload. Raises Verdict with the first mistake."""
    right = allocations.read_ledger(ledger)
    failures = sum(right.failed.values())
    values = {"right": right.allocations, "failed": failures}
    if answer.allocations == right.allocations + failures:
        raise part.wrong("failed-counted", CASE, **values)
    if answer.allocations != right.allocations:
        raise _other("allocations", answer.allocations, right.allocations)
    if answer.bytes == right.bytes + failures * PAGE_BYTES:
        raise part.wrong("failed-as-bytes", CASE, bytes=failures * PAGE_BYTES, **values)
    if answer.bytes != right.bytes:
        raise _other("bytes", answer.bytes, right.bytes)
    _judge_failed(part, answer, right)
    _judge_sizes(part, answer, ledger, values)
    _judge_alive(part, answer, right, ledger)
    part.note(f"{right.allocations} allocations, {right.bytes:,} bytes, {failures} failed: as in the engine's ledger")
    part.note(f"{right.alive_bytes:,} bytes alive, {right.alive[right.leak]:,} of them from {right.leak}")


def _judge_failed(part: Part, answer: Totals, reference: Totals) -> None:
    failures = sum(reference.failed.values())
    if sum(answer.failed.values()) == failures and dict(answer.failed) != dict(reference.failed):
        raise part.wrong("failed-without-code", CASE, codes=", ".join(map(str, answer.failed)))
    if dict(answer.failed) != dict(reference.failed):
        raise _other("failed calls", sum(answer.failed.values()), failures)


def _judge_sizes(part: Part, answer: Totals, ledger: dict[str, Any], values: dict[str, int]) -> None:
    if sum(answer.sizes.values()) != answer.allocations:
        raise part.wrong("histogram-other", CASE, blocks=sum(answer.sizes.values()), **values)
    sizes = {power: blocks for power, blocks in sorted(answer.sizes.items()) if blocks}
    if sizes != (powers := _count_sizes(ledger)):
        raise _other("blocks by power of their bytes", sizes, dict(sorted(powers.items())))


def _judge_alive(part: Part, answer: Totals, reference: Totals, ledger: dict[str, Any]) -> None:
    if answer.alive_bytes > reference.alive_bytes:
        raise part.wrong("never-freed", CASE, given=answer.alive_bytes, alive=reference.alive_bytes)
    if answer.alive_bytes != reference.alive_bytes:
        raise _other("bytes alive at the end", answer.alive_bytes, reference.alive_bytes)
    strangers = sorted(set(answer.alive) - set(ledger["sites"]))
    if strangers:
        raise part.wrong("site-unknown", CASE, sites=", ".join(strangers[:3]))
    if dict(answer.alive) != dict(reference.alive):
        raise _other("bytes alive by the function that asked for them", answer.alive, reference.alive)


def _count_sizes(ledger: dict[str, Any]) -> dict[int, int]:
    """Return how many blocks have 2^n to 2^(n+1) - 1 bytes.

    All blocks of a function have the same size, except those of the prompts.
    """
    powers: Counter[int] = Counter()
    for name, site in ledger["sites"].items():
        blocks = site["calls"] - site["failed"]
        sizes = [4 * prompt for prompt, _ in WORKLOAD.requests] if name == "copy_prompt" else [site["bytes"] // blocks] * blocks
        powers.update(size.bit_length() - 1 for size in sizes)
    return dict(powers)


def judge_probes(part: Part, names: list[str]) -> None:
    """Raise the verdict if the tracer probes functions other than those of memory."""
    if names:
        raise part.wrong("not-only-memory", names=", ".join(names[:4]))


def folder() -> Path:
    """Return the folder for a copy of the stand-in: the part's own folder, which is removed afterwards."""
    return Path.cwd()


def _other(label: str, answer: object, reference: object) -> Verdict:
    return Verdict(
        "failed", "other", f"{label}: it says {_show(answer)}, but the engine's ledger says {_show(reference)}", CASE
    )


def _show(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
