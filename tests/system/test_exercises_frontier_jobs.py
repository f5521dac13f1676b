"""Exercises 9.7 and 9.8 as a learner runs them, judged by the checks of their own manifest."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.system.exercising import check_healthy, list_failed_checks, needs_torch, run_exercise

pytestmark = [pytest.mark.system, needs_torch]

# --- 9.7 ----------------------------------------------------------------------------------------------------------------

SMALL = {"widths": "16,32", "rates": "-8,-7", "sweep_steps": "4", "steps": "2", "width": "16"}
PARTS_RUN = {"orthogonal-runs", "muon-runs", "widths-runs"}
"""These checks are not judged while their parts are open."""
OF_YOURS = {
    "polynomial", "near-one", "flops-least", "sharded-equal", "momentum-shared", "sends", "balanced", "mup-slope", "rate-stays",
}  # fmt: skip


@pytest.mark.slow
def test_optimizers_as_delivered_equal_one_process(tmp_path: Path) -> None:
    run = run_exercise("9.7", tmp_path / "work", ranks=2, ranks_per_node="1", **SMALL)
    check_healthy(run, tmp_path, failures=PARTS_RUN, open_checks=OF_YOURS)
    assert run.metrics["flops"]["of_a_step_percent"] == 100 * 5 * 4096 / 1048576
    assert run.metrics["trainings"][0]["kept_times"] == 2, "each rank keeps all of the momentum"


@pytest.mark.slow
def test_optimizers_solved_share_work_and_momentum(tmp_path: Path) -> None:
    run = run_exercise("9.7", tmp_path / "work", solved=True, ranks_per_node="3", plan="hybrid", **SMALL)
    check_healthy(run, tmp_path)
    yours = run.metrics["trainings"][1]
    assert yours["kept_times"] == 1
    assert yours["sent_numbers"] == run.metrics["all_reduce_numbers"]
    assert yours["max_work"] < run.metrics["trainings"][0]["max_work"] / 2


@pytest.mark.slow
def test_optimizers_name_parts_that_end_their_process_or_return_nonsense(tmp_path: Path) -> None:
    files = {
        "my_orthogonal.py": "import os\n\n\ndef orthogonalise(matrix, plan):\n    os._exit(3)\n",
        "my_widths.py": "def settings(kind, shape, base_shape):\n    return 1.0, float('nan'), 1.0\n",
    }
    run = run_exercise("9.7", tmp_path / "work", solved=["my_muon.py"], files=files, ranks_per_node="2", **SMALL)
    assert run.code == 0, run.output
    assert list_failed_checks(run) == {"orthogonal-runs", "widths-runs"}
    assert "my_orthogonal.py: the process ended with code 3" in run.metrics["errors"]["orthogonal"]
    assert "all three must be above 0" in run.metrics["errors"]["widths"]
    assert run.metrics["yours"]["muon"]["off"] < 1e-6, "it goes on with the course's iteration"


# --- 9.8 ----------------------------------------------------------------------------------------------------------------

FEW = {"dp": "4", "pp": "4", "tp": "4", "micro_batches": "4"}
SEARCHES_RUN = {"hang-runs", "slow-runs", "accounts-run"}
OF_SEARCHES = {"real-found", "hangs-found", "slow-found", "published-mfu", "day-kept"}


@pytest.mark.slow
def test_a_large_job_as_delivered_hangs_and_its_parts_are_open(tmp_path: Path) -> None:
    run = run_exercise("9.8", tmp_path / "work", ranks=2, ranks_per_node="1", real_fault="sleeps", **FEW)
    check_healthy(run, tmp_path, failures=SEARCHES_RUN, open_checks=OF_SEARCHES)
    assert run.metrics["torch_blames"] == [run.metrics["real_culprit"]]
    assert [row["seen_by_replay"] for row in run.metrics["corrupt"]] == [False, True, False]
    assert [row["seen_by_checksum"] for row in run.metrics["corrupt"]] == [False, False, True]


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["skips", "other-operation"])
def test_a_large_job_solved_finds_every_culprit(fault: str, tmp_path: Path) -> None:
    run = run_exercise("9.8", tmp_path / "work", solved=True, ranks_per_node="4", real_fault=fault, puzzle="3", **FEW)
    check_healthy(run, tmp_path)
    assert run.metrics["torch_blames"] == [run.metrics["real_culprit"]] == [1]


@pytest.mark.slow
def test_a_search_that_hangs_or_lies_costs_the_other_parts_nothing(tmp_path: Path) -> None:
    files = {"my_slow.py": "def find_slow(seconds):\n    return 'gpu', 'rank 3'\n"}
    run = run_exercise("9.8", tmp_path / "work", solved=["my_hang.py", "my_accounts.py"], files=files, ranks_per_node="2",
                       real_fault="sleeps", **FEW)  # fmt: skip
    assert run.code == 0, run.output
    assert list_failed_checks(run) == {"slow-runs"}
    assert "instead of (word, number)" in run.metrics["errors"]["slow"]
