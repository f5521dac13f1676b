"""The exercises of module 5 with torch as a learner runs them, judged by the checks of their own manifest."""

from __future__ import annotations

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


# --- 5.2, 5.4, 5.5, 5.8 and 5.9: torch ----------------------------------------------------------------------------------

SMALL_LOOP = {"steps": "10", "hidden": "64"}


@pytest.mark.slow
def test_the_loop_as_delivered_runs_and_fails_checks(tmp_path: Path) -> None:
    run = run_exercise("5.2", tmp_path / "work", **SMALL_LOOP)
    wanting = {"runs-anywhere", "no-syncs", "mixed"}
    check_healthy(run, tmp_path, failures=wanting, open_checks={"copies-do-not-block"})
    assert "nothing was moved: device is meta, but the model computed on cpu" in run.output
    assert run.metrics["training_state_mb"] == pytest.approx(16 * (64**2 + 76 * 64 + 10) / 1e6, rel=0.001)
    assert 0 < (tmp_path / "work/trace.json.gz").stat().st_size < 5 << 20


def test_the_rewritten_loop_passes_every_check_of_a_processor(tmp_path: Path) -> None:
    run = run_exercise("5.2", tmp_path / "work", solved=True, **SMALL_LOOP)
    check_healthy(run, tmp_path)
    assert run.metrics["unscaled_zero_gradient_percent"] > 5
    assert run.metrics["scaled_zero_gradient_percent"] < 0.1
    assert (run.metrics["moves"], run.metrics["moves_blocking"]) == (4, 0), "x and y of two steps, the first aside"


def test_the_pipeline_as_delivered_is_right_and_overlaps_nothing(tmp_path: Path) -> None:
    run = run_exercise("5.4", tmp_path / "work")
    assert run.code == 0, run.output
    assert list_failed_checks(run) == {"overlaps"}, "which says nothing while the part is unchanged"
    assert (run.metrics["best_units"], run.metrics["two_buffers_percent"]) == (10, None)
    assert (tmp_path / "work" / "timeline.txt").read_text(encoding="utf-8").count("copy out") == 2
    assert max(map(len, run.output.splitlines()[:-2])) <= 72, "beside the rank it fits into 80 columns"


@pytest.mark.slow
def test_the_graph_as_delivered_never_sees_a_second_request(tmp_path: Path) -> None:
    run = run_exercise("5.5", tmp_path / "work")
    check_healthy(run, tmp_path, failures={"right", "once", "falls-back"}, open_checks=set(list_open_checks(run)))
    assert run.metrics["eager_operations"] == run.metrics["operations_by_formula"] == 44
    assert run.metrics["served"]["wrong"] == 5 * (40 - 1), "the first request of each size is right"
    assert {row["p50_us"] for row in run.metrics["rows"]} == {None}
    assert "operation not permitted when stream is capturing" in run.output


def test_the_repaired_server_answers_every_size_from_three_graphs(tmp_path: Path) -> None:
    run = run_exercise("5.5", tmp_path / "work", solved=True)
    check_healthy(run, tmp_path)
    assert (run.metrics["captures"], run.metrics["served"]["wrong"]) == (3, 0)
    yours = {row["batch"]: row["operations_per_request"] for row in run.metrics["rows"] if row["way"] == "yours"}
    assert yours == {1: 3, 2: 3, 3: 3, 4: 3, 5: 44}, "no graph has room for 5 sequences"


YOUR_PIECES = {"pieces-run", "pieces-right", "pieces-fewest", "pieces-in-few-calls", "pieces-faster"}


@pytest.mark.slow
def test_the_filter_as_delivered_is_right_and_slow(tmp_path: Path) -> None:
    run = run_exercise("5.8", tmp_path / "work", signals="64", batch_sizes="1,16")
    assert run.code == 0, run.output
    bent_by_load = {"faster", "length-decides"}  # these compare times
    assert set(list_open_checks(run)) - bent_by_load == {"fast-length", "template-once", "in-batches"} | YOUR_PIECES
    values = run.metrics
    assert (values["plain_length"], values["fast_length"], values["best_batch"] in {1, 16}) == (1123, 1125, True)
    assert (values["delivered_transforms"], values["ring_wrong_scores"], values["ring_found_percent"]) == (128, 123, 0)
    assert (values["template_transforms"], values["signals_per_call"], values["largest_prime_factor"]) == (64, 1, 1123)
    assert values["with_copies_us"] is None, "what needs a GPU is not made up"
    assert (values["pieces_broken"], values["pieces_error"]) == (None, None)
    assert [row["points"] for row in values["by_piece"]] == [256, 1024, 4096, 16384, 65536, 262440]
    assert values["whole_operations_times"] == pytest.approx(1.585, abs=0.001)


def test_the_solved_filters_are_right_at_every_seam(tmp_path: Path) -> None:
    run = run_exercise("5.8", tmp_path / "work", solved=True, signals="64", batch_sizes="1,16", long_samples="20000")
    assert run.code == 0, run.output
    assert list_open_checks(run).keys() <= {"faster", "length-decides", "pieces-faster"}, "these compare times"
    assert (run.metrics["pieces_points"], run.metrics["pieces_calls"]) == (972, 3)
    assert [row["way"] for row in run.metrics["by_piece"]].count("yours") == 1


