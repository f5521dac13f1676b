"""The exercises of module 6 as a learner runs them, with real processes, judged by the checks of their own manifest."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.system.exercising import (
    FOLDERS,
    check_plots_and_tables,
    environment,
    flags,
    lay_out,
    list_failed_checks,
    list_unanswered,
    needs_torch,
    read_finished,
    replace_words,
    run_solved,
    start,
    wait,
    with_a_gpu,
    with_faults,
)

pytestmark = [pytest.mark.system, needs_torch]

FOLDER = FOLDERS.exercises / "06-training-at-scale"

# --- 6.1 ---------------------------------------------------------------------------------------------------------------

SMALL_MODEL = {"layers": "2", "width": "64", "length": "64", "budget_mib": "8"}


def read_change(name: str) -> tuple[str, str, str]:
    """A part as it is delivered and its solution, for `with_faults`."""
    return name, (FOLDER / name).read_text(encoding="utf-8"), (FOLDER / "solutions" / name).read_text(encoding="utf-8")


NO_ESTIMATE = ("memory_optimisation.py", "large = estimates.plan_large()", "large = None")
"""What is estimated for a large model without a device is the same in every run, and takes half of it."""


@pytest.mark.slow
def test_a_plain_step_runs_out_of_memory_and_the_run_goes_on(tmp_path: Path) -> None:
    run = with_faults("6.1", tmp_path / "work", NO_ESTIMATE, **SMALL_MODEL)
    assert run.code == 0, run.output
    assert list_failed_checks(run) == {"fits"}
    assert "out of memory: simulated device out of memory. Tried to allocate" in run.output
    assert run.metrics["yours"] == {"fits": False, "out_of_memory": True} | dict.fromkeys(
        ("peak_mib", "peak_of_plain", "flops_of_plain", "loss_off", "parameter_off", "micro_batches")
    )
    parameters = 2 * (12 * 64**2 + 13 * 64) + 512 * 64 + 64 * 64 + 2 * 64 + 65 * 512
    assert run.metrics["floor_mib"] == pytest.approx(16 * parameters / (1 << 20))
    assert run.metrics["predicted"] == []


@pytest.mark.slow
def test_a_step_in_parts_passes_every_check_of_a_cpu(tmp_path: Path) -> None:
    run = run_solved("6.1", tmp_path / "work", "my_step.py", **SMALL_MODEL)
    assert run.code == 0, run.output
    assert list_unanswered(run) == {}
    assert run.metrics["yours"]["micro_batches"] == 4
    assert len(run.metrics["predicted"]) == 8
    assert (run.metrics["largest_batch_on"], run.metrics["largest_batch_checkpointed"]) == (11, 20)
    check_plots_and_tables(run, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("budget", ["0", "64"])
def test_memory_on_a_gpu_is_the_allocators(tmp_path: Path, budget: str) -> None:
    exercise, script = lay_out("6.1", tmp_path / "work")
    replace_words(script.parent, [read_change("my_step.py"), NO_ESTIMATE])
    words = [sys.executable, script.name, *flags(exercise, **SMALL_MODEL | {"budget_mib": budget})]
    process = start(words, script.parent, with_a_gpu(script.parent))
    output = wait(process)
    assert process.returncode == 0, output
    metrics = read_finished(exercise, 0, output, script.parent, 1).metrics
    assert (metrics["measured_peak_mib"], metrics["yours"]["peak_mib"], metrics["simulated"]) == (1, 1, None), "as it plays one"
    assert metrics["gpu_peak_of_plain"] is None, "a peak of 1 MiB is below the floor"
    assert (script.parent / "memory-snapshot.pickle").is_file()


@pytest.mark.parametrize(
    ("flag", "rule"),
    [
        pytest.param("--width=40", "--width must be a multiple of 32", marks=pytest.mark.slow),
        pytest.param("--steps=1", "--steps must be at least 2", marks=pytest.mark.slow),
        pytest.param("--budget-mib=-1", "must not be below 0", marks=pytest.mark.slow),
    ],
)
def test_a_model_that_cannot_be_is_refused_with_the_rule(tmp_path: Path, flag: str, rule: str) -> None:
    _, script = lay_out("6.1", tmp_path / "work")
    process = start([sys.executable, script.name, flag], script.parent, environment(script.parent))
    assert rule in wait(process)
    assert process.returncode == 2
