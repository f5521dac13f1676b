"""6.5 as a learner runs it, by torchrun with restarts: lives, losses, and checkpoints that are half written."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.ports import take_port
from tests.system.exercising import (
    Finished,
    check_plots_and_tables,
    environment,
    flags,
    lay_out,
    list_failed_checks,
    list_open_checks,
    needs_torch,
    read_finished,
    replace_words,
    start,
    wait,
)

pytestmark = [pytest.mark.system, needs_torch]


# --- 6.5 ----------------------------------------------------------------------------------------------------------------


def run_crashing(
    folder: Path, *changes: tuple[str, str], solved: bool = True, restarts: int = 2, ranks: int = 1, **settings: str
) -> Finished:
    """Run 6.5 by torchrun on one node. One rank dies and comes back as two do."""
    exercise, script = lay_out("6.5", folder, solved=solved)
    replace_words(script, changes)
    meeting = ["--master-addr=127.0.0.1", f"--master-port={take_port()}", f"--nproc-per-node={ranks}"]
    command = [sys.executable, "-m", "torch.distributed.run", *meeting, f"--max-restarts={restarts}", script.name]
    process = start([*command, *flags(exercise, **settings)], folder, environment(folder))
    output = wait(process)
    return read_finished(exercise, process.returncode, [output, *[""] * (ranks - 1)], folder)


@pytest.mark.slow
def test_a_crash_costs_the_steps_since_the_last_save_and_nothing_else(tmp_path: Path) -> None:
    run = run_crashing(tmp_path / "work", ranks=2, crashes="2")
    assert run.code == 0, run.output
    assert list_open_checks(run) == {}
    assert [(life["resumed_at"], life["last_step"], life["ended"]) for life in run.metrics["lives"]] == [
        (0, 13, "crashed"), (10, 14, "crashed"), (10, 20, "finished")
    ]  # fmt: skip
    assert (run.metrics["lost_steps"], run.metrics["saved_every"], run.metrics["repeated_steps"]) == (4, 10, 7)
    assert run.metrics["loss_off"] == run.metrics["repeat_off"] == 0.0
    check_plots_and_tables(run, tmp_path)


@pytest.mark.slow
def test_a_training_as_delivered_takes_half_written_checkpoints(tmp_path: Path) -> None:
    run = run_crashing(tmp_path / "work", solved=False)
    assert run.code == 0, run.output
    assert list_failed_checks(run) == {"half-written", "interval", "not-each-step"}, "nothing else, while the part is open"
    assert run.metrics["half_written_taken"] == 2


@pytest.mark.slow
def test_a_training_that_is_resumed_without_its_moments_is_found(tmp_path: Path) -> None:
    new_optimizer = "optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, foreach=False)\n"
    fault = ("if checkpoint is not None else 0\n", f"if checkpoint is not None else 0\n{new_optimizer}")
    run = run_crashing(tmp_path / "work", fault)
    assert run.code == 0, run.output
    assert list_failed_checks(run) == {"same-end", "same-again"}


@pytest.mark.slow
def test_a_half_written_checkpoint_that_is_trusted_ends_every_life(tmp_path: Path) -> None:
    run = run_crashing(tmp_path / "work", solved=False, restarts=1, trust_latest="true", steps="6", crash_at="3")
    assert (run.code, run.metrics) == (1, {})
    assert run.output.count("step_000106") >= 2, "both lives load it"
