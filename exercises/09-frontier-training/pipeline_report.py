"""The rows and pictures of 9.4: formulas and real ranks, several steps, timelines as text, and the learner's choice."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import yaml
from own_part import Outcome
from pieces import BACKWARD, FORWARD, INPUTS, Slot, Times, predict_bubble_time, repeat, simulate
from pipeline_choice import Job, find_best, list_rows, make_job
from pipeline_file import read_pipeline
from schedules import order_1f1b, order_zero_bubble_v

LETTERS = {FORWARD: "f", INPUTS: "i", BACKWARD: "b"}
MAX_STEPS = 4


def add_formulas(rows: list[dict[str, Any]], ranks: int, micro_batches: int) -> list[dict[str, Any]]:
    """Return the rows of real ranks, each with the bubble that its formula predicts from the median time of its pieces.

    Rows whose schedule has no formula for unequal pieces get None.
    """
    for row in rows:
        times, name, chunks = row["times_ms"], row["schedule"], row["stages"] // ranks
        row["bubble_by_formula_percent"] = None
        if name in ("gpipe", "1f1b", "interleaved"):
            pieces = Times(times[FORWARD] * chunks, times[BACKWARD] * chunks, 0)
            bubble = float(predict_bubble_time(name, ranks, pieces, chunks))
            row["bubble_by_formula_percent"] = 100 * bubble / (bubble + micro_batches * float(pieces.step))
    return rows


def list_steps(job: Job, own_orders: Sequence[Sequence[Slot]] | None) -> list[dict[str, Any]]:
    """Return when 1 to 4 steps end if no rank waits for all others between them, and the bubble of each further step."""
    ways: list[tuple[str, Sequence[Sequence[Slot]], int, int]] = [
        ("1f1b", order_1f1b(job.ranks, job.micro_batches), job.ranks, 1),
        ("zb-v", order_zero_bubble_v(job.ranks, job.micro_batches), 2 * job.ranks, 2),
    ]
    if own_orders is not None:
        ways.append(("yours", own_orders, job.ranks, 1))
    rows = []
    for name, orders, stages, parts in ways:
        times = Times(*(Fraction(time, parts) for time in (job.times.forward, job.times.inputs, job.times.weights)))
        ends = [
            0,
            *(simulate(repeat(orders, steps, job.micro_batches), stages, times.of).end for steps in range(1, MAX_STEPS + 1)),
        ]
        busy = job.micro_batches * job.times.step
        for steps in range(1, MAX_STEPS + 1):
            bubble = float(ends[steps] - ends[steps - 1] - busy)
            rows.append({"schedule": name, "steps": steps, "end": float(ends[steps]), "bubble_of_the_step": bubble})
    return rows


def summarize_order(job: Job, row: dict[str, Any] | None, outcome: Outcome) -> dict[str, Any]:
    """Return the values of the learner's order for the checks: its row on ranks, and its clock's error against the formulas."""
    keys = "loss_off", "gradients_off", "weights_early", "bubble_above", "held_too_many", "bubble", "bubble_percent", "end"
    if outcome.state != "ran" or row is None:
        return dict.fromkeys(keys)
    result = outcome.results[0]
    return {
        **{key: result["row"][key] for key in keys[:3]}, **{key: row[key] for key in ("bubble", "bubble_percent", "end")},
        "bubble_above": max(0.0, row["bubble"] - row["by_formula"]),
        "held_too_many": max(max(0, held - len(result["held"])) for held in result["held"]) + max(0, row["held"] - job.ranks),
    }  # fmt: skip


def describe_job(job: Job) -> str:
    """Return a job and its limits in words."""
    times = job.times
    return (
        f"{job.ranks} ranks, {job.layers} layers, {job.micro_batches} micro-batches; a rank's layers take "
        f"{times.forward} forward, {times.inputs} for input gradients, {times.weights} for weight gradients, and {times.pair} "
        "for a forward and a backward that overlap. "
        f"{job.memory} micro-batches fit into memory, beside the weights of {'two stages' if job.copies > 1 else 'one stage'}. "
        f"The network carries at most {job.messages} times the messages of 1F1B. The layers "
        f"{'can' if job.splits else 'cannot'} compute input and weight gradients separately. After each step, the ranks "
        f"{'wait for the norm of all gradients' if job.waits else 'do not wait for each other'}."
    )


def judge_choice(path: Path) -> dict[str, Any]:
    """Return the values of my_pipeline.yaml for the checks: its fault, its problems, and its step next to the shortest that
    fits.

    Values are None while the file is empty or cannot be read.
    """
    choice = dict.fromkeys(("puzzle", "label", "problems", "step", "times_of_best", "reasons_words"))
    try:
        file = read_pipeline(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        return choice | {"fault": f"{path.name} cannot be read: {' '.join(str(error).split())[:200]}"}
    if file.faults:
        return choice | {"fault": file.faults[0]}
    choice |= {"fault": "no fault", "reasons_words": len(file.words) or None}
    if file.choice is None:
        return choice
    rows = list_rows(make_job(file.values["puzzle"]))
    row = next(row for row in rows if (row["schedule"], row["chunks"]) == file.choice)
    choice |= {"puzzle": file.values["puzzle"], "label": row["label"], "problems": len(row["problems"])}
    if not row["problems"]:
        choice |= {"step": row["step"], "times_of_best": row["step"] / find_best(rows)["step"]}
    return choice


def draw_timelines(own_orders: Sequence[Sequence[Slot]] | None) -> str:
    """Return timelines of 4 ranks and 8 micro-batches as text: a row for each rank, a letter for each unit of time."""
    parts = [
        "f forward, i input gradients, w weight gradients, b both together, a dot for a moment without work.\n"
        "ZB-V has two stages on each rank, with pieces that are half as long.",
        _draw("1f1b", order_1f1b(4, 8), 4),
        _draw("zb-v", order_zero_bubble_v(4, 8), 8),
    ]
    if own_orders is not None:
        parts.append(_draw("yours", own_orders, 4))
    return "\n\n".join(parts) + "\n"


def _draw(name: str, orders: Sequence[Sequence[Slot]], stages: int) -> str:
    clock = simulate(orders, stages, Times(1, 1, 1).of)
    lines = [name]
    for rank, spans in enumerate(clock.spans):
        letters = ["."] * int(clock.end)
        for begin, end, slot in spans:
            letters[int(begin) : int(end)] = LETTERS.get(slot[0].kind, "w") * int(end - begin)
        lines.append(f"rank {rank}  {''.join(letters)}")
    return "\n".join(lines)
