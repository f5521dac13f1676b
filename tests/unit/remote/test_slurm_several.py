"""Several runs under Slurm in one request: all are asked to end first, and a controller that is down is waited for once."""

from __future__ import annotations

from collections.abc import Callable

from gpucourse.remote.agent import slurm_submit, slurm_watch
from gpucourse.remote.agent.job import Job
from gpucourse.remote.agent.main import _cancel_all, _tell_states
from tests.unit.remote.scripted import DOWN, Answer, Scripted, row, spec


def _submit_two(script_slurm: Callable[..., Scripted], **answers: list[Answer] | Answer) -> Scripted:
    cluster = script_slurm(sbatch=["7\n", "8\n"], scancel="", scontrol="", **answers)
    for run_id in ("r1", "r2"):
        slurm_submit.submit({**spec(), "run_id": run_id})
    return cluster


def test_several_runs_are_all_asked_to_end_before_one_is_waited_for(script_slurm: Callable[..., Scripted]) -> None:
    running, ended = ([row(job, state, node="a") for job in ("7", "8")] for state in ("RUNNING", "CANCELLED"))
    cluster = _submit_two(script_slurm, squeue=[*running, "".join(ended)])
    told = _cancel_all(5.0, ["r1", "r2", "r3"])
    assert told == {
        "r1": {"state": "ended", "killed": 1}, "r2": {"state": "ended", "killed": 1}, "r3": {"state": "absent", "killed": 0},
    }  # fmt: skip
    names = [words[0] for words in cluster.asked if words[0] in {"squeue", "scancel"}]
    assert names[:4] == ["squeue", "scancel", "squeue", "scancel"]
    assert names.count("scancel") == 2


def test_a_run_that_slurm_does_not_let_end_is_left_out(script_slurm: Callable[..., Scripted]) -> None:
    cluster = _submit_two(script_slurm, squeue=DOWN)
    slurm_watch.look(Job("r1"))
    assert _cancel_all(5.0, ["r3", "r1", "r2"]) == {"r3": {"state": "absent", "killed": 0}}
    assert cluster.count("squeue") == 2, "the second run would wait for it as long"


def test_once_slurm_says_nothing_its_other_runs_are_not_asked_about(script_slurm: Callable[..., Scripted]) -> None:
    cluster = _submit_two(script_slurm, squeue=DOWN)
    told = _tell_states(["r1", "r2", "r3"])
    assert {run: state["state"] for run, state in told.items()} == {"r1": "running", "r3": "absent"}
    assert cluster.count("squeue") == 1
