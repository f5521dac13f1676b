"""The folder for temporary files of a run: short enough for sockets, never somebody else's, gone afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpucourse.remote.agent import job as jobs
from gpucourse.remote.agent import scratch
from gpucourse.remote.agent.job import Job


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Job]:
    """A run whose folder has a path of any length; its short links lie in the test's own folder."""
    monkeypatch.setattr(jobs, "HOME", str(tmp_path / ("deep" * 20)))
    (tmp_path / "short").mkdir()
    monkeypatch.setattr(scratch, "LINKS", str(tmp_path / "short" / "gpucourse-"))
    yield Job("r1")
    assert not list((tmp_path / "short").iterdir())


def test_a_long_path_gets_a_short_link(job: Job) -> None:
    place = scratch.make(job)
    assert place == scratch.link_of(job)
    (Path(place) / "torchelastic_x").mkdir()
    assert os.path.realpath(place) == os.path.realpath(job.path("tmp"))
    assert scratch.make(job) == place, "asked for again"
    scratch.remove(job)
    scratch.remove(job)
    assert not os.path.lexists(place)
    assert not job.has("tmp")


def test_a_short_path_needs_none(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "LONGEST", 4000)
    assert scratch.make(job) == job.path("tmp")
    assert Path(job.path("tmp")).stat().st_mode & 0o777 == 0o700
    scratch.remove(job)
    assert not job.has("tmp")


@pytest.mark.parametrize("kind", ["link", "folder", "file"])
def test_what_somebody_else_put_there_is_neither_used_nor_removed(job: Job, kind: str, tmp_path: Path) -> None:
    link, theirs = Path(scratch.link_of(job)), tmp_path / "theirs"
    theirs.mkdir()
    if kind == "link":
        link.symlink_to(theirs)
    elif kind == "folder":
        link.mkdir()
    else:
        link.write_text("theirs")
    assert scratch.make(job) == job.path("tmp")
    scratch.remove(job)
    assert os.path.lexists(link)
    link.rmdir() if kind == "folder" else link.unlink()
