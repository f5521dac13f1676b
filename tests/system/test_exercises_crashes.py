"""6.5 as a learner runs it, by torchrun with restarts: lives, losses, and a loop that continues with fewer ranks."""

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
    needs_torch,
    read_finished,
    replace_words,
    start,
    wait,
)

pytestmark = [pytest.mark.system, needs_torch]


# --- 6.5 ----------------------------------------------------------------------------------------------------------------


def run_crashing(folder: Path, *changes: tuple[str, ...], restarts: int = 2, ranks: int = 1, **settings: str) -> Finished:
    """Run 6.5 by torchrun on one node. By default, there is one rank, which crashes and is restarted as two ranks would be."""
    exercise, script = lay_out("6.5", folder, solved=True)
    replace_words(script, changes)
    meeting = ["--master-addr=127.0.0.1", f"--master-port={take_port()}", f"--nproc-per-node={ranks}"]
    command = [sys.executable, "-m", "torch.distributed.run", *meeting, f"--max-restarts={restarts}", script.name]
    process = start([*command, *flags(exercise, **settings)], folder, environment(folder))
    output = wait(process)
    return read_finished(exercise, process.returncode, [output, *[""] * (ranks - 1)], folder)


@pytest.mark.slow
def test_a_part_trains_through_two_crashes_and_a_change_of_the_number_of_ranks(tmp_path: Path) -> None:
    run = run_crashing(tmp_path / "work", ranks=2)
    assert run.code == 0, run.output
    assert list_failed_checks(run) == set()
    keys = ("ranks", "loop", "resumed_at", "last_step", "ended")
    assert [tuple(life[key] for key in keys) for life in run.metrics["lives"]] == [
        (2, "yours", 0, 13, "crashed"), (2, "yours", 5, 14, "crashed"), (1, "yours", 5, 20, "finished")
    ]  # fmt: skip
    assert (run.metrics["lost_steps"], run.metrics["repeated_steps"]) == (9, 17)
    check_plots_and_tables(run, tmp_path)


@pytest.mark.slow
def test_a_training_that_is_resumed_without_its_moments_is_found(tmp_path: Path) -> None:
    new_optimizer = "        self._optimizer = torch.optim.AdamW(self._model.parameters(), lr=3e-3, foreach=False)\n"
    fault = ("        self.last_step = step\n\n    def reset", f"        self.last_step = step\n{new_optimizer}\n    def reset")
    run = run_crashing(tmp_path / "work", fault)
    assert run.code == 0, run.output
    assert list_failed_checks(run) == {"same-end"}


@pytest.mark.slow
def test_a_part_whose_ranks_make_different_calls_is_named_and_the_training_continues_without_it(tmp_path: Path) -> None:
    lonely = ("my_worker.py", "    steps_done = resume(worker)\n", "    steps_done = worker.rank or worker.gather(0)[0]\n")
    run = run_crashing(tmp_path / "work", lonely, ranks=2, restarts=3)
    assert run.code == 0, run.output
    assert list_failed_checks(run) == {"your-loop"}
    assert run.metrics["lives"][-1]["loop"] == "the course's, yours failed"
    assert "gather and train_step of step 2" in run.metrics["part_failed"]
