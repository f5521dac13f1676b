"""Report the counts of 6.2: a row for each stage over all ranks, figures that follow from the rows, and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import bench
from shard_bytes import expect_collectives, expect_memory, explain_traffic
from zero_plans import PARTS

NAMES = {0: "DDP", 1: "ZeroRedundancyOptimizer", 2: "fully_shard, kept whole", 3: "fully_shard"}
KINDS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast")
Row = dict[str, Any]


def describe_stage(
    stage: int, rank_bytes: Sequence[Mapping[str, Any]], counts: Mapping[str, Any], shapes: Sequence[Any]
) -> Row:
    """Return the bytes that a rank holds and sends at a stage, and their differences from torch's own rules.

    `rank_bytes`: for each rank and each kind, the bytes of the numbers and of the memory behind them.
    `counts`: what one rank passed to collectives.
    `shapes`: the shapes of the parameters.
    """
    ranks = len(rank_bytes)
    row: Row = {"stage": stage, "label": f"{stage}", "way": NAMES[stage]}
    row |= {"by_formula_bytes": None, "sent_by_formula_bytes": None}  # until the learner's counts are added
    for part in (*PARTS, "between"):
        row[f"{part}_bytes"] = sum(rank[part][0] for rank in rank_bytes) / ranks
        row[f"{part}_fullest_bytes"] = max(rank[part][1] for rank in rank_bytes)
    row["state_bytes"] = sum(row[f"{part}_bytes"] for part in PARTS)
    row["more_on_fullest_bytes"] = sum(row[f"{part}_fullest_bytes"] for part in PARTS) - row["state_bytes"]
    row["second_copy_bytes"] = row["between_bytes"] if stage == 2 else 0  # the shards in addition to the whole weights
    rules = [expect_memory(stage, shapes, ranks, number) for number in range(ranks)]
    row["torch_off_bytes"] = max(
        abs(rank[part][1] - rule[part]) for rank, rule in zip(rank_bytes, rules, strict=True) for part in PARTS
    )
    whole, rule = counts["whole"], expect_collectives(stage, shapes, ranks)
    row["torch_sent_off_bytes"] = sum(abs(whole.get(kind, 0) - rule.get(kind, 0)) for kind in {*whole, *rule})
    row |= {f"{kind}_bytes": whole.get(kind, 0) for kind in KINDS}
    row |= {"sent_bytes": counts["ring"], "sent_explained_bytes": explain_traffic(stage, shapes, ranks)}
    return row | {"calls": sum(counts["calls"].values())}


def describe_sharded(rank_numbers: Sequence[int], counts: Mapping[str, Any], parameters: int) -> Row:
    """Return the row of the learner's optimizer.

    `rank_numbers` has the bytes of its state on each rank, without weights and gradients.
    """
    ranks, size = len(rank_numbers), 4 * parameters
    row: Row = {"stage": 1, "label": "yours", "way": "yours", "weights_bytes": size, "gradients_bytes": size}
    row |= {
        "moments_bytes": sum(rank_numbers) / ranks,
        "moments_fullest_bytes": max(rank_numbers),
        "sent_bytes": counts["ring"],
    }
    row["state_bytes"] = 2 * size + row["moments_bytes"]
    row["calls"] = sum(counts["calls"].values())
    row["sent_times"] = counts["ring"] / (2 * (ranks - 1) / ranks * size)  # of an all-reduce of the gradients
    row["kept_for_each"] = max(rank_numbers) / (size / ranks)  # numbers for each parameter of its own share
    return row


def compare_prediction(rows: Sequence[Row], virtual: Sequence[Row], ranks: int) -> None:
    """Add to each row the difference between the predicted and the measured peak on a GPU, in percent of the measured one.

    The value is None if one of the two is missing.
    """
    for row in rows:
        peak = next((item["peak_bytes"] for item in virtual if (item["ranks"], item["stage"]) == (ranks, row["stage"])), None)
        peak_bytes = row["peak_gpu_memory_bytes"]
        row["prediction_off_percent"] = 100 * (peak / peak_bytes - 1) if peak and peak_bytes else None


def compare_wire(rows: Sequence[Row], collectives: Sequence[Row]) -> float | None:
    """Return the largest difference, in percent, between the bytes that Linux counted in a step and those that its collectives
    write if each is measured alone."""
    times = {row["collective"]: row["wire_times"] for row in collectives}
    if None in times.values():
        return None
    stage_times = [sum(times[kind] * row[f"{kind}_bytes"] for kind in KINDS) for row in rows]
    return max(100 * abs(row["wire_bytes"] / right_bytes - 1) for row, right_bytes in zip(rows, stage_times, strict=True))


def summarise(rows: Sequence[Row]) -> Row:
    """Return figures over all stages: spreads, the stage that holds the least, the bytes of stages 2 and 3 in percent of
    those of stage 0, and the bytes of stage 3.

    A figure is None if a stage that it needs is not among the rows.
    """
    of = {row["stage"]: row for row in rows}

    def percent(key: str, stage: int) -> float | None:
        value, whole = of.get(stage, {}).get(key), of.get(0, {}).get(key)
        return 100 * value / whole if value and whole else None

    has_both = 0 in of and 3 in of
    off = {f"{kind}_spread": max(row[f"{kind}_off"] for row in rows) if len(rows) > 1 else None for kind in ("loss", "weights")}
    return off | {
        "smallest_stage": min(rows, key=lambda row: row["state_bytes"])["stage"] if has_both else None,
        "state_of_2_percent": percent("state_bytes", 2),
        "state_of_3_percent": percent("state_bytes", 3),
        "peak_of_3_percent": percent("peak_gpu_memory_bytes", 3),
        "sent_mb_of_3": of[3]["sent_bytes"] / 1e6 if 3 in of else None,
        "fullest_moments_bytes": of[1]["moments_fullest_bytes"] if 1 in of else None,
    }


def say_tables(compared: Sequence[Row], virtual: Sequence[Row]) -> None:
    """Print bytes held, bytes sent, and the predicted memory, if a person started the script."""
    memory_titles = {"label": "stage", "way": "with", **{f"{part}_bytes": part for part in PARTS}}
    bench.say_table(compared, memory_titles | {"state_bytes": "all three", "by_formula_bytes": "by yours"})
    traffic_titles = {
        "label": "stage",
        "calls": "calls",
        "sent_bytes": "sent (rings)",
        "sent_by_formula_bytes": "by yours",
    }
    traffic_titles |= {
        "sent_explained_bytes": "torch's own",
        "wire_bytes": "as Linux counts",
        "median_ms": "step ms",
        "loss": "loss",
    }
    bench.say_table(compared, traffic_titles, title="Bytes that a rank sends in a step:")
    peak = {"ranks": "ranks", "stage": "stage", **{f"{part}_bytes": part for part in (*PARTS, "activations", "other", "peak")}}
    if virtual:
        bench.say_table(virtual, peak, title="Predicted, at the peak of a step, bytes:")
