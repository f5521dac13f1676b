"""Judge a repaired copy: the ledger for the comparison must count what was allocated, not what was requested."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("a ledger of {calls} calls, including {failed} that failed, is read as {given} allocations")}


def judge(part: Part) -> None:
    """Judge one ledger in which some calls failed."""
    read_ledger = part.function("read_ledger")
    sites = {
        "load_weights": {"calls": 4, "failed": 0, "bytes": 400, "alive_bytes": 400},
        "grow_cache": {"calls": 9, "failed": 3, "bytes": 60, "alive_bytes": 10},
    }
    ledger = {"sites": sites, "bytes": {"cudaMalloc": 460}, "failed": 3}
    answer = part.call(read_ledger, ledger)
    if answer.allocations != 10:
        raise part.wrong("still", calls=13, failed=3, given=answer.allocations)
    part.note("a call that failed is not counted as an allocation")
