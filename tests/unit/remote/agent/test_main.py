"""The agent: what travels to the nodes, and its questions about several runs."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gpucourse.remote import jobs
from gpucourse.remote.agent import slurm_submit, slurm_watch
from gpucourse.remote.agent.job import Job
from gpucourse.remote.agent.main import _cancel_all, _tell_states
from tests.unit.remote.scripted import DOWN, Answer, Scripted, row, spec

AGENT = sorted(Path(jobs.__file__).parent.glob("agent/*.py"))


@pytest.mark.parametrize("path", AGENT, ids=[path.name for path in AGENT])
def test_agent_is_plain_python_3_7_and_stdlib(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 7))
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            known = name.split(".")[0] in sys.stdlib_module_names or name.startswith("gpucourse.remote.agent")
            assert known, f"{path.name} imports {name}, which is not on the node"


def test_bundle_runs_isolated_in_its_folder(tmp_path: Path) -> None:
    for name, text in json.loads(jobs._bundle()).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-I", "-S", str(tmp_path), "state", "nothing"]
    done = subprocess.run(command, capture_output=True, env={"HOME": str(tmp_path)}, cwd="/", check=True)
    assert json.loads(done.stdout)["state"] == "absent"


def _submit_two(script_slurm: Callable[..., Scripted], **answers: list[Answer] | Answer) -> Scripted:
    cluster = script_slurm(sbatch=["7\n", "8\n"], scancel="", scontrol="", **answers)
    for run_id in ("r1", "r2"):
        slurm_submit.submit({**spec(), "run_id": run_id})
    return cluster


def test_cancel_all_signals_all_runs_before_it_waits(script_slurm: Callable[..., Scripted]) -> None:
    running, ended = ([row(job, state, node="a") for job in ("7", "8")] for state in ("RUNNING", "CANCELLED"))
    cluster = _submit_two(script_slurm, squeue=[*running, "".join(ended)])
    told = _cancel_all(5.0, ["r1", "r2", "r3"])
    assert told == {
        "r1": {"state": "ended", "killed": 1}, "r2": {"state": "ended", "killed": 1}, "r3": {"state": "absent", "killed": 0},
    }  # fmt: skip
    names = [words[0] for words in cluster.asked if words[0] in {"squeue", "scancel"}]
    assert names[:4] == ["squeue", "scancel", "squeue", "scancel"]
    assert names.count("scancel") == 2


def test_cancel_all_leaves_out_a_run_that_slurm_does_not_end(script_slurm: Callable[..., Scripted]) -> None:
    cluster = _submit_two(script_slurm, squeue=DOWN)
    slurm_watch.look(Job("r1"))
    assert _cancel_all(5.0, ["r3", "r1", "r2"]) == {"r3": {"state": "absent", "killed": 0}}
    assert cluster.count("squeue") == 2, "the second run would wait for it as long"


def test_tell_states_asks_a_silent_slurm_once(script_slurm: Callable[..., Scripted]) -> None:
    cluster = _submit_two(script_slurm, squeue=DOWN)
    told = _tell_states(["r1", "r2", "r3"])
    assert {run: state["state"] for run, state in told.items()} == {"r1": "running", "r3": "absent"}
    assert cluster.count("squeue") == 1
