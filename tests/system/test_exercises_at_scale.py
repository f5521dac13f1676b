"""The exercises of module 6 as a learner runs them, with real ranks, judged by the checks of their own manifest."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.system.exercising import (
    check_healthy,
    check_plots_and_tables,
    list_failed_checks,
    list_open_checks,
    needs_torch,
    run_exercise,
)

pytestmark = [pytest.mark.system, needs_torch]


# --- 6.1 ----------------------------------------------------------------------------------------------------------------

SMALL_MODEL = {"layers": "2", "width": "64", "length": "64", "budget_mib": "8"}
NO_ESTIMATE = ("memory_optimisation.py", "large = estimates.plan_large()", "large = None")
"""What is estimated for a large model without a device is the same in every run, and takes half of it."""


@pytest.mark.slow
def test_a_plain_step_runs_out_of_memory_and_the_run_continues(tmp_path: Path) -> None:
    run = run_exercise("6.1", tmp_path / "work", NO_ESTIMATE, **SMALL_MODEL)
    assert run.code == 0, run.output
    assert list_failed_checks(run) == {"fits", "place-runs"}, "the second says nothing while its part is open"
    assert "out of memory: simulated device out of memory. Tried to allocate" in run.output
    assert run.metrics["yours"] == {"fits": False, "out_of_memory": True} | dict.fromkeys(
        (
            "peak_mib",
            "peak_of_plain",
            "above_floor_times",
            "flops_of_plain",
            "loss_off",
            "parameter_off",
            "micro_batches",
            "long_of_plain",
        )
    )
    parameters = 2 * (12 * 64**2 + 13 * 64) + 512 * 64 + 64 * 64 + 2 * 64 + 65 * 512
    assert run.metrics["floor_mib"] == pytest.approx(16 * parameters / (1 << 20))


@pytest.mark.slow
def test_a_step_in_parts_passes_every_check_of_a_processor(tmp_path: Path) -> None:
    run = run_exercise("6.1", tmp_path / "work", solved=True, **SMALL_MODEL)
    check_healthy(run, tmp_path)
    assert run.metrics["yours"]["micro_batches"] == 4
    assert run.metrics["yours"]["long_of_plain"] < 0.3 < 0.5 < run.metrics["long"][2]["peak_of_plain"], "parts do not help"
    assert len(run.metrics["predicted"]) == 8
    assert (run.metrics["largest_batch_on"], run.metrics["largest_batch_checkpointed"]) == (11, 20)


# --- 6.2 ----------------------------------------------------------------------------------------------------------------

SMALL_STAGES = {"ranks_per_node": "1", "layers": "1", "steps": "4", "virtual_ranks": "0"}


@pytest.mark.slow
def test_sharding_as_delivered_is_whole_and_its_parts_are_open(tmp_path: Path) -> None:
    run = run_exercise("6.2", tmp_path / "work", ranks=2, **SMALL_STAGES | {"virtual_ranks": "8"})
    assert run.code == 0, run.output
    assert list_failed_checks(run) == {"count-runs", "sharded-runs"}, "these two say nothing while their parts are open"
    assert (run.metrics["parameters"], run.metrics["sent_mb_of_3"]) == (60_416, pytest.approx(0.362496))
    assert run.metrics["fullest_moments_bytes"] == 245_760
    assert {row["ranks"] for row in run.metrics["virtual"]} == {2, 8}, run.metrics["not_predicted"]
    check_plots_and_tables(run, tmp_path)


@pytest.mark.slow
def test_sharding_solved_passes_on_ranks_that_do_not_divide_the_sizes(tmp_path: Path) -> None:
    run = run_exercise("6.2", tmp_path / "work", ranks=3, solved=True, **SMALL_STAGES)
    assert run.code == 0, run.output
    assert set(list_open_checks(run)) <= {"wire"}
    assert run.metrics["yours"]["kept_for_each"] == pytest.approx(2, abs=0.01)
    assert run.metrics["stages"][3]["more_on_fullest_bytes"] > 0, "padding"


# --- 6.7 ----------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_fsdp_solved_passes_on_ranks_that_do_not_divide_the_blocks(tmp_path: Path) -> None:
    run = run_exercise("6.7", tmp_path / "work", ranks=3, solved=True, ranks_per_node="1", layers="3", width="64", steps="4")
    check_healthy(run, tmp_path)
    assert [row["alive"] for row in run.metrics["trainings"]] == [3, 2, 2, 2, 2]


# --- 6.3 ----------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_eight_ranks_in_three_dimensions_train_as_one_process_does(tmp_path: Path) -> None:
    run = run_exercise("6.3", tmp_path / "work", ranks_per_node="8")
    check_healthy(run, tmp_path, open_checks={"limits-right", "mesh-made", "groups-right", "crossing-predicted"})
    rows = {row["layout"]: row for row in run.metrics["layouts"]}
    assert set(rows) == {"2x2x2", "1x2x4", "4x1x2"}
    assert [rows["2x2x2"][f"{name}_bytes"] for name in ("tp", "pp", "dp")] == [524_288, 65_536, 226_048]
    assert rows["4x1x2"]["bubble_predicted_percent"] == 0
    assert rows["2x2x2"]["bubble_predicted_percent"] == pytest.approx(20)
    mesh = (tmp_path / "work" / "mesh.txt").read_text(encoding="utf-8")
    assert mesh.startswith("order, slowest first: tp, pp, dp\n\ndp x pp x tp = 2x2x2\n  node0\n    rank 0   copy 0   stage 0")


@pytest.mark.slow
def test_a_written_part_makes_the_mesh_and_predicts_the_bytes(tmp_path: Path) -> None:
    # the second half of the ranks reports another node
    other_node = ("three_dimensions.py", "bench.node_label()", 'f"node{2 * rank // size}"')
    small = {"width": "16", "heads": "2", "length": "8", "batch_size": "8", "micro_batches": "2", "steps": "3"}
    run = run_exercise("6.3", tmp_path / "work", other_node, solved=True, **small)
    assert run.code == 0, run.output
    assert set(list_open_checks(run)) == {"all-nodes"}, "the plan has one node"
    assert run.metrics["order"] == "pp, dp, tp"
    first = run.metrics["layouts"][0]
    assert first["cross_node_bytes"] == first["cross_by_yours"] == first["cross_pp_bytes"] > 0


# --- 6.4 ----------------------------------------------------------------------------------------------------------------

SMALL_CHECKPOINTS = {"ranks_per_node": "1", "layers": "1", "width": "64", "steps": "8", "save_at": "4"}


@pytest.mark.slow
def test_checkpoints_as_delivered_contain_only_the_weights(tmp_path: Path) -> None:
    run = run_exercise("6.4", tmp_path / "a node's work", ranks=4, **SMALL_CHECKPOINTS)
    assert run.code == 0, run.output
    assert list_failed_checks(run) == {"complete", "same-world", "other-worlds", "step-kept", "bytes-by-formula", "reads-right"}
    assert run.metrics["missing"] == ["optimizer", "step", "generator"]
    assert [row["ranks"] for row in run.metrics["worlds"]] == [4, 2, 1]
    assert run.metrics["steps_found"] == [0, 0, 0]
    assert [row["taken"] for row in run.metrics["folders"]] == ["yes", "no", "no"]
    check_plots_and_tables(run, tmp_path)
    assert list(tmp_path.glob("*/checkpoints-*")) == []


@pytest.mark.slow
def test_checkpoints_solved_and_saved_in_the_background_keep_every_loss(tmp_path: Path) -> None:
    shared = {"asynchronous": "true", "folder": str(tmp_path / "shared")}
    run = run_exercise("6.4", tmp_path / "work", ranks=3, solved=True, **SMALL_CHECKPOINTS | shared)
    assert run.code == 0, run.output
    assert list_open_checks(run) == {}
    assert [row["ranks"] for row in run.metrics["worlds"]] == [3, 1]
    assert run.metrics["saved"]["blocked_s"] <= run.metrics["saved"]["seconds"]
    assert list((tmp_path / "shared").iterdir()) == []


# --- 6.6 ----------------------------------------------------------------------------------------------------------------

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
needs_forks = pytest.mark.skipif(sys.platform == "darwin", reason="ranks are forked, which macOS forbids a process with torch")


@pytest.mark.slow
@needs_forks
def test_an_open_plan_is_whole_and_trains_copies(tmp_path: Path) -> None:
    run = run_exercise("6.6", tmp_path / "work", ranks_per_node="8", steps="4")
    check_healthy(run, tmp_path, open_checks={"rules", "fits", "tp-inside", "better-half", "reasons"})
    assert (run.metrics["run"]["layout"], run.metrics["plan"]["total_gb"]) == ("8x1x1", None)
    assert all(row["layout"] is None for row in run.metrics["alternatives"]), "no plan is given away"


@pytest.mark.slow
@needs_forks
def test_a_plan_in_three_dimensions_with_shards_equals_one_process(tmp_path: Path) -> None:
    run = run_exercise("6.6", tmp_path / "work", files={"my_plan.yaml": PLAN}, ranks_per_node="8", steps="4")
    assert run.code == 0, run.output
    trained, plan = run.metrics["run"], run.metrics["plan"]
    copies, yours = run.metrics["runs"]
    assert (copies["form"], copies["layout"], copies["tp_bytes"], copies["other_bytes"]) == ("plain copies", "8x1x1", 0, 0)
    assert (yours["form"], yours["layout"]) == ("your plan", "2x2x2")
    assert yours["held_bytes"] < copies["held_bytes"]
    assert (trained["layout"], trained["zero"], trained["checkpointing"]) == ("2x2x2", 2, "every-2")
    assert trained["other_bytes"] > 0, "shards were sent"
    assert trained["loss_off"] < 1e-5
    assert plan["problems"] == []
    assert list_failed_checks(run) == {"reasons"} | ({"better-half"} if plan["rank_percent"] > 50 else set())
    sums = 4.5 * 2 * 16 // 2 * 32 * 64 * 4  # two layers, one of them recomputed, for half of the sequences
    assert trained["tp_bytes"] == sums
