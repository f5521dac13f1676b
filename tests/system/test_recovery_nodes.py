"""Nodes that die, connections that break, and commands that are killed at every phase: the next command recovers."""

from __future__ import annotations

import shlex
import signal
from pathlib import Path

import pytest

from tests.system import scripts
from tests.system.cli import Learner
from tests.system.provisioning import any_terraform
from tests.waiting import STUCK_S, until

pytestmark = pytest.mark.system


@pytest.fixture
def two(learner: Learner) -> Learner:
    """Return a learner with two nodes that the test may harm."""
    learner.types("deploy", "3")
    return learner


@pytest.mark.parametrize("state", [pytest.param("starting", marks=pytest.mark.slow), "collecting"])
def test_runs_completes_a_run_whose_command_was_killed(lab: Learner, tmp_path: Path, state: str) -> None:
    record_count = len(lab.list_records())
    running = lab.begins("run", "--script", scripts.write(tmp_path, "brief"), "--launcher", "python")
    states = {"collecting", "succeeded"} if state == "collecting" else {"starting", "running", "collecting", "succeeded"}
    until(lambda: len(lab.list_records()) > record_count and lab.newest_run()["state"] in states, subject=state)
    running.kill()
    running.communicate(timeout=STUCK_S)
    end = {"succeeded", "lost"}
    until(lambda: lab.types("runs") and lab.newest_run()["state"] in end, subject="the end of the run, looked after by `runs`")
    if lab.newest_run()["state"] == "succeeded":
        log = (lab.run_folder() / "logs/node1-rank1.log").read_text()
        assert log == "".join(f"step {step} of rank 1\n" for step in range(60))
        assert (lab.run_folder() / "outputs/node0/done.txt").exists()


@pytest.mark.slow
def test_deploy_of_fewer_nodes_and_destroy_end_runs_only_when_confirmed(two: Learner, tmp_path: Path) -> None:
    endless = ("run", "--script", scripts.write(tmp_path, "hangs"), "--launcher", "python", "--detach")
    assert "may still run" not in two.types(*endless, "--nodes", "1").err
    stays = two.run_folder().name
    assert f"{stays} is still running here" in two.types(*endless, "--nodes", "2").err
    goes = two.run_folder().name
    message = " ".join(two.types("deploy", "3", "--nodes", "1", code=2).err.split())
    assert f"and run {goes} is still on them: this needs confirmation, and there is no terminal" in message
    assert "gpucourse deploy 3 --target local --nodes 1 --yes" in message
    assert stays not in message
    output = " ".join(two.types("deploy", "3", "--nodes", "1", "--dry-run").out.split())
    assert f"run {goes} on 03-local, which may still be running, will be stopped, and its outputs collected" in output
    assert "was still running: stopping it" in two.types("deploy", "3", "--nodes", "1", "--yes").err
    states = {run["id"]: (run["state"], run["collected"]) for run in two.documents("runs")["runs"]}
    assert states == {goes: ("cancelled", True), stays: ("running", False)}
    assert "was still running: stopping it" in two.types("destroy", "3").err
    assert {run["state"] for run in two.documents("runs")["runs"]} == {"cancelled"}
    assert two.processes() == []


@pytest.mark.slow
def test_deploy_and_destroy_continue_after_ctrl_c(learner: Learner) -> None:
    deploying = learner.begins("deploy", "3", "--nodes", "16")
    until(lambda: list(learner.stack_folder().glob("nodes/node*.json")), subject="the first node")
    deploying.send_signal(signal.SIGINT)
    _, output = deploying.communicate(timeout=STUCK_S)
    assert deploying.returncode in {0, 130}, output.decode()  # 0: all nodes were there before the signal arrived
    if deploying.returncode == 130:
        assert b"gpucourse deploy 3 continues, gpucourse destroy 3 takes it down" in output
        assert learner.documents("status")["stacks"][0]["deployment"]["phase"] == "failed"
        learner.types("deploy", "3", "--nodes", "2")
        learner.types("ssh", "3", "--node", "1", "--", "true")
    learner.types("destroy", "--all")
    assert learner.processes() == []


def test_ctrl_c_while_planning_leaves_nothing(tmp_path: Path) -> None:
    """Plan with a Terraform that runs until it is interrupted."""
    terraform, began = tmp_path / "terraform", tmp_path / "began"
    real = shlex.join(any_terraform().argv)
    terraform.write_text(
        f'#!/bin/sh\ncase "$1" in plan) touch {shlex.quote(str(began))}; exec sleep 300 ;; *) exec {real} "$@" ;; esac\n'
    )
    terraform.chmod(0o755)
    learner = Learner(tmp_path / "w", {"GPUCOURSE_TERRAFORM": str(terraform)})
    deploying = learner.begins("deploy", "3")
    until(began.exists, subject="the plan")
    deploying.send_signal(signal.SIGINT)
    _, output = deploying.communicate(timeout=STUCK_S)
    assert deploying.returncode == 130, output.decode()
    assert learner.documents("status")["stacks"] == []
    assert not (learner.stack_folder() / "terraform").exists(), "of the stack only the log is left that the error names"


def test_destroy_continues_after_a_kill(two: Learner) -> None:
    destroying = two.begins("destroy", "--all")
    until(lambda: (two.stack_folder() / "terraform-destroy.log").exists() or destroying.poll() is not None, subject="destroy")
    destroying.kill()
    destroying.communicate(timeout=STUCK_S)
    two.types("destroy", "--all")
    assert two.processes() == []
    assert two.documents("status")["stacks"] == []
