"""The error file of a learner's batch file: it is found by sbatch's pattern and added to the job's log once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpucourse.remote.agent.job import Job
from gpucourse.remote.agent.slurm import log, submit, watch
from tests.unit.remote.scripted import Scripted, details, row, spec

TRACEBACK = 'Traceback (most recent call last):\n  File "x.py", line 1\nValueError: no such model'


@pytest.mark.parametrize(
    ("wish", "target"),
    [
        ("err-%j.txt", "err-7.txt"),
        ("%x-%N-%A.err", "*-*-7.err"),
        ("/shared/%u/e?.log", "/shared/*/e[?].log"),
    ],
)
def test_make_glob_matches_what_sbatch_writes(wish: str, target: str) -> None:
    assert log.make_glob(wish, "7") == target
    assert log.make_glob("e-%A_%a.txt", "7_12") == "e-7_12.txt"


def make_spec(wish: str) -> dict[str, Any]:
    whole: dict[str, Any] = spec()
    whole["slurm"]["files"][0]["error"] = wish
    return whole


def run_to_the_end(script_slurm: Callable[..., Scripted], wish: str, write_errors: Callable[[Path], object]) -> str:
    """Return the log of a failed job after the last look."""
    script_slurm(sbatch="7\n", squeue=row("7", "FAILED", node="node1"), scontrol=details("7", "FAILED", "1:0"))
    submit.submit(make_spec(wish))
    job = Job("r1")
    job_log = Path(job.path("logs", "7-node1.out"))
    job_log.write_text("step 1\n")
    write_errors(Path(job.path("work")))
    watch.look(job)
    watch.look(job)
    log.add_error_files(job, [{"job": "7", "file": "job"}])  # as after a look that was killed
    assert job.has("done")
    return job_log.read_text()


@pytest.mark.parametrize("wish", ["err-%j.txt", "%x.txt"])
def test_add_error_files_appends_an_error_file_once(script_slurm: Callable[..., Scripted], wish: str) -> None:
    output = run_to_the_end(script_slurm, wish, lambda work: (work / "err-7.txt").write_text(TRACEBACK))
    assert output == f"step 1\n\nerr-7.txt, the job's error file:\n{TRACEBACK}\n"


def test_add_error_files_appends_the_end_of_a_huge_error_file(script_slurm: Callable[..., Scripted]) -> None:
    output = run_to_the_end(script_slurm, "e", lambda work: (work / "e").write_bytes(b"x" * (3 << 20) + TRACEBACK.encode()))
    assert output.endswith("no such model\n")
    assert len(output) < (1 << 20) + 100


@pytest.mark.parametrize("wish", ["/nowhere/e-%j", "e"])
def test_add_error_files_names_an_error_file_that_is_not_on_the_node(script_slurm: Callable[..., Scripted], wish: str) -> None:
    text = run_to_the_end(script_slurm, wish, lambda _work: None)
    assert text == f"step 1\n\nits errors went to {wish}, which is not on this node\n"


@pytest.mark.parametrize("kind", ["device", "pipe", "folder"])
def test_add_error_files_names_an_error_file_that_is_no_regular_file(
    script_slurm: Callable[..., Scripted], tmp_path: Path, kind: str
) -> None:
    path = Path("/dev/null") if kind == "device" else tmp_path / "e"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    text = run_to_the_end(script_slurm, str(path), lambda _work: None)
    assert text == f"step 1\n\nits errors went to {path}, which is not a regular file\n"


@pytest.mark.parametrize("kind", ["empty", "the log itself"])
def test_add_error_files_leaves_out_an_error_file_with_nothing_new(script_slurm: Callable[..., Scripted], kind: str) -> None:
    def put(work: Path) -> None:
        if kind == "empty":
            (work / "e").touch()
        elif kind == "the log itself":
            (work / "e").symlink_to("../logs/7-node1.out")

    assert run_to_the_end(script_slurm, "e", put) == "step 1\n"


@pytest.mark.parametrize(
    ("wish", "calls"),
    [
        ("logs/err/%j.txt", ["logs", "logs/err"]),
        ("logs/%x/%j.txt", ["logs"]),
        ("../up/e", []),
    ],
)
def test_make_error_folder_makes_the_folder_of_an_error_file(
    script_slurm: Callable[..., Scripted], wish: str, calls: list[str]
) -> None:
    """Make the folder, because Slurm ends a job at once if it cannot open its error file."""
    script_slurm(sbatch="7\n")
    submit.submit(make_spec(wish))
    work = Path(Job("r1").path("work"))
    assert sorted(path.relative_to(work).as_posix() for path in work.rglob("*")) == calls
    assert not Path(Job("r1").path("up")).exists()
