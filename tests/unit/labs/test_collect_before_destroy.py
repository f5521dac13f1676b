"""Run are collected before their lab is destroyed, and one that fails does not affect the others."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from gpucourse.context import Context
from gpucourse.course.catalog import Catalog
from gpucourse.course.locate import CourseFolders
from gpucourse.labs import collect_before_destroy
from gpucourse.labs.collect_before_destroy import CollectedRuns, collect_runs, find_ending
from gpucourse.model.deployment import LocalDeployment
from gpucourse.model.event import Note
from gpucourse.model.manifest import Exercise
from gpucourse.model.node import Inventory, Node
from gpucourse.model.record import RunRecord
from gpucourse.model.slurm import LaterJob, SlurmRun
from gpucourse.ports import CommandResult
from gpucourse.runs.settle import list_settled_runs
from gpucourse.workspace import deployments, runs
from gpucourse.workspace.locate import open_workspace
from gpucourse.workspace.lock import hold_lock
from tests.unit.labs.aws.fakes import ScriptedNodes, context_in, make_completed
from tests.unit.labs.records import make_hosts_lab, save_slurm_run
from tests.unit.remote.agent_link import AgentNodes, make_ended_job, make_nodes
from tests.unit.runs.test_finish import EXERCISE
from tests.waiting import STUCK_S, until

NODES = make_nodes(2)
LOG = b"step\n" * 500


class _Course:
    """A catalogue of one exercise, whose files may have 1 MiB."""

    def exercise(self, _number: str) -> tuple[None, Exercise]:
        return None, EXERCISE.model_copy(update={"max_output": 1 << 20})


class _Lab:
    """A lab of two nodes, with runs that have ended there and are not collected."""

    def __init__(self, root: Path) -> None:
        folders = CourseFolders(root, root, root)
        self.told: list[str] = []
        self.nodes = AgentNodes(root / "nodes")
        self.context = Context(
            workspace=open_workspace(root / "w"),
            folders=folders,
            environ={},
            watch=self._hear,
            make_transport=lambda _key: self.nodes,
        )
        self.context.opened.catalog = cast("Catalog", _Course())
        self.deployment = LocalDeployment(
            stack="03-local", uid="u", module="3", template="simulated", phase="ready", created="2026-01-01T00:00:00+00:00",
            updated="", nodes_wanted=2, inventory=Inventory(stack="03-local", nodes=NODES),
        )  # fmt: skip
        deployments.save(self.context.paths, self.deployment)
        self.records: list[RunRecord] = []

    def _hear(self, event: object) -> None:
        if isinstance(event, Note):
            self.told.append(event.text)

    def leaves_runs(self, count: int, *, large: int | None = None) -> None:
        """Leave runs on both nodes. The run with the number `large` has a file that is too large."""
        for number in range(count):
            run_id = f"20260101-{number:06}-{runs.WORDS[number % len(runs.WORDS)]}"
            outputs = {"result": run_id.encode() * 50}
            if number == large:
                outputs["large"] = bytes((1 << 20) + 1)
            for node in NODES:
                make_ended_job(self.nodes.home(node.name), run_id, LOG, outputs)
            record = RunRecord(
                id=run_id, exercise="3.2", module="3", stack="03-local", mode="local", launcher="python", state="running",
                created="2026-01-01T00:00:00+00:00", nodes=[node.name for node in NODES], world_size=1,
            )  # fmt: skip
            runs.files_of(self.context.paths, record).folder.mkdir(parents=True)
            runs.save(self.context.paths, record)
            self.records.append(record)

    def brings_home(self) -> CollectedRuns:
        return collect_runs(self.context, self.deployment, discard=False)

    def check_whole(self) -> None:
        """Check that every collected run equals the one on its nodes."""
        for record in self.records:
            files = runs.files_of(self.context.paths, record)
            assert runs.reread(self.context.paths, record).collected
            assert files.hashes.exists()
            for node in NODES:
                assert files.rank_log(node.name, 0).read_bytes() == LOG
                assert (files.node_outputs(node.name) / "result").read_bytes() == record.id.encode() * 50


@pytest.fixture
def lab(tmp_path: Path) -> _Lab:
    return _Lab(tmp_path)


def test_collect_runs_takes_all_runs_when_a_file_of_one_is_too_large(lab: _Lab) -> None:
    lab.leaves_runs(2, large=1)
    assert len(lab.brings_home().fetched) == 2
    lab.check_whole()
    refusals = runs.reread(lab.context.paths, lab.records[1]).refused
    assert [(file.node, file.name) for file in refusals] == [("node0", "large"), ("node1", "large")]


def test_collect_runs_takes_a_run_whose_rank_was_restarted(lab: _Lab) -> None:
    lab.leaves_runs(1)
    (record,) = lab.records
    record.max_restarts = 2
    runs.save(lab.context.paths, record)
    exit_file = lab.nodes.home("node0") / ".gpucourse/jobs" / record.id / "ranks/0.json"
    exit_file.write_text(json.dumps({"code": 0, "at": 1.0, "restart": 1}))
    assert lab.brings_home().fetched == [record.id]
    assert runs.reread(lab.context.paths, record).restarts == 1


def test_collect_runs_waits_for_a_run_that_another_command_attends(lab: _Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect_before_destroy, "MAX_LOCK_WAIT_S", STUCK_S)
    lab.leaves_runs(2)
    seals = [runs.files_of(lab.context.paths, record).hashes for record in lab.records]
    with ThreadPoolExecutor() as pool:
        with hold_lock(runs.lock_of(lab.context.paths, lab.records[1].id), "logs"):
            collecting = pool.submit(lab.brings_home)
            until(seals[0].exists)
            assert not seals[1].exists()
            assert not collecting.done()
        assert len(collecting.result(STUCK_S).fetched) == 2
    lab.check_whole()
    assert lab.nodes.list_verbs("node0")[-3:] == ["cancel", "follow", "pack"]


def test_collect_runs_takes_all_other_runs_when_a_node_has_lost_one(lab: _Lab) -> None:
    lab.leaves_runs(2)
    for file in ("job.json", "done"):
        (lab.nodes.home("node1") / ".gpucourse" / "jobs" / lab.records[1].id / file).unlink()
    lab.brings_home()
    assert runs.reread(lab.context.paths, lab.records[0]).collected


def test_collect_runs_asks_each_node_for_nothing_twice(lab: _Lab) -> None:
    lab.leaves_runs(2)
    rows, errors = list_settled_runs(lab.context)
    assert not errors
    assert {(item.record.state, item.detail) for item in rows} == {("succeeded", "")}
    lab.check_whole()
    for node in NODES:
        assert list(dict.fromkeys(lab.nodes.list_verbs(node.name))) == ["states", "follow", "pack"]


def test_collect_runs_removes_what_was_fetched_of_discarded_runs(lab: _Lab) -> None:
    lab.leaves_runs(1)
    (transfer_folder := runs.files_of(lab.context.paths, lab.records[0]).transfer(NODES[0].name)).mkdir()
    (transfer_folder / "0").touch()
    assert collect_runs(lab.context, lab.deployment, discard=True).given_up
    assert not transfer_folder.exists()


def test_find_ending_lists_only_runs_on_nodes_that_go(lab: _Lab) -> None:
    lab.leaves_runs(3)
    single_run, shared_run, scheduled = lab.records
    single_run.nodes = scheduled.nodes = ["node0"]
    scheduled.slurm = SlurmRun(partition="gpu", nodes=1, gpus=1)  # on whichever nodes Slurm took
    for record in lab.records:
        runs.save(lab.context.paths, record)

    def find(*names: str) -> list[str]:
        return [record.id for record in find_ending(lab.context.paths, lab.deployment, names)]

    assert find() == []
    assert find("node1") == [shared_run.id, scheduled.id]
    assert find("node0", "node1") == [single_run.id, shared_run.id, scheduled.id]
    scheduled.stack = "02-local"
    runs.save(lab.context.paths, scheduled)
    collection = collect_runs(lab.context, lab.deployment, discard=False, removed_nodes={"node1"})
    assert collection.fetched == [shared_run.id]
    assert find("node0", "node1") == [single_run.id]


@pytest.mark.parametrize(
    ("code", "answer", "given_up"),
    [
        (0, '{"RUN": "ended"}', "discarded with --discard"),
        (3, '{"error": "Unable to contact slurm controller", "kind": "slurm"}', "its jobs may still run in Slurm"),
    ],
    ids=["cancelled", "not cancelled"],
)
def test_collect_runs_discards_jobs_of_a_cluster_that_stays(tmp_path: Path, code: int, answer: str, given_up: str) -> None:
    context, events = context_in(tmp_path)
    record = save_slurm_run(context, [LaterJob(job="8", name="next", state="RUNNING")])
    commands: list[str] = []

    def reply(_node: Node, command: str) -> CommandResult:
        commands.append(command)
        return make_completed(answer.replace("RUN", record.id), code=code)

    context = replace(context, make_transport=lambda _key: ScriptedNodes(reply))
    [reason] = collect_runs(context, make_hosts_lab(), discard=True).given_up
    assert given_up in reason
    assert "cancel" in commands[0]
    assert record.id in commands[0]
    warned = any(isinstance(event, Note) and f"jobs of run {record.id} may still run" in event.text for event in events)
    assert warned == (code != 0)
