"""Nodes that die, connections that break, and our own process killed at every phase: the next command recovers."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from tests.system import scripts
from tests.system.cli import Learner, wait_for_words
from tests.system.provisioning import any_terraform
from tests.waiting import STUCK_S, until

pytestmark = pytest.mark.system


@pytest.fixture
def two(learner: Learner) -> Learner:
    """A learner with two nodes of their own, to be harmed."""
    learner.types("deploy", "3")
    return learner


def kill_nodes(learner: Learner) -> None:
    """What a power cut does: the process that hosts the nodes is gone, and everything that ran on them. First all are stopped,
    so that none tells of another's end, whatever order their numbers have."""
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in learner.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, number)
    until(lambda: not learner.processes(), what="the end of the nodes' processes")


def test_a_node_dead_before_a_run_is_seen_and_healed(two: Learner) -> None:
    ports = [node["port"] for node in two.documents("status")["stacks"][0]["deployment"]["nodes"]]
    kill_nodes(two)
    status = two.types("status")
    assert "gpucourse deploy 3" in status.out
    assert [node["healthy"] for node in two.documents("status")["stacks"][0]["nodes"]] == [False, False]
    typed = two.types("run", "3.1", code=7)
    assert "2 of 2 nodes failed" in typed.err
    assert "gpucourse deploy" in typed.err
    healed = two.documents("deploy", "3")
    assert len(healed["healed"]) == 2
    assert [node["port"] for node in healed["deployment"]["nodes"]] == ports
    two.types("ssh", "3", "--", "true")


def test_nodes_that_die_during_a_run(two: Learner, tmp_path: Path) -> None:
    typed = two.begins("run", "--script", scripts.write(tmp_path, "slow"), "--launcher", "python")
    wait_for_words(typed, b"step 5 of rank 0")
    kill_nodes(two)
    _, said = typed.communicate(timeout=STUCK_S)
    assert typed.returncode == 7, said.decode()
    assert b"could not be followed to its end" in said
    assert b"gpucourse deploy 3" in said
    assert "step 3 of rank 0" in (two.run_folder() / "logs/node0-rank0.log").read_text()
    assert two.newest_run()["diagnoses"][0]["symptom"] == "node-lost"
    two.types("deploy", "3")
    two.types("runs")
    assert two.newest_run()["state"] == "lost"
    two.types("destroy", "--all")


@pytest.mark.slow
def test_nodes_that_die_after_a_run_take_nothing_with_them(two: Learner, tmp_path: Path) -> None:
    two.types("run", "--script", scripts.write(tmp_path, "brief"), "--launcher", "python")
    kill_nodes(two)
    assert (two.run_folder() / "outputs/node1/done.txt").exists()
    assert "succeeded" in two.types("runs").out
    two.types("destroy", "--all")
    assert two.processes() == []


def test_destroy_collects_missing_outputs_and_refuses_when_it_cannot(two: Learner, tmp_path: Path) -> None:
    two.types("run", "--script", scripts.write(tmp_path, "brief"), "--launcher", "python", "--detach")
    folder = two.run_folder()
    done = two.stack_folder() / "nodes/node1/home/.gpucourse/jobs" / folder.name / "done"
    until(done.exists, what="the end of the run")
    kill_nodes(two)
    typed = two.types("destroy", "--all", code=7)
    assert "are not collected yet" in typed.err
    assert "--discard" in typed.err
    two.types("deploy", "3")
    receipt = two.documents("destroy", "3")["receipts"][0]
    assert receipt["outputs_home"] == [folder.name]
    assert (folder / "outputs/node1/done.txt").exists()


def test_destroy_ends_a_run_that_goes_on(two: Learner, tmp_path: Path) -> None:
    endless = ("run", "--script", scripts.write(tmp_path, "hangs"), "--launcher", "python", "--detach")
    assert "may still run" not in two.types(*endless).err
    first = two.run_folder().name
    assert f"{first} may still run on these nodes: the timings of both are then worth little" in two.types(*endless).err
    typed = two.types("destroy", "3")
    assert "was still running: stopping it" in typed.err
    assert two.newest_run()["state"] == "cancelled"
    assert two.processes() == []


def test_nodes_that_go_away_end_no_run_unasked(two: Learner, tmp_path: Path) -> None:
    slow = ("run", "--script", scripts.write(tmp_path, "slow"), "--launcher", "python", "--detach")
    two.types(*slow, "--nodes", "1")
    stays = two.run_folder().name
    two.types(*slow, "--nodes", "2")
    goes = two.run_folder().name
    refused = " ".join(two.types("deploy", "3", "--nodes", "1", code=2).err.split())
    assert f"and run {goes} is still on them: this needs a confirmation, and there is no terminal" in refused
    assert "gpucourse deploy 3 --target local --nodes 1 --yes" in refused
    assert stays not in refused
    planned = " ".join(two.types("deploy", "3", "--nodes", "1", "--dry-run").out.split())
    assert f"run {goes} on 03-local, whose end was never seen, will be stopped, and its outputs collected" in planned
    assert two.documents("runs")["runs"][0]["state"] == "running"
    assert "was still running: stopping it" in two.types("deploy", "3", "--nodes", "1", "--yes").err
    states = {run["id"]: (run["state"], run["collected"]) for run in two.documents("runs")["runs"]}
    assert states == {goes: ("cancelled", True), stays: ("running", False)}
    assert [node["node"] for node in two.documents("status")["stacks"][0]["nodes"]] == ["node0"]
    two.types("cancel", stays)


