"""The logs of a run as its node sends them: from the requested offsets, and to the end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpucourse.remote.agent import follow, frames
from gpucourse.remote.agent.job import Job
from gpucourse.remote.answers import read_frames
from tests.unit.remote.agent_link import make_ended_job


def follow_to_the_end(tmp_path: Path, offsets: dict[int, int]) -> list[tuple[bytes, int, int, bytes]]:
    """The frames without signs of life."""
    with (tmp_path / "sent").open("wb") as file:
        follow.follow(Job("r1"), offsets, file.fileno())
    sent = read_frames("node0", iter([(tmp_path / "sent").read_bytes()]))
    return [piece for piece in sent if piece[0] != frames.BEAT]


def test_follow_sends_the_rest_of_each_log_then_the_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    job = make_ended_job(tmp_path, "r1", b"one\ntwo\n", {})
    (job / "logs" / "notes.txt").write_text("no log of a rank")
    *logs, rank, end = follow_to_the_end(tmp_path, {1: 4})
    assert logs == [(frames.LOG, 1, 4, b""), (frames.LOG, 1, 4, b"two\n")]
    assert (rank[:3], json.loads(rank[3])["code"]) == ((frames.RANK, 1, 0), 0)
    assert end[0] == frames.END
    assert (json.loads(end[3])["reason"], json.loads(end[3])["code"]) == ("exited", 0)


def test_follow_sends_nothing_beyond_the_limit_of_a_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (make_ended_job(tmp_path, "r1", b"0123456789", {}) / "job.json").write_text('{"log_limit": 6}')
    sent = follow_to_the_end(tmp_path, {})
    assert b"".join(data for kind, stream, _, data in sent if (kind, stream) == (frames.LOG, 1)) == b"012345"
