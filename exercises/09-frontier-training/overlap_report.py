"""The rows of 9.6: recorded steps on a simulated clock, compared with the learner's parts, and formulas for equal layers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from fsdp_clock import FORWARD, FREE, GATHER, Issue, measure_exposure, predict_forward, simulate_step
from overlap_choice import find_problems, list_rows, make_job, read_choice
from own_part import Outcome

LAYERS = 8
CASES = ((2, 1, 1), (2, 1, 2), (1, 2, 1), (1, 2, 2), (3, 3, 3))
"""Times of a gather and of a forward, and the room in memory."""


def make_rows(
    recorded: Mapping[str, Sequence[Issue]], timelines: Sequence[Any], timing: Outcome, ordering: Outcome
) -> list[dict[str, Any]]:
    """Return a row for each recorded order: its exposed time, and the errors of the learner's timeline and order."""
    rows = []
    reason = "my_timeline.py is not written" if timing.state == "open" else timing.text
    for number, (name, issues) in enumerate(recorded.items()):
        spans = timelines[number]
        turn = 1 + max(place for place, (kind, _) in enumerate(issues) if kind == FORWARD)
        whole, forward = measure_exposure(issues, spans), measure_exposure(issues[:turn], spans[:turn])
        row = {
            "way": name, "issues": len(issues), "gathers": sum(kind == GATHER for kind, _ in issues),
            "end_ms": 1e3 * whole.end, "exposed_ms": 1e3 * whole.exposed, "exposed_percent": 100 * whole.exposed / whole.end,
            "forward_exposed_ms": 1e3 * forward.exposed, "whole_at_once": whole.whole_at_once,
            "equal_to_yours": None, "off_us": None, "exposed_yours_ms": None, "no_timeline": reason,
        }  # fmt: skip
        if ordering.state == "ran":
            row["equal_to_yours"] = [tuple(issue) for issue in ordering.results[0][number]] == list(issues)
        if timing.state == "ran":
            answer = timing.results[0][number]
            row["off_us"] = 1e6 * _compare(answer, spans)
            if len(answer) == len(issues):
                row["exposed_yours_ms"] = 1e3 * measure_exposure(issues, answer).exposed
            else:
                row["no_timeline"] = f"{len(answer)} times for {len(issues)} issues"
        rows.append(row)
    return rows


def _compare(answer: Sequence[Sequence[float]], right: Sequence[Sequence[float]]) -> float:
    """Return the largest difference of two timelines in seconds, or infinity if their lengths differ."""
    if len(answer) != len(right):
        return math.inf
    return max(
        abs(time - other) for span, pair in zip(answer, right, strict=True) for time, other in zip(span, pair, strict=True)
    )


def find_forward_share(issues: Sequence[Issue]) -> float:
    """Return the share of the gathers' time that is exposed in forward, for the times of the prediction: 2 ms, 3 ms, 20 µs."""
    turn = 1 + max(place for place, (kind, _) in enumerate(issues) if kind == FORWARD)
    layers = sum(kind == FORWARD for kind, _ in issues)
    seconds = {GATHER: [2e-3] * layers, FORWARD: [3e-3] * layers}
    spans = simulate_step(issues[:turn], seconds, 4, 2e-5)
    return float(measure_exposure(issues[:turn], spans).exposed) / (2e-3 * layers)


def check_formulas() -> list[dict[str, Any]]:
    """Return the end of a forward pass of equal layers on the simulated clock and by its formula."""
    issues = [issue for layer in range(LAYERS) for issue in ((GATHER, layer), (FORWARD, layer), (FREE, layer))]
    rows = []
    for gather, forward, room in CASES:
        spans = simulate_step(issues, {GATHER: [gather] * LAYERS, FORWARD: [forward] * LAYERS}, room)
        end = max(span[1] for span in spans)
        by_formula = predict_forward(LAYERS, gather, forward, room)
        rows.append({"gather": gather, "forward": forward, "room": room, "end": end, "by_formula": by_formula})
    return rows


def judge_choice(path: Path, orders: Mapping[str, Sequence[Issue]]) -> dict[str, Any]:
    """Return the values of my_overlap.yaml for the checks: its fault, its problems, and its step and room next to the best
    that fit.

    `orders` are those that torch has issued; without them, a step cannot be timed. Values are None while the file is empty or
    cannot be read. `sentence` is what the run prints.
    """
    keys = ("puzzle", "order", "room", "problems", "end_us", "exposed_percent", "times_of_best", "room_too_much")
    choice: dict[str, Any] = dict.fromkeys(keys)
    try:
        file = read_choice(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        fault = f"{path.name} cannot be read: {' '.join(str(error).split())[:200]}"
        return choice | {"fault": fault, "sentence": fault}
    if file.faults:
        return choice | {"fault": file.faults[0], "sentence": f"{path.name}: {file.faults[0]}"}
    puzzle = file.values.get("puzzle")
    sentence = f"The job of {path.name}" + ("" if puzzle is None else f", puzzle {puzzle}: {make_job(puzzle).describe()}")
    choice |= {"fault": "no fault", "sentence": sentence, "puzzle": puzzle}
    if file.choice is None:
        return choice | {"sentence": f"{sentence}\n{path.name} is not filled in yet."}
    job = make_job(puzzle)
    choice |= {"order": file.choice.order, "room": file.choice.room, "problems": len(find_problems(job, file.choice))}
    if choice["problems"] or not orders:
        return choice
    rows = list_rows(job, orders)
    row = next(row for row in rows if (row["order"], row["room"]) == file.choice)
    return choice | {
        "end_us": row["end"], "exposed_percent": row["exposed_percent"], "times_of_best": row["end"] / rows[0]["end"],
        "room_too_much": row["room"] - min(other["room"] for other in rows if other["end"] == row["end"]),
        "sentence": f"{sentence}\nYour choice: a step of {row['end']:,} µs, {row['exposed_percent']:.1f} % of it exposed.",
    }  # fmt: skip
