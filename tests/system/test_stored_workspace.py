"""A workspace of version 0.1, opened by the current program: runs, logs, answers, points, receipts, records of labs."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins

from gpucourse.cli.boundary import run_command
from gpucourse.model.deployment import AwsDeployment, HostsDeployment, LocalDeployment, Receipt
from gpucourse.provision import state
from gpucourse.workspace import deployments
from gpucourse.workspace.files import read_record
from gpucourse.workspace.locate import open_workspace

ROOT = Path(__file__).resolve().parents[2]
STORED = ROOT / "tests" / "data" / "workspace-0.1"
DDP = "20261122-022031-velvet"


def lay_out(workspace: Path) -> None:
    """Copy the stored workspace, and add the output of its script on node0: the same metrics, in Python's form of JSON."""
    shutil.copytree(STORED, workspace, ignore=shutil.ignore_patterns("labs", "README.md"))
    run = workspace / "runs" / "3.2" / DDP
    file = run / "outputs" / "node0" / "metrics.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(json.loads((run / "metrics.json").read_text()), indent=2) + "\n")


def find_losses(value: Any, stored: Any, place: str = "") -> list[str]:
    """Yield the places where a record, as it is read now, lacks or changes a stored value. It may contain more."""
    if isinstance(stored, dict):
        return [line for key in stored for line in find_losses(value.get(key, "nothing"), stored[key], f"{place}.{key}")]
    if isinstance(stored, list) and len(value) == len(stored):
        return [line for index, item in enumerate(stored) for line in find_losses(value[index], item, f"{place}.{index}")]
    return [] if value == stored else [f"{place}: {stored} is now {value}"]


