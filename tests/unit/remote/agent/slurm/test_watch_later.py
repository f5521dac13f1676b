"""Jobs that a run's own jobs submitted: they are named when the run has ended and cancelled with it, and temporary files stay
until they have ended.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gpucourse.remote.agent import scratch
from gpucourse.remote.agent.job import Job
from gpucourse.remote.agent.slurm import commands, submit, watch
from tests.unit.remote.scripted import DOWN, Scripted, details, log, row, spec


def listing(*jobs: tuple[str, str, str], folder: str = "work") -> str:
    """Return squeue's output about jobs: number, state and name."""
    return "".join(f"{job}|{state}|{name}|{Job('r1').path(folder)}\n" for job, state, name in jobs)


def run_to_the_end(script_slurm: Callable[..., Scripted], later_queue: str, **options: str) -> Scripted:
    """Return a run whose only job has ended, with squeue's answer about others at that time."""
    cluster = script_slurm(
        sbatch="7\n",
        squeue=[row("7", "COMPLETED", node="a"), later_queue],
        scontrol=details("7", "COMPLETED"),
        scancel="",
        **options,
    )
    submit.submit(spec())
    watch.look(Job("r1"))
    assert Job("r1").has("done")
    return cluster


def run_nearly_to_the_end(script_slurm: Callable[..., Scripted]) -> Scripted:
    """Return the same run if Slurm stops answering between the run's job and the others."""
    squeue = [row("7", "COMPLETED", node="a"), DOWN]
    cluster = script_slurm(sbatch="7\n", squeue=squeue, scontrol=details("7", "COMPLETED"), sinfo=f"{commands.host()}\n")
    submit.submit(spec())
    watch.look(Job("r1"))
    return cluster


def test_look_names_later_jobs_at_the_end_of_a_run(script_slurm: Callable[..., Scripted], tmp_path: Path) -> None:
    elsewhere = f"12|RUNNING|other|{tmp_path}/elsewhere\n13|RUNNING|near|{Job('r1').folder}2\n"
    jobs = listing(("7", "COMPLETING", "2.1"), ("8", "PENDING", "a|b"), ("9", "RUNNING", "it"), ("10", "COMPLETED", "x"))
    run_to_the_end(script_slurm, jobs + elsewhere + listing(("11", "RUNNING", "deep"), folder="work/deeper"))
    assert Job("r1").read("exit.json")["later"] == [
        {"job": "8", "name": "a|b", "state": "PENDING"},
        {"job": "9", "name": "it", "state": "RUNNING"},
        {"job": "11", "name": "deep", "state": "RUNNING"},
    ]


def test_look_finds_no_end_until_slurm_names_later_jobs(script_slurm: Callable[..., Scripted]) -> None:
    """Look while Slurm does not answer. Otherwise, later jobs would be forgotten, and their temporary folder removed."""
    cluster = run_nearly_to_the_end(script_slurm)
    assert not Job("r1").has("done")
    assert "Slurm does not answer" in log()
    cluster.answers["squeue"] = [row("7", "COMPLETED", node="a"), listing(("8", "RUNNING", "x"))]
    watch.look(Job("r1"))
    assert Job("r1").read("exit.json")["later"] == [{"job": "8", "name": "x", "state": "RUNNING"}]
    assert Job("r1").has("tmp")


def test_describe_later_jobs_keeps_temporary_files_until_the_last_ends(script_slurm: Callable[..., Scripted]) -> None:
    cluster = run_to_the_end(script_slurm, listing(("8", "RUNNING", "x")))
    scratch.make(Job("r1"))
    assert watch.describe_later_jobs(Job("r1")) == {"jobs": [{"job": "8", "name": "x", "state": "RUNNING"}]}
    assert Job("r1").has("tmp")
    cluster.answers["squeue"] = [listing(("8", "COMPLETED", "x"))]
    assert watch.describe_later_jobs(Job("r1")) == {"jobs": []}
    assert not Job("r1").has("tmp")


def test_look_removes_temporary_files_if_there_are_no_later_jobs(script_slurm: Callable[..., Scripted]) -> None:
    cluster = run_to_the_end(script_slurm, "", sinfo=f"{commands.host()}\n")
    assert cluster.variables["sbatch"]["TMPDIR"]
    assert not os.path.lexists(cluster.variables["sbatch"]["TMPDIR"])
    assert not Job("r1").has("tmp")
    assert cluster.variables["sbatch"]["TRITON_CACHE_DIR"] == str(Path(Job("r1").folder).parent.parent / "cache" / "triton")


def test_cancel_ends_later_jobs_and_what_they_submit(script_slurm: Callable[..., Scripted]) -> None:
    cluster = run_to_the_end(script_slurm, listing(("8", "RUNNING", "x")))
    cluster.answers["squeue"] = [
        listing(("8", "RUNNING", "x")), listing(("8", "COMPLETING", "x"), ("9", "PENDING", "y")), "",
    ]  # fmt: skip
    assert watch.cancel(Job("r1"), watch.request_end(Job("r1"))) == "ended"
    assert [words for words in cluster.asked if words[0] == "scancel"] == [("scancel", "8"), ("scancel", "8", "9")]
    assert Job("r1").read("exit.json")["later"] == []
    query_count = cluster.count("squeue")
    assert watch.request_end(Job("r1")) == []
    assert cluster.count("squeue") == query_count, "nothing is asked of Slurm where nothing is left"


def test_cancel_names_a_later_job_that_does_not_end(script_slurm: Callable[..., Scripted]) -> None:
    run_to_the_end(script_slurm, listing(("8", "RUNNING", "x")))
    with pytest.raises(commands.Controller, match="Slurm still lists: 8"):
        watch.cancel(Job("r1"), watch.request_end(Job("r1")), proof_s=0.0)
