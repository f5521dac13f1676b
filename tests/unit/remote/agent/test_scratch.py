"""The folder for temporary files of a run: short enough for sockets, never another user's, and removed afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpucourse.remote.agent import scratch
from gpucourse.remote.agent.job import Job


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    """Return a run whose folder has a long path."""
    monkeypatch.setenv("HOME", str(tmp_path / ("deep" * 20)))
    return Job("r1")


@pytest.fixture
def links(tmp_path: Path) -> Iterator[str]:
    """Yield the prefix of short links. Afterwards, no link is left there."""
    (tmp_path / "short").mkdir()
    yield str(tmp_path / "short" / "gpucourse-")
    assert not list((tmp_path / "short").iterdir())


def test_link_of_a_long_path_is_short(job: Job, links: str) -> None:
    place = scratch.make(job, links)
    assert place == scratch.link_of(job, links)
    (Path(place) / "torchelastic_x").mkdir()
    assert os.path.realpath(place) == os.path.realpath(job.path("tmp"))
    assert scratch.make(job, links) == place, "asked for again"
    scratch.remove(job, links)
    scratch.remove(job, links)
    assert not os.path.lexists(place)
    assert not job.has("tmp")


def test_remove_and_make_use_a_short_path_itself(job: Job, links: str) -> None:
    assert scratch.make(job, links, max_length=4000) == job.path("tmp")
    assert Path(job.path("tmp")).stat().st_mode & 0o777 == 0o700
    scratch.remove(job, links)
    assert not job.has("tmp")


@pytest.mark.parametrize("kind", ["link", "folder", "file"])
def test_make_leaves_what_another_user_put_there(job: Job, links: str, kind: str, tmp_path: Path) -> None:
    link, foreign_folder = Path(scratch.link_of(job, links)), tmp_path / "theirs"
    foreign_folder.mkdir()
    if kind == "link":
        link.symlink_to(foreign_folder)
    elif kind == "folder":
        link.mkdir()
    else:
        link.write_text("theirs")
    assert scratch.make(job, links) == job.path("tmp")
    scratch.remove(job, links)
    assert os.path.lexists(link)
    link.rmdir() if kind == "folder" else link.unlink()


def test_make_caches_puts_caches_beside_the_jobs_unless_chosen(job: Job) -> None:
    places = scratch.make_caches({"MPLCONFIGDIR": "/mine"})
    assert set(places) == set(scratch.CACHES) - {"MPLCONFIGDIR"}
    for place in places.values():
        assert Path(place).parent.parent == Path(job.folder).parent.parent
        assert Path(place).stat().st_mode & 0o777 == 0o700
    assert scratch.make_caches({}).keys() == scratch.CACHES.keys()
