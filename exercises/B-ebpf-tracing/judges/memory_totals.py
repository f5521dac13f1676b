"""How my_trace.bt and my_preload.c of B.3 are judged: one workload with frees, a leak and failed calls, and its ledger."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import allocations
from allocations import Totals

from gpucourse.judge import Part, Verdict

CASE = "an engine of 4 layers: four requests, two of which find too little memory"
LONG = allocations.LONGEST_PROMPT
WORKLOAD = allocations.Workload("judged", 4, 7, ((40, 9), (LONG, 5), (LONG, 2), (33, 6)), 64 * allocations.MIB)
PAGE_BYTES = 2 * 4 * 448 * 2 * 16  # bytes of the blocks whose allocation fails: engine.c, with 4 layers and seed 7


def refuse_open(part: Part) -> None:
    """Raise the verdict on a part that is not written yet or that cannot be tried on this computer."""
    if allocations.is_open(part.file):
        raise Verdict("open", says="nothing in it counts allocations yet")
    if sys.platform != "linux":
        raise Verdict("open", says="it cannot be tried here: uprobes and LD_PRELOAD need Linux")


def judge_totals(part: Part, given: Totals, ledger: dict[str, Any]) -> None:
    """Compare what the part's tracer counted with the ledger of the same workload. Raises Verdict with the first wrong way."""
    right = allocations.read_ledger(ledger)
    failed = sum(right.failed.values())
    values = {"right": right.allocations, "failed": failed}
    if given.allocations == right.allocations + failed:
        raise part.wrong("failed-counted", CASE, **values)
    if given.allocations != right.allocations:
        raise _other("allocations", given.allocations, right.allocations)
    if given.bytes == right.bytes + failed * PAGE_BYTES:
        raise part.wrong("failed-as-bytes", CASE, bytes=failed * PAGE_BYTES, **values)
    if given.bytes != right.bytes:
        raise _other("bytes", given.bytes, right.bytes)
    _judge_failed(part, given, right)
    _judge_sizes(part, given, ledger, values)
    _judge_alive(part, given, right, ledger)
    part.note(f"{right.allocations} allocations, {right.bytes:,} bytes, {failed} failed: as in the engine's ledger")
    part.note(f"{right.alive_bytes:,} bytes alive, {right.alive[right.leak]:,} of them from {right.leak}")


def _judge_failed(part: Part, given: Totals, right: Totals) -> None:
    failed = sum(right.failed.values())
    if sum(given.failed.values()) == failed and dict(given.failed) != dict(right.failed):
        raise part.wrong("failed-without-code", CASE, codes=", ".join(map(str, given.failed)))
    if dict(given.failed) != dict(right.failed):
        raise _other("failed calls", sum(given.failed.values()), failed)


def _judge_sizes(part: Part, given: Totals, ledger: dict[str, Any], values: dict[str, int]) -> None:
    if sum(given.sizes.values()) != given.allocations:
        raise part.wrong("histogram-other", CASE, blocks=sum(given.sizes.values()), **values)
    sizes = {power: blocks for power, blocks in sorted(given.sizes.items()) if blocks}
    if sizes != (powers := _count_sizes(ledger)):
        raise _other("blocks by power of their bytes", sizes, dict(sorted(powers.items())))


def _judge_alive(part: Part, given: Totals, right: Totals, ledger: dict[str, Any]) -> None:
    if given.alive_bytes > right.alive_bytes:
        raise part.wrong("never-freed", CASE, given=given.alive_bytes, alive=right.alive_bytes)
    if given.alive_bytes != right.alive_bytes:
        raise _other("bytes alive at the end", given.alive_bytes, right.alive_bytes)
    strangers = sorted(set(given.alive) - set(ledger["sites"]))
    if strangers:
        raise part.wrong("site-unknown", CASE, sites=", ".join(strangers[:3]))
    if dict(given.alive) != dict(right.alive):
        raise _other("bytes alive by the function that asked for them", given.alive, right.alive)


def _count_sizes(ledger: dict[str, Any]) -> dict[int, int]:
    """How many blocks have 2^n to 2^(n+1) - 1 bytes. All blocks of a function have the same size, except the prompts'."""
    powers: Counter[int] = Counter()
    for name, site in ledger["sites"].items():
        blocks = site["calls"] - site["failed"]
        sizes = [4 * prompt for prompt, _ in WORKLOAD.requests] if name == "copy_prompt" else [site["bytes"] // blocks] * blocks
        powers.update(size.bit_length() - 1 for size in sizes)
    return dict(powers)


def judge_probes(part: Part, names: list[str]) -> None:
    """Raise the verdict on a tracer that probes functions other than those of memory."""
    if names:
        raise part.wrong("not-only-memory", names=", ".join(names[:4]))


def folder() -> Path:
    """Where to put a copy of the stand-in: the part's own folder, which is removed afterwards."""
    return Path.cwd()


def _other(what: str, given: object, right: object) -> Verdict:
    return Verdict("failed", "other", f"{what}: it says {_show(given)}, but the engine's ledger {_show(right)}", CASE)


def _show(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
