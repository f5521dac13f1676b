"""The logs of a run as its node sends them: from the requested offsets, and to the end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpucourse.remote.agent import follow, frames
from gpucourse.remote.agent.job import Job
from gpucourse.remote.answers import read_frames
from tests.unit.remote.agent_link import make_ended_job


def test_follow_sends_the_rest_of_each_log_then_the_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    job = make_ended_job(tmp_path, "r1", b"one\ntwo\n", {})
    (job / "logs" / "notes.txt").write_text("no log of a rank")
    with (tmp_path / "sent").open("wb") as file:
        follow.follow(Job("r1"), {"/0": 4}, file.fileno())
    launcher, name, *logs, rank, end = read_frames("node0", iter([(tmp_path / "sent").read_bytes()]))
    names = [(stream, json.loads(payload)["rank"]) for _, stream, _, payload in (launcher, name)]
    assert names == [(0, None), (1, 0)]
    assert logs == [(frames.LOG, 1, 4, b""), (frames.LOG, 1, 4, b"two\n")]
    assert (rank[0], json.loads(rank[3])["rank"], json.loads(rank[3])["code"]) == (frames.RANK, 0, 0)
    assert end[0] == frames.END
    assert (json.loads(end[3])["reason"], json.loads(end[3])["code"]) == ("exited", 0)
