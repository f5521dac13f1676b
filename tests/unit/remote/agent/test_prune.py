"""Removing the oldest runs of a node: only runs whose files the client has completely."""

from __future__ import annotations

import io
import os
import time
from pathlib import Path

import pytest

from gpucourse.remote.agent import pack, prune
from gpucourse.remote.agent.job import Job
from tests.unit.remote.agent.stored import begin, end, write_later


def send(job: Job, *globs: str) -> None:
    limits = {"max_bytes": 1 << 30, "output_limit": 1 << 30, "max_files": 100}
    pack.pack(job, {"globs": list(globs), "have": {}, **limits}, io.BytesIO())
    packed = job.read(pack.PACKED)
    job.write(pack.PACKED, {**packed, "at": packed["at"] + 1})  # after what was written in this very moment


def test_prune_removes_collected_runs_but_the_newest(store_folder: Path) -> None:
    ids = [f"20260101-00000{second}-otter" for second in range(prune.KEPT + 2)]
    for run_id in ids:
        job, _ = begin(run_id)
        write_later(Path(job.path("outputs", "metrics.json")), b"{}")
        os.utime(job.path("outputs", "metrics.json"))
        end(job)
        send(job)
    folder = store_folder.parent / "jobs" / ".removed-20250101-000000-otter"
    folder.mkdir()
    prune.prune(ids[1:])
    names = {path.name for path in (store_folder.parent / "jobs").iterdir()}
    assert names == {*ids} - {ids[1]}, "the first is not collected, the newest stay, and a half-removed one is removed"


def test_prune_keeps_the_folder_of_a_job_array_whose_tasks_have_not_all_ended(store_folder: Path) -> None:
    job, _ = begin("20260101-000000-otter")
    end(job)
    send(job)
    newer = [f"20260101-00000{second}-heron" for second in range(1, prune.KEPT + 1)]
    for run_id in newer:
        Path(Job(run_id).folder).mkdir()
    Path(job.path("tasks")).mkdir()
    Path(job.path("tasks", "1")).symlink_to(f"../../{newer[0]}")
    prune.prune([job.run_id, *newer])
    assert Path(job.folder).exists()
    Path(Job(newer[0]).path("done")).touch()
    prune.prune([job.run_id, *newer])
    assert not Path(job.folder).exists()


UNSENT = [
    "never sent",
    "not ended",
    "an output since",
    "an output with an old date since",
    "a file in the work folder",
    "a link",
    "later jobs",
]


@pytest.mark.parametrize("reason", UNSENT)
def test_prune_keeps_a_run_with_anything_that_is_not_collected(store_folder: Path, reason: str) -> None:
    job, work = begin("20260101-000000-otter")
    newer = [f"20260101-00000{second}-heron" for second in range(1, prune.KEPT + 1)]
    for run_id in newer:
        Path(Job(run_id).folder).mkdir()
    if reason == "a link":
        Path(job.path("outputs", "link")).symlink_to("/etc/passwd")
    if reason == "a file in the work folder":
        write_later(work / "checkpoint.pt", b"x")
    if reason != "not ended":
        end(job)
    if reason != "never sent":
        send(job, "*.csv")
    if reason == "an output since":
        write_later(Path(job.path("outputs", "late")), b"x")
    if reason == "an output with an old date since":
        job.write(pack.PACKED, {**job.read(pack.PACKED), "at": time.time() - 60})
        Path(job.path("outputs", "restored")).write_bytes(b"x")
        os.utime(job.path("outputs", "restored"), (1_600_000_000, 1_600_000_000))  # as `cp -p` does
    if reason == "later jobs":
        job.write("exit.json", {"later": [{"job": "7"}]})
    prune.prune(["20260101-000000-otter", *newer])
    assert work.exists()
    if reason == "later jobs":
        job.write("exit.json", {"later": []})
        prune.prune(["20260101-000000-otter", *newer])
        assert not work.exists()
