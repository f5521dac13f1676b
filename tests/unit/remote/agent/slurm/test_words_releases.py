"""Parsing the recorded output of the newest release of Slurm. tests/system uses the release that is installed here."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpucourse.errors import InfrastructureError, UsageError
from gpucourse.labs import readiness
from gpucourse.local.machines import reports
from gpucourse.model.node import Inventory
from gpucourse.remote.agent.slurm import words as say
from gpucourse.remote.slurm_refusals import explain
from tests.unit.remote.test_slurm_refusals import HEAD

RECORDED = Path(__file__).parents[4] / "data" / "slurm" / "26.05.5"
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


class Release:
    """The output of the release, and the numbers of its jobs by how they ended."""

    def __init__(self) -> None:
        self.jobs: dict[str, str] = json.loads(self.read_answer("jobs.json"))

    def read_answer(self, name: str) -> str:
        return (RECORDED / name).read_text(encoding="utf-8")

    def queue(self, name: str) -> dict[str, dict[str, object]]:
        """Return the rows by role; tasks of the array have names such as `array_0`."""
        roles = {number: role for role, number in self.jobs.items()}
        rows_by_id = {tuple(job.partition("_")[::2]): row for job, row in say.queue(self.read_answer(name)).items()}
        return {f"{roles[number]}_{task}" if task else roles[number]: row for (number, task), row in rows_by_id.items()}

    def nodes(self, name: str) -> str:
        """Return sinfo's output, with the columns that deploy and status request."""
        rows = (line.split("|", 6) for line in self.read_answer(name).splitlines())
        return "".join(f"{node}|{state}|{gres}|{reason}\n" for node, _, state, gres, _, _, reason in rows)


@pytest.fixture(scope="module")
def release() -> Release:
    return Release()


def test_queue_has_the_reason_of_a_waiting_job(release: Release) -> None:
    queue = release.queue("squeue-waiting.txt")
    waiting = {"next": "Resources", "after": "Dependency", **{f"array_{task}": "Priority" for task in range(4)}}
    assert {job: row["reason"] for job, row in queue.items() if row["state"] == "PENDING"} == waiting
    assert all(queue[job]["node"] == queue[job]["started"] == queue[job]["ended"] == "" for job in waiting)
    for job in ("well", "fails", "cancelled"):
        assert say.phase(str(queue[job]["state"])) == say.RUNNING
        assert str(queue[job]["node"]).startswith("node")
        assert MOMENT.fullmatch(str(queue[job]["started"]))
        assert queue[job]["ended"] == "", "its limit is no end"
    assert all(MOMENT.fullmatch(str(row["submitted"])) for row in queue.values())


def test_queue_and_details_tell_how_jobs_ended(release: Release) -> None:
    queue = release.queue("squeue-ended.txt")
    ends = {"well": "COMPLETED", "fails": "FAILED", "cancelled": "CANCELLED", "next": "COMPLETED", "after": "COMPLETED"}
    ends |= {f"array_{task}": "COMPLETED" for task in range(4)}
    assert {job: row["state"] for job, row in queue.items()} == ends
    assert all(row["reason"] == "" and MOMENT.fullmatch(str(row["ended"])) for row in queue.values())
    details = say.details(release.read_answer("scontrol-ended.txt"))
    assert set(details) == set(say.queue(release.read_answer("squeue-ended.txt")))
    codes = {role: details[release.jobs[role]]["code"] for role in ("well", "fails", "cancelled")}
    assert codes == {"well": 0, "fails": 3, "cancelled": 143}
    assert {details[f"{release.jobs['array']}_{task}"]["code"] for task in range(4)} == {0}


def test_count_held_gpus_while_a_job_runs_and_afterwards(release: Release) -> None:
    assert say.count_held_gpus(release.read_answer("scontrol-d-running.txt")) == 1
    assert say.count_held_gpus(release.read_answer("scontrol-d-ended.txt")) == 0


def test_queue_names_held_jobs(release: Release) -> None:
    queue = release.queue("squeue-held.txt")
    assert set(queue) == {"held", "requeued and held", "launch failed"}
    assert all(row["reason"] in say.HELD and say.explain_reason(str(row["reason"])) for row in queue.values())
    listing = "".join(f"{release.jobs[role]}|{row['reason']}\n" for role, row in queue.items())
    assert reports.parse_held_jobs(listing) == [release.jobs["launch failed"]]