@dataclass
class Learner:
    """A learner who returns to that workspace."""

    workspace: Path
    capture: pytest.CaptureFixture[str]

    def types(self, *words: str, code: int = 0) -> str:
        """Run a command and return its output."""
        self.capture.readouterr()
        answer = run_command(list(words))
        out, err = self.capture.readouterr()
        assert answer == code, f"gpucourse {' '.join(words)} answered {answer}:\n{out}\n{err}"
        return out

    def asks(self, *words: str, code: int = 0) -> Any:
        """Return the JSON document of a command."""
        return json.loads(self.types(*words, "--json", code=code))

    def put_lab(self, stack: str) -> None:
        """Add the record of a lab that existed to the workspace."""
        folder = self.workspace / ".gpucourse" / "deployments"
        folder.mkdir(exist_ok=True)
        shutil.copy(STORED / "labs" / f"{stack}.json", folder)

    def deploy_as_before(self, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
        """Deploy three simulated nodes with the Terraform files of an older version, and return their ports."""
        course = self.workspace.with_name("course")
        course.mkdir()
        for part in ("modules", "exercises"):
            (course / part).symlink_to(ROOT / part)
        shutil.copytree(ROOT / "terraform", course / "terraform")
        shutil.copy(STORED / "labs" / "simulated.tf", course / "terraform" / "stacks" / "simulated" / "main.tf")
        with monkeypatch.context() as older:
            older.setenv("GPUCOURSE_COURSE", str(course))
            self.types("deploy", "3", "--nodes", "3")
        assert "terraform_data.slot[2]" in self.list_resources()
        return self.look_up_ports()

    def look_up_ports(self) -> dict[str, int]:
        """Return the ports of the nodes of the only existing lab."""
        [lab] = deployments.every(open_workspace(self.workspace).paths)
        return {node.name: node.port for node in lab.inventory.nodes} if lab.inventory else {}

    def list_resources(self) -> list[str]:
        """Return the resources of module 3's simulated lab, according to Terraform."""
        return state.addresses(open_workspace(self.workspace).paths.stack("03-local").state)


@pytest.fixture
def learner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Learner:
    workspace = tmp_path / "workspace"
    lay_out(workspace)
    run = workspace / "runs" / "3.2" / DDP
    for name in json.loads((STORED / ".gpucourse" / "delivered.json").read_text())["3.2"] + ["verdict.json"]:
        handed_in = workspace / "deliverables" / "3.2" / name
        handed_in.parent.mkdir(exist_ok=True)
        shutil.copy(run / name, handed_in)
    for name in [name for name in os.environ if name.startswith("GPUCOURSE")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GPUCOURSE_WORKSPACE", str(workspace))
    monkeypatch.setenv("HOME", str(tmp_path))
    return Learner(workspace, capfd)


@pytest.fixture
def ports(learner: Learner, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, int]]:
    """Return the ports of the nodes of a lab that was deployed with older Terraform files."""
    yield learner.deploy_as_before(monkeypatch)
    learner.types("destroy", "--all", "--yes", "--discard")


def test_runs_of_a_stored_workspace_are_read(learner: Learner) -> None:
    assert learner.asks("status")["stacks"] == []
    runs = {run["id"]: run for run in learner.asks("runs")["runs"]}
    assert set(runs) == {DDP}
    for run in runs.values():
        record = STORED / "runs" / run["exercise"] / run["id"] / "run.json"
        stored = json.loads(record.read_text())
        assert find_losses(run, {key: stored[key] for key in stored if key in run}) == []
    assert {run["state"] for run in runs.values()} == {"succeeded"}
    assert (runs[DDP]["exercise"], runs[DDP]["verdict"], runs[DDP]["world_size"]) == ("3.2", "passed", 2)


def test_logs_of_a_stored_run(learner: Learner) -> None:
    result = learner.types("logs", DDP, "--rank", "0")
    assert "loss 2.3121 before, 0.4881 after 3 epochs" in result
    assert "epoch 3/3  rank 1" in learner.types("logs", DDP)
    learner.types("logs", "20200101-000000-nobody", code=2)


def test_check_of_a_stored_run_holds_its_seal(learner: Learner) -> None:
    for _ in range(2):
        verdict = learner.asks("check", "3.2", "--run", DDP)["verdict"]
        assert verdict["verdict"] == "passed"
        assert {check["verdict"] for check in verdict["checks"]} == {"passed", "not_measured"}
        (newer,) = (check for check in verdict["checks"] if check["id"] == "every-way")
        assert newer["observed"] == "not measured: this check is newer than the run"
    learner.types("check", "--all")


def test_answers_and_points_of_a_stored_workspace(learner: Learner) -> None:
    assert "saved, not reviewed" in learner.types("answer", "3.2")
    assert "your run shows 59.78 %" in learner.types("answer", "3.2", "--set", "exposed=60")
    part = next(part for part in learner.asks("grade")["parts"] if str(part["module"]) == "3")
    assert part["points"] > 0
    assert "changed" not in json.dumps(part)


def test_receipt_of_a_stored_workspace_is_kept(learner: Learner) -> None:
    [receipt] = (learner.workspace / "receipts").glob("*.json")
    text = receipt.read_text()
    learner.types("status")
    learner.types("destroy", "--all")
    assert receipt.read_text() == text
    assert find_losses(to_builtins(read_record(receipt, Receipt)), json.loads(text)) == []


def test_stored_lab_of_each_target_is_read(learner: Learner) -> None:
    stacks = ("00-local", "01-hosts", "04-aws-l4")
    for stack in stacks:
        learner.put_lab(stack)
    labs = deployments.every(open_workspace(learner.workspace).paths)
    for stack, lab in zip(stacks, labs, strict=True):
        stored = json.loads((STORED / "labs" / f"{stack}.json").read_text())
        assert find_losses(to_builtins(lab), {key: value for key, value in stored.items() if value not in ({}, None)}) == []
    local, hosts, aws = labs
    assert isinstance(local, LocalDeployment)
    assert (local.link, local.has_slurm, local.is_simulated) == ("1gbit", True, True)
    assert isinstance(hosts, HostsDeployment)
    assert (hosts.variables.hosts, hosts.uses_existing_machines) == (["ada@192.0.2.7"], True)
    assert isinstance(aws, AwsDeployment)
    assert (aws.gpu, aws.costs, aws.cloud.market, aws.cloud.ttl_hours) == ("l4", True, "spot", 4.0)
    assert [lab.inventory.nodes[0].gpus for lab in (local, hosts, aws) if lab.inventory] == [0, 1, 1]


def test_stored_lab_whose_nodes_are_gone_is_destroyed(learner: Learner) -> None:
    """Destroy a lab that existed when the computer was switched off."""
    learner.put_lab("00-local")
    [lab] = learner.asks("status")["stacks"]
    assert (lab["deployment"]["stack"], lab["healthy"], len(lab["nodes"])) == ("00-local", False, 2)
    assert "nothing is left" in learner.types("destroy", "0")
    assert learner.asks("status")["stacks"] == []


@pytest.mark.slow
def test_lab_of_older_terraform_files_is_changed_and_destroyed(learner: Learner, ports: dict[str, int]) -> None:
    """Change and destroy a lab with its own copy of the older files, which have slots."""
    learner.types("deploy", "3", "--nodes", "2")
    assert learner.look_up_ports() == {name: ports[name] for name in ("node0", "node1")}
    assert "nothing is left" in learner.types("destroy", "3", "--yes")
