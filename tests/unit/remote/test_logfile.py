"""A log of a run on this computer: written to a plain file, byte for byte, up to its limit."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gpucourse.errors import NodeUntrusted, StorageError
from gpucourse.remote.logfile import MAX_LOGS, LogFile, count_possible_logs
from gpucourse.workspace.paths import RunPaths
from tests.unit.remote.test_follow import paths

__all__ = ["paths"]  # the fixture


def open_log(paths: RunPaths, limit: int | None = None) -> LogFile:
    return LogFile("node0", paths.rank_log("node0", 0), paths.rank_times("node0", 0), limit)


def test_append_goes_on_where_the_file_ends(paths: RunPaths) -> None:
    assert open_log(paths).append(0, b"one\n") == b"one\n"
    log = open_log(paths)
    assert log.append(4, b"two\n") == b"two\n"
    for offset in (0, 9):
        with pytest.raises(NodeUntrusted, match=f"it belongs at {offset}, but the log here ends at 8"):
            log.append(offset, b"x")
    assert paths.rank_log("node0", 0).read_bytes() == b"one\ntwo\n"
    assert [line.split()[0] for line in paths.rank_times("node0", 0).read_text().splitlines()] == ["4", "8"]


def plant_folder(paths: RunPaths, foreign_folder: Path) -> None:
    paths.folder.mkdir(parents=True)
    paths.logs.symlink_to(foreign_folder)


def plant_link(paths: RunPaths, foreign_folder: Path) -> None:
    (foreign_folder / "mine").write_text("mine")
    paths.logs.mkdir(parents=True)
    os.link(foreign_folder / "mine", paths.rank_log("node0", 0))


def plant_symbolic_link(paths: RunPaths, foreign_folder: Path) -> None:
    paths.logs.mkdir(parents=True)
    paths.rank_log("node0", 0).symlink_to(foreign_folder / "victim")


def plant_pipe(paths: RunPaths, foreign_folder: Path) -> None:
    paths.logs.mkdir(parents=True)
    os.mkfifo(paths.rank_log("node0", 0))
    os.open(paths.rank_log("node0", 0), os.O_RDONLY | os.O_NONBLOCK)  # a reader, so that it can be opened
    assert foreign_folder.is_dir()


@pytest.mark.parametrize("plant", [plant_folder, plant_link, plant_symbolic_link, plant_pipe])
def test_log_file_is_written_only_if_it_is_a_plain_file_of_the_run(
    paths: RunPaths, tmp_path: Path, plant: Callable[[RunPaths, Path], None]
) -> None:
    plant(paths, tmp_path / "outside")
    with pytest.raises(StorageError):
        open_log(paths).append(0, b"x")
    assert {path.read_text() for path in (tmp_path / "outside").iterdir()} <= {"mine"}


@pytest.mark.parametrize(("hosts", "count"), [(None, 9), ({"node0", "node1", "node2"}, 8)])
def test_count_possible_logs_allows_for_jobs_that_start_again(hosts: set[str] | None, count: int) -> None:
    assert count_possible_logs(2, hosts) == count
    assert count_possible_logs(10_000, hosts) <= MAX_LOGS
