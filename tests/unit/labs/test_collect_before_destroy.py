"""Runs that are collected before their lab goes: all in one request to each node, and one that fails spoils no other."""

from __future__ import annotations

import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gpucourse.context import Context
from gpucourse.course.locate import CourseFolders
from gpucourse.labs.collect_before_destroy import CollectedRuns, _allow_locks, bring_home, find_ending
from gpucourse.model.deployment import LocalDeployment
from gpucourse.model.event import Note
from gpucourse.model.manifest import Exercise
from gpucourse.model.node import Inventory
from gpucourse.model.record import RunRecord
from gpucourse.model.slurm import SlurmRun
from gpucourse.remote.jobs import RUNS_IN_REQUEST
from gpucourse.runs.runs import every_run
from gpucourse.workspace import deployments, runs
from gpucourse.workspace.locate import open_workspace
from gpucourse.workspace.lock import hold_lock
from tests.unit.remote.agent_link import AgentNodes, make_ended_job, make_nodes
from tests.unit.runs.test_finish import EXERCISE
from tests.waiting import STUCK_S, until

NODES = make_nodes(2)
LOG = b"step\n" * 500
FIRST_STREAM = ["cancels", "several"]


class _Course:
    """A catalogue of one exercise, whose files may have 1 MiB."""

    def exercise(self, _number: str) -> tuple[None, Exercise]:
        return None, EXERCISE.model_copy(update={"max_output": 1 << 20})


class _Lab:
    """A lab of two nodes with runs that have ended there, and that nobody has collected."""

    def __init__(self, root: Path) -> None:
        folders = CourseFolders(root, root, root)
        self.told: list[str] = []
        self.context = Context(workspace=open_workspace(root / "w"), folders=folders, environ={}, watch=self._hear)
        vars(self.context)["catalog"] = _Course()
        self.nodes = AgentNodes(root / "nodes")
        self.context.make_transport = lambda _key: self.nodes
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
        """Runs on both nodes; the one of the number `large` has a file that is not taken."""
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
        return bring_home(self.context, self.deployment, discard=False)

    def check_whole(self) -> None:
        """Every run is here as it is on its nodes."""
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


@pytest.mark.parametrize("count", [2, 20, pytest.param(250, marks=pytest.mark.slow)])
def test_each_node_is_asked_once_to_end_and_once_for_all(lab: _Lab, count: int) -> None:
    lab.leaves_runs(count)
    assert lab.brings_home().fetched == [record.id for record in lab.records]
    lab.check_whole()
    for node in NODES:
        assert lab.nodes.list_verbs(node.name) == ["cancels", *FIRST_STREAM], "the agent was not there at the first question"
    assert len(lab.nodes.links) == 2
    assert len(lab.told) == count


def test_locks_are_as_many_as_this_process_may_have_open() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (250, before[1]))
        assert _allow_locks(10) == 10
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 250
        assert _allow_locks(700) == 700
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 4 * 700 + 200, "other labs have as many"
        assert _allow_locks(1_000_000) == RUNS_IN_REQUEST
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_process_that_may_open_few_files_ends_runs_in_groups() -> None:
    """In a process of its own: a limit that was lowered cannot be raised again."""
    program = "import resource as r; r.setrlimit(r.RLIMIT_NOFILE, (250, 300)); "
    program += "from gpucourse.labs.collect_before_destroy import _allow_locks as a; print(a(25), a(250), a(5000))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "25 25 25\n"


def test_a_single_run_is_asked_about_by_itself(lab: _Lab) -> None:
    lab.leaves_runs(1)
    assert len(lab.brings_home().fetched) == 1
    lab.check_whole()
    assert "several" not in lab.nodes.list_verbs("node0")


def test_a_run_whose_file_is_refused_spoils_no_other(lab: _Lab) -> None:
    lab.leaves_runs(5, large=2)
    assert len(lab.brings_home().fetched) == 5
    lab.check_whole()
    assert [(file.node, file.name) for file in runs.reread(lab.context.paths, lab.records[2]).refused] == [
        ("node0", "large"), ("node1", "large"),
    ]  # fmt: skip


def test_a_run_that_another_command_attends_is_waited_for_by_itself(lab: _Lab) -> None:
    lab.leaves_runs(4)
    seals = [runs.files_of(lab.context.paths, record).hashes for record in lab.records]
    with ThreadPoolExecutor() as pool:
        with hold_lock(runs.lock_of(lab.context.paths, lab.records[1].id), "logs"):
            collecting = pool.submit(lab.brings_home)
            until(lambda: all(seals[number].exists() for number in (0, 2, 3)))
            assert not seals[1].exists()
            assert not collecting.done()
        assert len(collecting.result(STUCK_S).fetched) == 4
    lab.check_whole()
    assert lab.nodes.list_verbs("node0")[-3:] == ["cancel", "follow", "pack"]


