"""Judge a repaired copy: the highest utilisation of a job must be taken from all of its readings."""

from __future__ import annotations

from typing import Any

from gpucourse.judge import Part, Way

WAYS = {"still": Way("job {name} reached {right} %, and the table says that its highest utilisation was {given} %")}
READINGS = {"notebook": [0, 0, 1, 0, 0, 0, 0, 0], "training": [97, 99, 98, 96, 97, 0, 0, 0]}
USAGE = [
    {"name": name, "at_s": 0.5 * place, "percent": value} for name in READINGS for place, value in enumerate(READINGS[name])
]


def _make_metrics(first: int) -> dict[str, Any]:
    rows = [{"name": name, "highest_percent": max(values[first:])} for name, values in READINGS.items()]
    return {"held": {"rows": rows, "usage": USAGE}}


RUNS = {"right": _make_metrics(0), "wrong": _make_metrics(-3)}


def judge(part: Part) -> None:
    """Compare the highest utilisation of each job with all of its readings."""
    held = part.metrics["held"]
    readings: dict[str, list[int]] = {}
    for row in held["usage"]:
        readings.setdefault(row["name"], []).append(row["percent"])
    for row in held["rows"]:
        right = max(readings.get(row["name"], []), default=None)
        if row["highest_percent"] != right:
            raise part.wrong("still", name=row["name"], right=right, given=row["highest_percent"])
    part.note(f"the highest of all readings of {len(readings)} jobs")
