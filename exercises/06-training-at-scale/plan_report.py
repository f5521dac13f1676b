"""Describe a plan of 6.6 in rows for metrics.json, and find the small layout of the same form that the ranks can run."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from plans import (
    Plan,
    activation_bytes,
    bubble,
    find_problems,
    memory,
    mfu_percent,
    rank_percent,
    save_interval_times,
    sent_bytes,
    step_seconds,
)
from targets import Work

GB = 1e9
WORST_RANK_PERCENT = 50
OPEN_PLAN: dict[str, Any] = dict.fromkeys(("total_gb", "tp_inside_node", "rank_percent"))  # nothing is known yet
PARTS = ("weights", "gradients", "optimizer", "activations")


def describe_work(work: Work, valid: list[tuple[float, Plan]]) -> dict[str, Any]:
    """Return the facts about the target and the cluster, before anything is divided."""
    shape, cluster = work.shape, work.cluster
    lasting, _ = activation_bytes(shape, work.length, 1, "none")
    return {
        "target": shape.name, "cluster": cluster.name, "model": shape.source, "machines": cluster.source,
        "gpus": cluster.size, "per_node": cluster.per_node, "layers": shape.layers, "width": shape.width,
        "heads": shape.heads, "kv_heads": shape.kv_heads, "length": work.length, "batch": work.batch,
        "parameters": shape.parameters(work.length), "states_gb": 16 * shape.parameters(work.length) / GB,
        "activations_one_sequence_gb": lasting * work.length * shape.layers / GB,
        "valid_plans": len(valid),
        "slowest_times": valid[-1][0] / valid[0][0] if valid else None, "usable_gb": cluster.usable_bytes / GB,
        "inside_gb_per_s": cluster.inside, "between_gb_per_s": cluster.between,
    }  # fmt: skip


def describe_plan(work: Work, plan: Plan, valid: list[tuple[float, Plan]]) -> dict[str, Any]:
    """Return the figures of a plan by formula: the rules that it breaks, memory and bytes in GB, the bubble, times, and its
    rank.

    Values that need the time of a step are None if the GPU lacks the precision. The rank is None if no plan is valid.
    """
    problems, sizes, by_kind = find_problems(work, plan), memory(work, plan), sent_bytes(work, plan)
    seconds = None if "precision" in problems else step_seconds(work, plan)
    percent = rank_percent(valid, seconds["step"]) if seconds and valid else None
    times, young = save_interval_times(work, plan) if seconds else (None, None)
    return {
        "problems": [{"rule": name, "reason": reason} for name, reason in problems.items()],
        "valid": not problems, "better_half": not problems and percent is not None and percent <= WORST_RANK_PERCENT,
        "fits": "does-not-fit" not in problems, "tp_inside_node": "tp-over-nodes" not in problems,
        **{f"{name}_gb": sizes[name] / GB for name in (*PARTS, "total")}, "device_gb": work.cluster.usable_bytes / GB,
        "bubble_percent": 100 * bubble(plan), "sent_gb_per_step": sum(by_kind.values()) / GB,
        **{f"{name}_sent_gb": size / GB for name, size in by_kind.items()},
        "step_s_lower_bound": seconds and seconds["step"], "seconds": seconds,
        "mfu_upper_percent": seconds and mfu_percent(work, plan, seconds["step"]),
        "rank_percent": percent,
        "save_interval_times": times, "young_s": young,
    }  # fmt: skip


def list_alternatives(
    work: Work, valid: list[tuple[float, Plan]], plan: Plan | None, *, is_shown: bool
) -> list[dict[str, Any]]:
    """Return the valid plans at some places of the ranking, and yours.

    Unless `is_shown`, the others have only times, because the learner has to find such a plan.
    """
    last = len(valid) - 1
    places = {"fastest": 0, "10 %": last // 10, "half": last // 2, "slowest": last} if valid else {}
    rows = [_row(work, name, *valid[place], is_shown=is_shown) for name, place in places.items()]
    if plan is not None and work.cluster.flops(plan.precision):
        rows.append(_row(work, "yours", step_seconds(work, plan)["step"], plan, is_shown=True))
    return sorted(rows, key=lambda row: row["step_s"])


def _row(work: Work, place: str, seconds: float, plan: Plan, *, is_shown: bool) -> dict[str, Any]:
    row = {"place": place, "step_s": seconds, "mfu_percent": mfu_percent(work, plan, seconds)}
    row |= dict.fromkeys(("layout", "zero", "checkpointing", "micro_batches", "total_gb"))
    if is_shown:
        row |= {"layout": _name_layout(plan), "zero": plan.zero, "checkpointing": plan.checkpointing,
                "micro_batches": plan.micro_batches, "total_gb": memory(work, plan)["total"] / GB}  # fmt: skip
    return row


def _name_layout(plan: Plan) -> str:
    """Return dp x pp x tp, and cp, ep and the schedule if they are not the usual ones."""
    others = [f"cp {plan.cp}"] * (plan.cp > 1) + [f"ep {plan.ep}"] * (plan.ep > 1) + [plan.schedule] * (plan.schedule != "1f1b")
    return ", ".join([f"{plan.dp}x{plan.pp}x{plan.tp}", *others])


def list_bars(work: Work, plan: Plan | None) -> list[dict[str, Any]]:
    """Return the memory used on the fullest GPU and the memory that may be filled, in GB.

    There is a bar for plain copies with one sequence at a time, and one for your plan.
    """
    plans = {"plain copies": Plan(1, 1, 1, 0, "none", work.batch, "fp16")}  # each copy takes as much as a single one
    plans |= {"your plan": plan} if plan else {}
    return [
        {"plan": name, "device_gb": work.cluster.usable_bytes / GB}
        | {f"{part}_gb": size / GB for part, size in memory(work, case).items()}
        for name, case in plans.items()
    ]


def shrink(plan: Plan, ranks: int, per_node: int, batch: int, can_run: Callable[[int, int, int, int], bool]) -> Plan | None:
    """Return a layout of the plan's form, as close as possible, for that many ranks.

    If possible, a dimension is 1 exactly if it is 1 in the plan. The micro-batches per stage are as near to the plan's number
    as `batch` sequences allow. Return None if `can_run(dp, pp, tp, micro_batches)` refuses every layout.
    """
    copies = plan.dp * plan.cp  # the small model has no slices of a sequence
    share = math.log(ranks) / math.log(max(2, copies * plan.pp * plan.tp))
    candidate: tuple[float, Plan] | None = None
    for tp in (n for n in range(1, ranks + 1) if ranks % n == 0 and per_node % n == 0):
        for pp in (n for n in range(1, ranks // tp + 1) if ranks // tp % n == 0):
            dp = ranks // tp // pp
            counts = [m for m in range(pp, batch // dp + 1) if batch % (dp * m) == 0 and can_run(dp, pp, tp, m)]
            if not counts:
                continue
            ideal_count = plan.micro_batches / plan.pp * pp
            m = min(counts, key=lambda count: abs(math.log(count / ideal_count)))
            pairs = ((dp, copies), (pp, plan.pp), (tp, plan.tp))
            far = sum(
                (math.log(value) - share * math.log(original)) ** 2 + 100 * ((value > 1) != (original > 1))
                for value, original in pairs
            )
            if candidate is None or far < candidate[0]:
                candidate = far, Plan(dp, pp, tp, plan.zero if dp > 1 else 0, plan.checkpointing, m, plan.precision)
    return candidate[1] if candidate else None


def read_earlier(folder: Path) -> list[dict[str, str]]:
    """Return what the newest good runs of 6.2 and 6.3 measured, one sentence each. They are uploaded as earlier-ID-RUN.json.

    Runs of an older version of the course, which lack these figures, are left out.
    """
    rows = []
    for exercise, describe in (("6.2", _describe_zero), ("6.3", _describe_layouts)):
        for path in sorted(folder.glob(f"earlier-{exercise}-*.json"), reverse=True)[:1]:
            try:
                sentence = describe(json.loads(path.read_text(encoding="utf-8")))
            except (KeyError, TypeError, ZeroDivisionError):
                continue
            rows.append({"exercise": exercise, "run": path.stem.removeprefix(f"earlier-{exercise}-"), "says": sentence})
    return rows


def _describe_zero(metrics: dict[str, Any]) -> str:
    numbers = metrics["parameters"]

    def describe_stage(row: dict[str, Any]) -> str:
        per_parameter = sum(row[f"{part}_per_parameter"] for part in ("weights", "gradients", "moments"))
        return f"stage {row['stage']} {per_parameter:.1f} and {row['sent_bytes'] / numbers:.1f}"

    return "bytes per parameter that a rank held, and sent in a step: " + "; ".join(map(describe_stage, metrics["stages"]))


def _describe_layouts(metrics: dict[str, Any]) -> str:
    rows = metrics["layouts"]
    return "bytes between nodes in a step: " + "; ".join(f"{row['layout']} {row['cross_node_bytes']:,}" for row in rows)


def list_sentences(
    described: dict[str, Any], paper: dict[str, Any] | None, alternatives: list[dict[str, Any]], earlier: list[dict[str, str]]
) -> list[str]:
    """Return the lines of the log about the plan on paper."""
    lines = [
        f"{described['model']}: {described['parameters'] / 1e9:.2f} billion parameters; weights, gradients and optimizer "
        f"{described['states_gb']:.1f} GB",
        f"sequences of {described['length']:,} tokens, {described['batch']} per step; the activations of one take "
        f"{described['activations_one_sequence_gb']:.1f} GB, if nothing is computed again",
        f"{described['cluster']}: {described['machines']}; {described['gpus']} GPUs, {described['usable_gb']:.1f} GB of "
        "each may be filled",
    ]
    fastest = next((row["step_s"] for row in alternatives if row["place"] == "fastest"), None)
    if fastest is not None:
        lines.append(f"{described['valid_plans']} plans are valid; the fastest takes at least {fastest:.3g} s per step")
    else:
        lines.append("no plan is valid: the model does not fit, or the batch cannot be divided")
    lines += [f"your {row['exercise']} ({row['run']}): {row['says']}" for row in earlier]
    for exercise in ("6.2", "6.3"):
        if all(row["exercise"] != exercise for row in earlier):
            lines.append(f"there is no run of {exercise}, only formulas. After gpucourse run {exercise} you can cite your run")
    if paper:
        sizes = ", ".join(f"{name} {paper[name + '_gb']:.1f}" for name in (*PARTS, "total"))
        lines.append(f"your plan, on the fullest GPU: {sizes} GB")
        lines += [f"your plan is not possible, {problem['rule']}: {problem['reason']}" for problem in paper["problems"]]
    return lines