@pytest.mark.slow
def test_two_deploys_at_once(learner: Learner) -> None:
    both = [learner.begins("deploy", "3") for _ in range(2)]
    said = [process.communicate(timeout=STUCK_S)[1].decode() for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert sum("waiting for 'deploy 3'" in text for text in said) <= 1
    assert len(learner.documents("status")["stacks"][0]["nodes"]) == 2


@pytest.mark.slow  # test_here.py kills a deploy, test_simulated_nodes_terraform.py kills Terraform; Ctrl-C is below
@pytest.mark.parametrize("moment", ["deployments/03-local.json", "terraform-apply.log", "nodes/host.json", "nodes/node0.json"])
def test_deploy_killed(learner: Learner, moment: str) -> None:
    deploying = learner.begins("deploy", "3", "--nodes", "8")
    folders = (learner.workspace / ".gpucourse", learner.stack_folder())
    until(lambda: any((folder / moment).exists() for folder in folders), what=moment)
    deploying.kill()
    deploying.communicate(timeout=STUCK_S)
    shown = learner.documents("status")["stacks"][0]
    assert shown["deployment"]["phase"] in {"creating", "ready"}
    learner.types("deploy", "3", "--nodes", "2")
    learner.types("ssh", "3", "--node", "1", "--", "true")
    learner.types("destroy", "--all")
    assert learner.processes() == []


@pytest.mark.slow
def test_ctrl_c_while_deploying_leaves_a_record_that_both_ways_go_on_from(learner: Learner) -> None:
    deploying = learner.begins("deploy", "3", "--nodes", "16")
    until(lambda: list(learner.stack_folder().glob("nodes/node*.json")), what="the first node")
    deploying.send_signal(signal.SIGINT)
    _, said = deploying.communicate(timeout=STUCK_S)
    assert deploying.returncode in {0, 130}, said.decode()  # 0: all nodes was before the signal arrived
    if deploying.returncode == 130:
        assert b"gpucourse deploy 3 continues, gpucourse destroy 3 takes it down" in said
        assert learner.documents("status")["stacks"][0]["deployment"]["phase"] == "failed"
        learner.types("deploy", "3", "--nodes", "2")
        learner.types("ssh", "3", "--node", "1", "--", "true")
    learner.types("destroy", "--all")
    assert learner.processes() == []


def test_ctrl_c_while_planning_leaves_nothing(tmp_path: Path) -> None:
    """With a Terraform that plans until it is interrupted."""
    terraform, began = tmp_path / "terraform", tmp_path / "began"
    terraform.write_text(
        f'#!/bin/sh\ncase "$1" in plan) touch {began}; exec sleep 300 ;; *) exec {any_terraform().argv[0]} "$@" ;; esac\n'
    )
    terraform.chmod(0o755)
    learner = Learner(tmp_path / "w", {"GPUCOURSE_TERRAFORM": str(terraform)})
    deploying = learner.begins("deploy", "3")
    until(began.exists, what="the plan")
    deploying.send_signal(signal.SIGINT)
    _, said = deploying.communicate(timeout=STUCK_S)
    assert deploying.returncode == 130, said.decode()
    assert learner.documents("status")["stacks"] == []
    assert not (learner.stack_folder() / "terraform").exists(), "of the stack only the log is left that the error names"


@pytest.mark.slow
def test_deploy_killed_then_destroyed_at_once(learner: Learner) -> None:
    deploying = learner.begins("deploy", "3", "--nodes", "8")
    until(lambda: list(learner.stack_folder().glob("nodes/node*.json")), what="the first node")
    deploying.kill()
    deploying.communicate(timeout=STUCK_S)
    learner.types("destroy", "--all")
    assert learner.processes() == []
    assert learner.documents("status")["stacks"] == []


@pytest.mark.parametrize(
    "state",
    [
        pytest.param("planned", marks=pytest.mark.slow),
        pytest.param("starting", marks=pytest.mark.slow),
        pytest.param("running", marks=pytest.mark.slow),
        "collecting",
    ],
)
def test_run_killed(two: Learner, tmp_path: Path, state: str) -> None:
    script = scripts.write(tmp_path, "brief")
    running = two.begins("run", "--script", script, "--launcher", "python")

    def has_reached() -> bool:
        return bool(two.list_records()) and two.newest_run()["state"] in {
            state,
            "running" if state != "collecting" else state,
            "succeeded",
        }

    until(has_reached, what=state)
    running.kill()
    running.communicate(timeout=STUCK_S)
    end = {"succeeded", "lost"}
    until(lambda: two.types("runs") and two.newest_run()["state"] in end, what="the end of the run, looked after by `runs`")
    record = two.newest_run()
    if record["state"] == "succeeded":
        log = (two.run_folder() / "logs/node1-rank1.log").read_text()
        assert log == "".join(f"step {step} of rank 1\n" for step in range(60))
        assert (two.run_folder() / "outputs/node0/done.txt").exists()
    two.types("destroy", "--all")
    assert two.processes() == []


def test_destroy_killed(two: Learner) -> None:
    destroying = two.begins("destroy", "--all")
    until(lambda: (two.stack_folder() / "terraform-destroy.log").exists() or destroying.poll() is not None, what="destroy")
    destroying.kill()
    destroying.communicate(timeout=STUCK_S)
    two.types("destroy", "--all")
    assert two.processes() == []
    assert two.documents("status")["stacks"] == []


def test_destroy_when_terraform_lost_its_state(two: Learner) -> None:
    for state in two.stack_folder().rglob("terraform.tfstate*"):
        state.unlink()
    two.types("destroy", "--all")
    assert two.processes() == []
    assert not two.stack_folder().exists()
