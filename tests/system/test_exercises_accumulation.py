"""3.5 as a learner runs it: four ways, counted and compared; its checks pass, and each injected fault is found by its check."""

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

WAYS = ["no accumulation", "sync every micro-step", "no_sync", "big batch"]
NEEDS_GPU = {"faster": "not_measured: not measured: needs a GPU", "memory": "not_measured: not measured: needs a GPU"}


@pytest.fixture(scope="module")
def accumulation(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return run_ranks("3.5", 2, tmp_path_factory.mktemp("accumulation") / "a node's work")


@pytest.mark.slow
def test_with_its_local_defaults_it_passes_every_check_that_a_cpu_can_make(accumulation: Finished) -> None:
    assert accumulation.code == 0, accumulation.output
    assert words(accumulation.verdict()) == NEEDS_GPU
    assert accumulation.verdict().verdict == "passed"


@pytest.mark.slow
def test_four_ways_with_their_traffic(accumulation: Finished) -> None:
    values = accumulation.metrics
    assert [row["way"] for row in values["ways"]] == WAYS
    assert [row["updates"] for row in values["ways"]] == [4, 1, 1, 1]
    gradients = 4 * (784 * 512 + 512 + 512 * 512 + 512 + 512 * 10 + 10)
    assert values["gradient_bytes"] == gradients
    assert [row["allreduce_bytes"] for row in values["ways"]] == [4 * gradients, 4 * gradients, gradients, gradients]
    calls = [row["allreduce_calls"] for row in values["ways"]]
    assert calls == [4 * calls[3], 4 * calls[3], calls[3], calls[3]]
    for row in values["ways"]:
        assert row["peak_gpu_memory_bytes"] is None
        assert row["samples_per_s"] == pytest.approx(2 * 4 * 32 / row["median_ms"] * 1e3)


@pytest.mark.slow
def test_only_the_right_weight_gives_the_right_gradient(accumulation: Finished) -> None:
    none, last_way, last, _ = accumulation.metrics["ways"]
    assert max(last_way["gradient_error"], last["gradient_error"], last["last_group_error"]) < 1e-5
    assert none["gradient_error"] > 0.1, "the last micro-batch alone is not the batch"
    assert accumulation.metrics["last_group_error_by_k"] > 0.1, "dividing by k is wrong where the group is not full"
    assert accumulation.metrics["last_group_samples"] == 2 * (2 * 32 + 16)


@pytest.mark.slow
def test_what_it_measured_can_be_drawn_and_tabled(accumulation: Finished, tmp_path: Path) -> None:
    check_plots_and_tables(accumulation, tmp_path)


WEIGHT, QUIET = "by_k else piece / count", "if way == LAST and begin < count else"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("checks", "changes"),
    [
        (
            {"last-group", "calls-saved", "bytes-saved"},
            [(WEIGHT, "by_k or way != BIG else 1.0"), (QUIET, "if way == 'never' else")],
        ),
        (
            {"ranks-agree", "gradients-equal", "same-weights", "calls-saved", "bytes-saved"},
            [(QUIET, "if way == LAST else")],
        ),
    ],
    ids=["divided by k, without no_sync", "never in sync"],
)
def test_a_fault_is_found_by_its_check(checks: set[str], changes: list[tuple[str, str]], tmp_path: Path) -> None:
    run = run_with_changes("3.5", tmp_path / "work", *changes, micro_batch="8", hidden="32", steps="5")
    assert run.code == 0, run.output
    assert {check.id for check in run.verdict().checks if check.verdict == "failed"} >= checks, run.output
    assert run.check("gradients-equal").verdict == ("failed" if "gradients-equal" in checks else "passed")


@pytest.mark.slow
def test_a_big_batch_that_does_not_fit_on_one_rank_is_left_out_on_all(tmp_path: Path) -> None:
    old = "        with model.no_sync():\n            one_group(BIG"
    new = "        if rank == 1:\n            raise torch.OutOfMemoryError('injected')\n" + old
    run = run_with_changes("3.5", tmp_path / "work", (old, new), micro_batch="8", hidden="32", steps="5")
    assert run.code == 0, run.output
    assert [row["way"] for row in run.metrics["ways"]] == WAYS[:3]
    assert run.metrics["big_batch"] is None
    assert "The big batch does not fit on every rank" in run.output
    assert run.check("gradients-equal").verdict == "error", "nothing to compare with is not a pass"
    assert run.check("calls-saved").verdict == "passed"


@pytest.mark.slow
def test_odd_numbers_alone_and_by_hand(tmp_path: Path) -> None:
    exercise, script = lay_out("3.5", tmp_path / "work")
    command = [sys.executable, str(script), "--accumulation-steps=3", "--micro-batch=1", "--hidden=7", "--steps=5"]
    process = start(command, tmp_path, environment(tmp_path))
    output = wait(process)
    assert process.returncode == 0, output
    assert exercise.script in (tmp_path / "metrics.json").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_wrong_flag_is_refused_with_a_sentence(tmp_path: Path) -> None:
    _, script = lay_out("3.5", tmp_path / "work")
    process = start([sys.executable, str(script), "--accumulation-steps=1"], tmp_path, environment(tmp_path))
    output = wait(process)
    assert (process.returncode, "error:" in output, "Traceback" in output) == (2, True, False)
