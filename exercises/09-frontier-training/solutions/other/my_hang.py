"""Solve the hang of 9.8 along a chain: begin at any waiting rank, and follow each rank to one that it waits for."""

from __future__ import annotations

from typing import Any


def find_culprit(records: list[list[dict[str, Any]]], members: dict[str, list[int]]) -> tuple[int, str]:
    """Return the rank at the end of the chain, and its fault."""
    last = [{entry["group"]: entry for entry in record} for record in records]
    rank = next(rank for rank, record in enumerate(records) if record and record[-1]["state"] == "waiting")
    visited: set[int] = set()
    while rank not in visited:
        visited.add(rank)
        if not records[rank] or records[rank][-1]["state"] != "waiting":
            return rank, "stopped"
        entry = records[rank][-1]
        group, number = entry["group"], entry["number"]
        others = members[group]
        behind = [other for other in others if group not in last[other] or last[other][group]["number"] < number]
        if behind:
            rank = behind[0]
            continue
        calls = {other: last[other][group]["operation"] for other in others}
        texts = sorted(calls.values(), key=list(calls.values()).count)
        return next(other for other in others if calls[other] == texts[0]), "differs"
    raise ValueError("the ranks wait in a circle")
