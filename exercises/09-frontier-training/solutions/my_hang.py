"""Solve the hang of 9.8: compare operations with the same number, then find the missing rank that does not wait."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any


def find_culprit(records: list[list[dict[str, Any]]], members: dict[str, list[int]]) -> tuple[int, str]:
    """Return the culprit's rank and its fault, "stopped" or "differs"."""
    waiting = {rank: record[-1] for rank, record in enumerate(records) if record and record[-1]["state"] == "waiting"}
    places: dict[tuple[str, int], list[int]] = defaultdict(list)
    for rank, entry in waiting.items():
        places[entry["group"], entry["number"]].append(rank)
    for ranks in places.values():
        counts = Counter(waiting[rank]["operation"] for rank in ranks)
        if len(counts) > 1:
            usual = counts.most_common(1)[0][0]
            return next(rank for rank in ranks if waiting[rank]["operation"] != usual), "differs"
    numbers = [{entry["group"]: entry["number"] for entry in record} for record in records]
    for group, number in places:
        for rank in members[group]:
            if numbers[rank].get(group, -1) < number and rank not in waiting:
                return rank, "stopped"
    return -1, "stopped"  # no rank, which no job has
