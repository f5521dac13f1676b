"""Ranks that really hang, for 9.8, and their records in torch's flight recorder.

Each rank keeps its last collectives in a ring buffer (`TORCH_FR_BUFFER_SIZE`). After a timeout it writes them down.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import pickle
import re
import tempfile
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

os.environ.setdefault("TORCH_FR_BUFFER_SIZE", "400")  # before torch makes its first group

import torch
import torch.distributed as dist
from ranks import World

FAULTS = ("sleeps", "skips", "other-operation")  # a sum of another size would not hang: gloo ends the process
STEPS, FAULT_STEP, TIMEOUT_S = 5, 3, 2.0


def list_halves(ranks: int) -> dict[str, list[int]]:
    """Return the ranks of each group of the real job: two halves, and all."""
    middle = ranks // 2
    return {"first half": list(range(middle)), "second half": list(range(middle, ranks)), "all": list(range(ranks))}


def find_planted(fault: str, ranks: int, puzzle: int) -> tuple[int, str]:
    """Return the rank that does something else, and what it does."""
    return (3 * puzzle) % ranks, "stopped" if fault == "sleeps" else "differs"


def hang_really(world: World, fault: str, puzzle: int) -> dict[str, Any]:
    """Let all ranks train until one of them does something else, and return this rank's records.

    `entries` are the last operation in each group, as in `jobs.hang`, `dump` is torch's own, and `error` what torch raised.
    """
    groups = {name: dist.new_group(members, timeout=timedelta(seconds=TIMEOUT_S)) for name, members in
              list_halves(world.size).items()}  # fmt: skip
    half = "first half" if world.rank < world.size // 2 else "second half"
    names = {_number_of(group): name for name, group in groups.items() if world.rank in list_halves(world.size)[name]}
    culprit, _ = find_planted(fault, world.size, puzzle)
    root = (culprit + 1) % world.size  # the root of the broadcasts, which sends only after its own all-reduce has ended
    gradient, norm, error = torch.ones(16), torch.ones(2), ""
    world.wait_for_all()
    try:
        for step in range(STEPS):
            is_culprit = world.rank == culprit and step == FAULT_STEP
            dist.all_reduce(gradient[:8].clone(), group=groups[half])
            if is_culprit and fault == "sleeps":
                time.sleep(TIMEOUT_S + 1.5)  # the fault: meanwhile, the other ranks give up
                break
            if is_culprit and fault == "other-operation":
                dist.broadcast(gradient.clone(), root, group=groups["all"])
            elif not (is_culprit and fault == "skips"):
                dist.all_reduce(gradient.clone(), group=groups["all"])
            dist.broadcast(norm.clone(), root, group=groups["all"])
    except RuntimeError as reason:
        error = str(reason).strip().splitlines()[0][:200]
    dump = read_dump()
    world.wait_for_all()
    return {"entries": list_entries(dump, names, gave_up=bool(error)), "dump": dump, "names": names, "error": error}


def _number_of(group: dist.ProcessGroup) -> str:
    return str(group.group_name)


def read_dump() -> dict[str, Any] | None:
    """Return the dump of torch's flight recorder on this rank, or None if this torch has no recorder for gloo."""
    from torch._C import _distributed_c10d as c10d

    if not hasattr(c10d, "_dump_fr_trace"):
        return None
    dump: dict[str, Any] = pickle.loads(c10d._dump_fr_trace(True, False, False))  # noqa: SLF001
    return dump


def list_entries(dump: dict[str, Any] | None, names: dict[str, str], *, gave_up: bool) -> list[dict[str, Any]]:
    """Return the last operation in each of these groups, in order.

    With gloo, the state is always "scheduled" (torch 2.13). So the last operation of a rank that gave up counts as waiting,
    and every other one as completed.
    """
    last: dict[str, dict[str, Any]] = {}
    for entry in dump["entries"] if dump else ():
        name = names.get(str(entry["process_group"][0]))
        if name is None:
            continue
        last.pop(name, None)
        operation = f"{entry['profiling_name'].rpartition(':')[2]} {entry['input_sizes'][0]}"
        last[name] = {"group": name, "number": entry["collective_seq_id"], "operation": operation, "state": "completed",
                      "time_ms": round(entry["time_created_ns"] / 1e6 % 1e6, 3)}  # fmt: skip
    entries = list(last.values())
    if entries and gave_up:
        entries[-1]["state"] = "waiting"
    return entries


def analyse(results: list[dict[str, Any]]) -> str | None:
    """Return the text of torch's own analyser about the dumps of all ranks, or None if this torch has no analyser."""
    if any(result["dump"] is None for result in results):
        return None
    output = io.StringIO()
    try:
        with contextlib.redirect_stderr(output):  # it says there that tabulate is missing, which is not needed
            from torch.distributed.flight_recorder import fr_trace
    except ImportError:
        return None
    members = list_halves(len(results))
    with tempfile.TemporaryDirectory() as folder:
        for rank, result in enumerate(results):
            dump = dict(result["dump"])
            dump["entries"] = [dict(entry) for entry in dump["entries"] if str(entry["process_group"][0]) in result["names"]]
            for entry in dump["entries"]:
                entry["state"] = "completed" if entry["retired"] else "scheduled"
            dump["pg_config"] = {
                number: {"name": number, "desc": "undefined", "ranks": str(members[name])}
                for number, name in result["names"].items()
            }
            (Path(folder) / f"dump_{rank}").write_bytes(pickle.dumps(dump))
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output), _log_to(output):
            try:
                fr_trace.main(["--prefix", "dump_", folder])
            except (Exception, SystemExit) as error:  # noqa: BLE001 (a private tool, which can fail in many ways)
                return f"torch's analyser ended with {type(error).__name__}: {error}"
    return output.getvalue()


@contextlib.contextmanager
def _log_to(output: io.StringIO) -> Iterator[None]:
    """Write the analyser's log to `output` instead of the terminal while the block runs."""
    logger = logging.getLogger("Flight Recorder")
    handlers, logger.handlers = logger.handlers, [logging.StreamHandler(output)]
    try:
        yield
    finally:
        logger.handlers = handlers


def find_blamed(text: str | None, ranks: int) -> list[int] | None:
    """Return the ranks that torch's analyser blames for the first mismatch, or None if it names none.

    It compares each rank with the first one that it reads, and reads files in arbitrary order. So if it blames most of the
    ranks, the first one is itself among the few that differ: those that it does not blame.
    """
    if text is None:
        return None
    blamed = re.findall(r"Culprit rank (\d+); Error type: (?:COLLECTIVE_TYPE|SIZE_OR_SYNTAX)_MISMATCH", text)
    if blamed:
        others = {int(rank) for rank in blamed}
        return sorted(set(range(ranks)) - others if 2 * len(others) > ranks else others)
    match = re.search(r"missing ranks: {([\d, ]+)}", text)
    return sorted(int(word) for word in match[1].split(",")) if match else None