@pytest.mark.parametrize("cut_after", [0, 3000, 20_000])
def test_what_is_cut_in_the_middle_is_fetched_by_itself_without_a_loss(lab: _Lab, cut_after: int) -> None:
    lab.leaves_runs(6)
    lab.nodes.cut_after = cut_after
    assert len(lab.brings_home().fetched) == 6
    lab.check_whole()
    for record in lab.records:
        assert not runs.reread(lab.context.paths, record).refused


@pytest.mark.parametrize("killed_after", range(0, 24_000, 2000))
def test_a_program_that_is_killed_while_it_answers_spoils_no_run(lab: _Lab, killed_after: int) -> None:
    lab.leaves_runs(4)
    lab.nodes.killed_after = killed_after
    assert len(lab.brings_home().fetched) == 4
    lab.check_whole()


def test_a_log_that_is_here_in_part_is_continued(lab: _Lab) -> None:
    lab.leaves_runs(3)
    log = runs.files_of(lab.context.paths, lab.records[1]).rank_log("node0", 0)
    log.parent.mkdir()
    log.write_bytes(LOG[:700])
    lab.brings_home()
    lab.check_whole()
    assert set(lab.nodes.list_verbs("node0")) == {*FIRST_STREAM}


def test_a_run_of_which_many_files_are_here_is_asked_about_by_itself(lab: _Lab) -> None:
    """Their names would make the request of all runs long: it has to leave its shell free for another command."""
    lab.leaves_runs(3)
    outputs = runs.files_of(lab.context.paths, lab.records[1]).node_outputs("node0")
    outputs.mkdir(parents=True)
    for number in range(200):
        (outputs / f"part-{number:03}").write_bytes(b"it was here before")
    assert len(lab.brings_home().fetched) == 3
    lab.check_whole()
    assert lab.nodes.list_verbs("node0")[-3:] == [*FIRST_STREAM, "pack"]
    assert lab.nodes.list_verbs("node1")[-2:] == FIRST_STREAM


def test_a_run_that_its_node_knows_no_more_spoils_no_other(lab: _Lab) -> None:
    lab.leaves_runs(4)
    for file in ("job.json", "done"):
        (lab.nodes.home("node1") / ".gpucourse" / "jobs" / lab.records[2].id / file).unlink()
    lab.brings_home()
    kept = {record.id for record in lab.records} - {lab.records[2].id}
    assert kept <= {record.id for record in lab.records if runs.reread(lab.context.paths, record).collected}


def test_runs_that_nobody_followed_are_listed_after_one_request_for_all(lab: _Lab) -> None:
    lab.leaves_runs(20)
    listed, errors = every_run(lab.context)
    assert not errors
    assert {(item.record.state, item.detail) for item in listed} == {("succeeded", "")}
    lab.check_whole()
    for node in NODES:
        assert list(dict.fromkeys(lab.nodes.list_verbs(node.name))) == ["states", "several"]


def test_given_up_outputs_leave_nothing_that_was_fetched(lab: _Lab) -> None:
    lab.leaves_runs(1)
    (left := runs.files_of(lab.context.paths, lab.records[0]).transfer(NODES[0].name)).mkdir()
    (left / "0").touch()
    assert bring_home(lab.context, lab.deployment, discard=True).given_up
    assert not left.exists()


def test_only_what_is_on_nodes_that_go_is_ended(lab: _Lab) -> None:
    lab.leaves_runs(3)
    alone, both, scheduled = lab.records
    alone.nodes = scheduled.nodes = ["node0"]
    scheduled.slurm = SlurmRun(partition="gpu", nodes=1, gpus=1)  # on whichever nodes Slurm took
    for record in lab.records:
        runs.save(lab.context.paths, record)

    def find(*names: str) -> list[str]:
        return [record.id for record in find_ending(lab.context, lab.deployment, names)]

    assert find() == []
    assert find("node1") == [both.id, scheduled.id]
    assert find("node0", "node1") == [alone.id, both.id, scheduled.id]
    scheduled.stack = "02-local"
    runs.save(lab.context.paths, scheduled)
    home = bring_home(lab.context, lab.deployment, discard=False, leaving={"node1"})
    assert home.fetched == [both.id]
    assert find("node0", "node1") == [alone.id]
