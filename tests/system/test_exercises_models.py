"""3.6 and 3.9 as a learner runs them: a model in parts trains as the whole one does, and each injected fault is found."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.system.exercising import (
    Finished,
    check_plots_and_tables,
    environment,
    lay_out,
    needs_torch,
    run_ranks,
    run_with_changes,
    start,
    wait,
    words,
)

pytestmark = [pytest.mark.system, needs_torch]

SMALL_MESH = {"width": "32", "layers": "1", "length": "8", "batch_size": "8", "steps": "4"}
SMALL_PIPELINE = {"hidden": "96", "batch_size": "256", "layers": "4", "steps": "3"}


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return run_ranks("3.6", 2, tmp_path_factory.mktemp("pipeline") / "a node's work")


@pytest.mark.slow
def test_the_pipeline_passes_every_cpu_check_with_local_defaults(pipeline: Finished) -> None:
    assert pipeline.code == 0, pipeline.output
    assert words(pipeline.verdict()) == {"pipeline-pays": "not_measured: not measured: needs a GPU"}
    assert pipeline.verdict().verdict == "passed"
    assert (pipeline.metrics["schema"], pipeline.metrics["backend"]) == ("model_parallelism/1", "gloo")


@pytest.mark.slow
def test_the_sweep_has_both_schedules_and_both_bubbles(pipeline: Finished) -> None:
    sweep = pipeline.metrics["sweep"]
    assert [(row["way"], row["micro_batches"]) for row in sweep] == [
        *(("gpipe", m) for m in (1, 2, 4, 8)),
        *(("1f1b", m) for m in (2, 4, 8)),
    ]
    one_process_ms = pipeline.metrics["one_process"]["median_ms"]
    for row in pipeline.metrics["every_way"]:
        m = row["micro_batches"]
        assert row["bubble_predicted_percent"] == pytest.approx(100 / (m + 1))
        assert row["bubble_wall_percent"] is None, "ranks that share cores show no bubble by the clock"
        assert row["speedup"] == pytest.approx(one_process_ms / row["median_ms"])
        assert row["samples"] == 5
    assert [row["in_flight"] for row in sweep] == [1, 2, 4, 8, 2, 2, 2]


@pytest.mark.slow
def test_each_rank_says_what_it_holds_and_how_long_it_worked(pipeline: Finished) -> None:
    assert "rank 0 of 2 on node0 (cpu) has layers 0 to 3 of 8" in pipeline.output
    assert "rank 1 of 2 on node0 (cpu) has layers 4 to 7 of 8" in pipeline.output
    assert pipeline.output.count("rank 1: 1f1b, 8 micro-batches: busy") == 1
    losses = pipeline.metrics["losses"]
    assert losses[-1]["loss"] < losses[0]["loss"]


@pytest.mark.slow
def test_what_the_pipeline_measured_can_be_drawn_and_tabled(pipeline: Finished, tmp_path: Path) -> None:
    check_plots_and_tables(pipeline, tmp_path)
    assert "(p - 1) / (m + p - 1)" in (tmp_path / "bubble.svg").read_text(encoding="utf-8")


@pytest.mark.slow
def test_three_ranks_and_layers_that_do_not_divide(tmp_path: Path) -> None:
    run = run_ranks("3.6", 3, tmp_path / "work", **SMALL_PIPELINE | {"layers": "7", "schedule": "gpipe", "micro_batches": "2"})
    assert run.code == 0, run.output
    assert [part["layers"] for part in run.metrics["stages"]] == [2, 2, 3]
    assert {"gradients-right", "loss-equal", "parameters-equal", "all-layers"}.isdisjoint(words(run.verdict()))


@pytest.mark.slow
def test_unequal_shares_and_a_wrong_gradient_sent_back_are_found(tmp_path: Path) -> None:
    changes = [
        ("args.layers * r // size, args.layers * (r + 1) // size", "7 * (r > 0), 7 if r == 0 else args.layers"),
        ("dist.send(given.grad, rank - 1)", "dist.send(given.grad * 1.01, rank - 1)"),
    ]
    run = run_with_changes("3.6", tmp_path / "work", *changes, **SMALL_PIPELINE | {"layers": "8"})
    assert run.code == 0, run.output
    failed = {check.id for check in run.verdict().checks if check.verdict == "failed"}
    assert failed == {"bubble-formula", "gradients-right"}, "only the naive way sent it: the pipeline trained as it should"


@pytest.mark.slow
def test_1f1b_with_too_few_micro_batches_is_refused_at_once(tmp_path: Path) -> None:
    run = run_with_changes("3.6", tmp_path / "work", **SMALL_PIPELINE | {"micro_batches": "1"})
    assert run.code == 1
    assert "with 1f1b at least as many micro-batches as ranks (--micro-batches 1)" in run.output
    assert "Traceback" not in run.output
    assert not run.metrics


@pytest.mark.slow
def test_a_batch_that_cannot_be_cut_is_refused_with_a_sentence(tmp_path: Path) -> None:
    _, script = lay_out("3.6", tmp_path / "work")
    process = start([sys.executable, str(script), "--batch-size=12"], tmp_path, environment(tmp_path))
    output = wait(process)
    assert process.returncode == 2
    assert "must be a multiple of each of [1, 2, 4, 8]" in output
    assert "Traceback" not in output


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return run_ranks("3.9", 4, tmp_path_factory.mktemp("mesh") / "a node's work")


@pytest.mark.slow
def test_the_mesh_passes_every_cpu_check_with_local_defaults(mesh: Finished) -> None:
    assert mesh.code == 0, mesh.output
    assert words(mesh.verdict()) == {"faster": "not_measured: not measured: needs a GPU"}
    assert mesh.verdict().verdict == "passed"
    assert (mesh.metrics["schema"], mesh.metrics["backend"]) == ("hybrid_parallelism/1", "gloo")


@pytest.mark.slow
def test_every_rank_says_its_coordinates_and_the_record_has_them(mesh: Finished) -> None:
    assert [(row["rank"], row["dp"], row["tp"]) for row in mesh.metrics["ranks"]] == [
        (0, 0, 0),
        (1, 0, 1),
        (2, 1, 0),
        (3, 1, 1),
    ]
    for rank in range(4):
        assert f"rank {rank} on node0: copy {rank // 2} of 2, slice {rank % 2} of 2" in mesh.output


@pytest.mark.slow
def test_each_layout_holds_and_sends_what_the_formulas_say(mesh: Finished) -> None:
    compared, *layouts = mesh.metrics["compared"]
    assert [(row["dp"], row["tp"]) for row in layouts] == [(2, 2), (4, 1), (1, 4)]
    cut = 2 * (12 * 64 * 64 + 7 * 64)
    kept = 2 * 6 * 64 + (64 + 32) * 64 + 2 * 64 + 65 * 64
    assert compared["parameter_bytes"] == 4 * (cut + kept)
    for row in layouts:
        assert row["parameter_bytes"] == 4 * (cut // row["tp"] + kept)
        assert row["gradient_bytes"] == row["optimizer_bytes"] == row["parameter_bytes"]
        assert row["state_bytes"] == 3 * row["parameter_bytes"]
        assert row["tp_messages"] == (8 if row["tp"] > 1 else 0)
        assert row["tp_message_bytes"] == (16 // row["dp"] * 32 * 64 * 4 if row["tp"] > 1 else 0)
        assert row["dp_message_bytes"] == (row["parameter_bytes"] if row["dp"] > 1 else 0)
        assert row["tokens_per_s"] == pytest.approx(16 * 32 / row["median_ms"] * 1e3, rel=1e-4)
        assert row["loss_after"] < mesh.metrics["loss_before"]
        assert row["peak_gpu_memory_bytes"] is None


@pytest.mark.slow
def test_what_the_mesh_measured_can_be_drawn_and_tabled(mesh: Finished, tmp_path: Path) -> None:
    check_plots_and_tables(mesh, tmp_path, with_gaps=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "change", "failed"),
    [
        ({"dp": "2", "tp": "1"}, ("bucket /= copies.size()", "bucket /= 1"), {"loss-equal", "parameters-right"}),
        (
            {"dp": "1", "tp": "2"},
            ('    "mlp.up": ColwiseParallel(), "mlp.down": RowwiseParallel(),\n', ""),
            {"bytes-by-formula", "messages-by-formula"},
        ),
    ],
    ids=["a sum for an average", "half a plan"],
)
def test_a_fault_of_the_mesh_is_found(
    settings: dict[str, str], change: tuple[str, str], failed: set[str], tmp_path: Path
) -> None:
    run = run_with_changes("3.9", tmp_path / "work", change, **SMALL_MESH | settings)
    assert run.code == 0, run.output
    assert failed <= {check.id for check in run.verdict().checks if check.verdict == "failed"}


@pytest.mark.slow
def test_a_copy_that_is_spread_over_nodes_is_found(tmp_path: Path) -> None:
    in_turns = ("hosts = world.gather(bench.node_label())", 'hosts = world.gather(f"node{rank % 2}")')
    run = run_with_changes("3.9", tmp_path / "work", in_turns, ranks=4, **SMALL_MESH)
    assert run.code == 0, run.output
    assert {check.id for check in run.verdict().checks if check.verdict == "failed"} == {"copy-on-one-node"}


@pytest.mark.slow
def test_a_mesh_that_does_not_fit_the_ranks_is_refused_at_once(tmp_path: Path) -> None:
    run = run_with_changes("3.9", tmp_path / "work", ranks=1, **SMALL_MESH)
    assert run.code == 1
    assert "2 copies (--dp) of 2 slices (--tp) are 4 ranks, but there are 1" in run.output
    assert "Traceback" not in run.output
