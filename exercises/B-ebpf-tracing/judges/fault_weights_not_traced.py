"""Judge a repaired copy: the trace must contain everything in the ledger, including the weights."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way(
        "the ledger has {ledger} calls to cudaMalloc, but the trace has {given}: which calls came before the trace began?"
    )
}
LEDGER = {"calls": {"cudaMalloc": 15}}
RUNS = {
    "right": {"trace_off": 0, "mallocs": 15, "ledger": LEDGER},
    "wrong": {"trace_off": 4, "mallocs": 11, "ledger": LEDGER},
}


def judge(part: Part) -> None:
    """Check that trace and ledger have the same calls."""
    reference = part.metrics["ledger"]["calls"]["cudaMalloc"]
    answer = part.metrics["mallocs"]
    if part.metrics["trace_off"] or answer != reference:
        raise part.wrong("still", ledger=reference, given=answer)
    part.note(f"all {reference} calls to cudaMalloc are in the trace")