def test_queue_tells_a_requeued_job_from_a_lost_one(release: Release) -> None:
    rows, details = release.queue("squeue-node-down.txt"), say.details(release.read_answer("scontrol-node-down.txt"))
    assert (rows["requeued"]["state"], rows["requeued"]["reason"]) == ("PENDING", "BeginTime")
    assert details[release.jobs["requeued"]]["restarts"] == 1
    assert say.ending(str(rows["lost"]["state"])) == say.ending(str(details[release.jobs["lost"]]["state"])) == "lost"


def test_nodes_tells_which_can_take_jobs(release: Release) -> None:
    for name, fit in {"sinfo-busy.txt": {1, 2, 3}, "sinfo-down.txt": {1}, "sinfo-no-power.txt": {2, 3}}.items():
        rows = say.nodes(release.read_answer(name))
        assert {str(row["name"]) for row in rows if say.usable(str(row["state"]))} == {f"node{number}" for number in fit}
        assert all(row["gpus"] == 1 and row["partition"] == "gpu" and row["default"] and row["open"] for row in rows)
        assert {name for name, node in reports.read_states(release.nodes(name)).items() if not node} == {
            f"node{index}" for index in fit
        }
        workers = tuple(_worker(f"node{number}") for number in (1, 2, 3))
        inventory = Inventory(stack="02-local", nodes=(HEAD, *workers))
        assert set(readiness._list_unready(inventory, release.nodes(name))) == {f"node{index}" for index in {1, 2, 3} - fit}
    reasons = {row["name"]: row["reason"] for row in say.nodes(release.read_answer("sinfo-down.txt"))}
    assert (reasons["node2"], reasons["node3"]) == ("Not responding", "bad fan")


def test_parse_failed_tasks_finds_the_first(release: Release) -> None:
    assert say.parse_failed_tasks(release.read_answer("srun-exit.txt")) == [(1, 7, "node2")]
    assert say.parse_failed_tasks(release.read_answer("srun-killed.txt"))[0] == (2, 139, "node3")


@pytest.mark.parametrize(
    ("title", "words"),
    [
        ("sbatch --gres=gpu:2", "no set of nodes of this cluster can ever provide"),
        ("sbatch -p cpu", "no such partition"),
        ("sbatch --bogus=1", "does not understand the file"),
        ("sbatch --array=9-x", "is not an array, or has a number that this cluster does not accept"),
        ("sbatch --dependency=bogus:1", "Job dependency problem"),
    ],
)
def test_explain_calls_a_wrong_request_wrong_usage(release: Release, title: str, words: str) -> None:
    blocks = release.read_answer("refusals.txt").split("## ")[1:]
    sections = {block.partition("\n")[0]: block.partition("\n")[2] for block in blocks}
    error = explain(HEAD, sections[title])
    assert type(error) is UsageError
    assert words in error.what
    assert error.hint
    assert "\n" not in error.what


@pytest.mark.parametrize(("name", "words"), [("controller", "slurmctld"), ("munge", "munged does not answer")])
def test_explain_names_a_daemon_that_is_down(release: Release, name: str, words: str) -> None:
    error = explain(HEAD, release.read_answer(f"squeue-{name}-down.txt"))
    assert type(error) is InfrastructureError
    assert words in error.what


@pytest.mark.parametrize(
    ("name", "words"),
    [("another-key", reports.OTHER_KEY), ("clock-ahead", "its clock differs"), ("clock-behind", "its clock is ahead")],
)
def test_find_distrust_says_why_munge_refuses(
    release: Release, name: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "slurmd.log"
    log.write_text(release.read_answer(f"slurmd-{name}.log"), encoding="utf-8")
    monkeypatch.setattr(reports, "log_of", lambda _pid, _daemon: log)
    assert words in reports.find_distrust("self")


def test_explain_names_munge_when_it_refuses_a_step(release: Release) -> None:
    assert type(explain(HEAD, release.read_answer("srun-another-key.txt"))) is InfrastructureError


def _worker(name: str) -> Any:
    return SimpleNamespace(name=name, gpus=1)
