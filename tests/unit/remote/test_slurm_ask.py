"""Asking Slurm: a munged that is gone is told at once, and what a command complained of while it waited is not lost."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from gpucourse.remote.agent import slurm_jobs, slurm_submit
from gpucourse.remote.agent.job import Job
from tests.unit.remote.scripted import Scripted, row, spec


def program(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """A squeue for the test."""
    path = folder / "squeue"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)


def test_a_munged_that_left_its_door_behind_is_told_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program(tmp_path, monkeypatch, "echo said")
    door = tmp_path / "munge.socket.2"
    assert slurm_jobs.ask("squeue", munge=str(door)) == "said\n"  # no door: it may be elsewhere
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(door))
        listener.listen()
        assert slurm_jobs.ask("squeue", munge=str(door)) == "said\n"
    with pytest.raises(slurm_jobs.Controller, match="munged is gone: nobody listens at"):
        slurm_jobs.ask("squeue", munge=str(door))


def test_what_a_command_said_before_its_time_was_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program(tmp_path, monkeypatch, "echo 'Unable to contact slurm controller' >&2; exec sleep 60")
    with pytest.raises(slurm_jobs.Controller, match=r"did not answer within 0\.5 s: Unable to contact slurm controller"):
        slurm_jobs.ask("squeue", munge=str(tmp_path / "none"), timeout_s=0.5)


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("slurm_load_jobs error: Invalid job id specified", slurm_jobs.UnknownJob),
        ("slurm_load_jobs error: Unable to contact slurm controller", slurm_jobs.Controller),
    ],
)
def test_a_job_that_slurm_has_forgotten_is_an_error_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str, kind: type[slurm_jobs.Controller]
) -> None:
    program(tmp_path, monkeypatch, f"echo '{said}' >&2; exit 1")
    with pytest.raises(slurm_jobs.Controller) as caught:
        slurm_jobs.ask("squeue", munge=str(tmp_path / "none"))
    assert type(caught.value) is kind
    assert caught.value.what == said


def test_a_command_has_the_variables_that_it_is_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program(tmp_path, monkeypatch, 'echo "$MINE $LC_ALL"')
    assert slurm_jobs.ask("squeue", munge=str(tmp_path / "none"), variables={"MINE": "a b"}) == "a b C.UTF-8\n"


def test_variables_reach_sbatch_alone_and_what_is_secret_no_file(script_slurm: Callable[..., Scripted]) -> None:
    slurm = script_slurm(sbatch="7\n", squeue=row("7", "COMPLETED"))
    slurm_submit.submit({**spec(), "env": {"MINE": "1"}, "secrets": {"TOKEN": "3f9c"}})
    assert slurm.variables["sbatch"].items() >= {"MINE": "1", "TOKEN": "3f9c"}.items()
    files = [path for path in Path(Job("r1").folder).rglob("*") if path.is_file()]
    assert {"job.json", "slurm.json"} <= {path.name for path in files}
    assert not [path for path in files if b"3f9c" in path.read_bytes()]
