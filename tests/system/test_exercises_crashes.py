"""6.5 as a learner runs it, by torchrun with restarts: lives, losses, and each fault that turns its check red."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.ports import take_port
from tests.system.exercising import (
    FOLDERS,
    Finished,
    check_plots_and_tables,
    environment,
    flags,
    lay_out,
    list_failed_checks,
    list_unanswered,
    needs_torch,
    read_finished,
    start,
    wait,
)

pytestmark = [pytest.mark.system, pytest.mark.slow, needs_torch]

PARTS_CHECKS = {"half-written", "interval", "not-each-step"}


def run_crashing(
    folder: Path, *changes: tuple[str, str], solved: bool = True, restarts: int = 2, ranks: int = 1, **settings: str
) -> Finished:
    """The exercise under torchrun on one node, with words of its script replaced. One rank dies and comes back as two do."""
    exercise, script = lay_out("6.5", folder)
    if solved:
        shutil.copyfile(FOLDERS.exercises / "06-training-at-scale/solutions/my_resume.py", folder / "my_resume.py")
    text = script.read_text(encoding="utf-8")
    for old, new in changes:
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times"
        text = text.replace(old, new)
    script.write_text(text, encoding="utf-8")
    meeting = ["--master-addr=127.0.0.1", f"--master-port={take_port()}", f"--nproc-per-node={ranks}"]
    command = [sys.executable, "-m", "torch.distributed.run", *meeting, f"--max-restarts={restarts}", script.name]
    process = start([*command, *flags(exercise, **settings)], folder, environment(folder))
    output = wait(process)
    return read_finished(exercise, process.returncode, output, folder, ranks)


def test_a_crash_costs_the_steps_since_the_last_save_and_nothing_else(tmp_path: Path) -> None:
    run = run_crashing(tmp_path / "work", ranks=2, crashes="2")
    assert run.code == 0, run.output
    assert list_failed_checks(run) == set()
    assert [(life["resumed_at"], life["last_step"], life["ended"]) for life in run.metrics["lives"]] == [
        (0, 13, "crashed"), (10, 14, "crashed"), (10, 20, "finished")
    ]  # fmt: skip
    assert (run.metrics["lost_steps"], run.metrics["saved_every"], run.metrics["repeated_steps"]) == (4, 10, 7)
    assert run.metrics["loss_off"] == run.metrics["repeat_off"] == 0.0
    check_plots_and_tables(run, tmp_path)
    assert not list_unanswered(run)


def test_as_delivered_the_run_is_whole_and_the_part_is_open(tmp_path: Path) -> None:
    run = run_crashing(tmp_path / "work", solved=False)
    assert run.code == 0, run.output
    assert list_failed_checks(run) == PARTS_CHECKS, "these say nothing while the part is as delivered"
    assert run.metrics["half_written_taken"] == 2


def test_a_half_written_checkpoint_that_is_trusted_ends_every_life(tmp_path: Path) -> None:
    run = run_crashing(tmp_path / "work", solved=False, restarts=1, trust_latest="true", steps="6", crash_at="3")
    assert run.code == 1
    assert not run.metrics
    assert run.output.count("step_000106") >= 2, "both lives load it"


FAULTS = {
    "no-moments": (
        "if checkpoint is not None else 0\n",
        "if checkpoint is not None else 0\noptimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, foreach=False)\n",
        {"same-end", "same-again"},
    ),
    "own-counter": (
        "for step in range(done + 1, args.steps + 1):\n    try:\n        loss = train_step(model, optimizer, step)",
        "for number, step in enumerate(range(done + 1, args.steps + 1), 1):\n    try:\n"
        "        loss = train_step(model, optimizer, number)",
        {"same-end", "same-again"},
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_turns_its_checks_red(tmp_path: Path, name: str) -> None:
    old, new, red = FAULTS[name]
    run = run_crashing(tmp_path / "work", (old, new))
    assert run.code == 0, run.output
    assert list_failed_checks(run) == red
