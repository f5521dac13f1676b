"""6.6 as a learner runs it: as it is delivered, and with a plan whose ZeRO, stages and blocks computed again are trained."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.system.exercising import (
    FOLDERS,
    Finished,
    check_plots_and_tables,
    list_failed_checks,
    list_unanswered,
    needs_torch,
    with_faults,
)

pytestmark = [
    pytest.mark.system,
    needs_torch,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "darwin", reason="ranks are forked, which macOS does not let a process with torch do"),
]

PLAN = """
target: 7b
cluster: 8xa100-80
puzzle: 1
ranks: {dp: 2, pp: 2, tp: 2}
zero: 2
checkpointing: every-2
micro_batches: 64
precision: bf16
save_every: 6000
reasons: Memory binds.
"""


def run_plan(folder: Path, plan: str | None = None) -> Finished:
    """8 ranks of one node, with that text in my_plan.yaml, which is open as it is delivered."""
    delivered = (FOLDERS.exercises / "06-training-at-scale" / "my_plan.yaml").read_text(encoding="utf-8")
    changes = [("my_plan.yaml", delivered, plan)] if plan else []
    return with_faults("6.6", folder / "work", *changes, ranks_per_node="8", steps="4")


def test_an_open_plan_is_whole_and_trains_copies(tmp_path: Path) -> None:
    run = run_plan(tmp_path)
    assert run.code == 0, run.output
    unanswered = list_unanswered(run)
    assert set(unanswered) == {"rules", "fits", "tp-inside", "better-half", "reasons"}
    assert {why for why in unanswered.values() if "not written yet" not in why} == set()
    assert (run.metrics["run"]["layout"], run.metrics["plan"]["total_gb"]) == ("8x1x1", None)
    assert all(row["layout"] is None for row in run.metrics["alternatives"]), "no plan is given away"
    check_plots_and_tables(run, tmp_path)


def test_a_plan_in_three_dimensions_with_shards_equals_one_process(tmp_path: Path) -> None:
    run = run_plan(tmp_path, PLAN)
    assert run.code == 0, run.output
    trained, plan = run.metrics["run"], run.metrics["plan"]
    assert (trained["layout"], trained["zero"], trained["checkpointing"]) == ("2x2x2", 2, "every-2")
    assert trained["other_bytes"] > 0, "shards were sent"
    assert trained["loss_off"] < 1e-5
    assert plan["problems"] == []
    assert list_failed_checks(run) == {"reasons"} | ({"better-half"} if plan["rank_percent"] > 50 else set())
    sums = 4.5 * 2 * 16 // 2 * 32 * 64 * 4  # of two layers, one of them computed again, for half of the sequences
    assert trained["tp_bytes"] == sums