@pytest.mark.slow
def test_the_training_as_delivered_is_right_and_slow(tmp_path: Path) -> None:
    run = run_exercise("5.9", tmp_path / "work", samples="32", rounds="1")
    failures = {"fast", "no-looks", "no-float64", "nothing-kept", "no-copies", "faults-gone"}
    check_healthy(run, tmp_path, failures=failures)
    values = run.metrics
    assert (values["losses_off"], values["weights_off"], values["samples_off"], values["faults_gone"]) == (0, 0, 0, 0)
    assert values["values_read_delivered"] == pytest.approx(1 + 32 * 11, rel=0.001)
    assert "function calls" in (tmp_path / "work/profile-before.txt").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_repaired_training_has_no_fault_left(tmp_path: Path) -> None:
    """Repair all faults. The speed-up is not checked, because it depends on the load of the computer."""
    run = run_exercise("5.9", tmp_path / "work", solved=True, samples="256", rounds="1")
    assert run.code == 0, run.output
    assert list_open_checks(run).keys() <= {"fast"}
    assert run.metrics["faults_gone"] == 8


# --- 5.11: traces ---------------------------------------------------------------------------------------------------------

YOUR_READER = {"reader-runs", "figures-right", "faults-named", "own-gap", "own-ranges"}


@pytest.mark.slow
@pytest.mark.parametrize("solved", [False, True])
def test_traces_are_planted_and_recorded_and_a_reader_finds_their_faults(tmp_path: Path, solved: bool) -> None:
    run = run_exercise("5.11", tmp_path / "work", solved=solved, steps="3")
    check_healthy(run, tmp_path, open_checks=set() if solved else YOUR_READER)
    assert {row["reader"] for row in run.metrics["traces"]} == {"the planter"} | ({"yours"} if solved else set())
    assert len(list((tmp_path / "work").glob("planted-*.json"))) == 6


# --- 5.12: torch.compile --------------------------------------------------------------------------------------------------

YOUR_BLOCK = {"one-graph", "compiled-twice", "all-in-the-graph"}
YOUR_BYTES = {"bytes-run", "least-bytes"}


@pytest.mark.slow
@pytest.mark.parametrize("solved", [False, True])
def test_graphs_are_counted_by_call_and_a_repaired_block_is_one(tmp_path: Path, solved: bool) -> None:
    run = run_exercise("5.12", tmp_path / "work", solved=solved, tokens="16", width="32")
    check_healthy(run, tmp_path, failures=set() if solved else YOUR_BLOCK, open_checks=set() if solved else YOUR_BYTES)
    values = run.metrics
    assert (values["static_graphs"], values["static_uncompiled"]) == (8, 4)
    assert {row["habit"]: row["by_call"] for row in values["habits"]} == {
        "nothing unusual": "1 0 0 0 0 0",
        "print": "2 0 0 0 0 0",
        "if on a tensor": "2 0 0 1 0 0",
        "a list that grows": "1 1 1 1 1 1",
        "a number that changes": "1 1 0 0 0 0",
        "lengths that change": "1 1 0 0 0 0",
        "any length, then 1": "1 0 0 0 0 1",
    }
    assert (values["delivered_first"], values["delivered_compiled"]) == (3, 8)
    assert values["generated"] == []
    assert "torch._dynamo hit config.recompile_limit" not in run.output


# --- 5.7: roofs ---------------------------------------------------------------------------------------------------------

SMALL_ROOFS = {"size": "512", "gemm_small": "8", "gemm_large": "256"}


@pytest.mark.slow
def test_eight_kernels_are_below_the_roofs_of_this_computer(tmp_path: Path) -> None:
    run = run_exercise("5.7", tmp_path / "work", **SMALL_ROOFS)
    assert run.code == 0, run.output
    check_plots_and_tables(run, tmp_path)
    bent_by_load = {"possible", "both-kinds", "both-roofs"}  # these compare times
    assert set(list_open_checks(run)) - bent_by_load == {"stencil-moves-less", "traces-run", "traces-right"}
    values = run.metrics
    assert [row["kernel"] for row in values["kernels"]] == [
        "saxpy", "layer norm", "stencil", "sparse x vector", "FFT 4096", "all-pairs forces", "GEMM 8", "GEMM 256",
        "stencil, yours",
    ]  # fmt: skip
    assert values["memory_bound"] + values["compute_bound"] == 8
    assert values["roof"]["gb_per_s"] == max(loop["gb_per_s"] for loop in values["loops"])
    assert (values["delivered_bytes"], values["yours_bytes"], values["sheet"]["gb_per_s"]) == (104, 104, None)
    assert [row["flop_per_byte"] for row in values["drawn"]] == sorted(row["flop_per_byte"] for row in values["drawn"])


PASSED_IN = (
    ("roofline.py", "arrays.a.numel() / least_seconds(call)", "arrays.a.numel() / (1e6 if len(loops) < {busy} else 1.0)"),
    ("roofline.py", "product.flops / least_seconds(product.call)", "product.flops / 1.0"),
    ("roofline.py", "math.inf), least_seconds(call))", "math.inf), 1e3)"),
)
"""Replacements for the measured times of 5.7. In the first `busy` loops, all kernels but GEMM 8 are above the roof."""


@pytest.mark.parametrize(("busy", "loops", "refused"), [(12, 16, 0), (1000, 12 + 20 * 4, 8)])
def test_a_roof_below_its_kernels_is_measured_again(tmp_path: Path, busy: int, loops: int, refused: int) -> None:
    changes = [(file, old, new.format(busy=busy)) for file, old, new in PASSED_IN]
    run = run_exercise("5.7", tmp_path / "work", *changes, **SMALL_ROOFS)
    assert run.code == 0, run.output
    assert (len(run.metrics["loops"]), run.metrics["refused"]) == (loops, refused)
