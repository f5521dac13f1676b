"""What arrives is on the disk before it has a name, whatever ends the program, the node or the room on the disk."""

from __future__ import annotations

import errno
import io
import os
import resource
import shutil
from hashlib import sha256
from pathlib import Path

import pytest

from gpucourse.errors import StorageError, UnreachableError
from gpucourse.remote.unpack import OutputLimits, unpack
from gpucourse.storage import find_shortage
from gpucourse.workspace.paths import RunPaths
from tests.unit.remote.parcels import Parcel, everything

LIMIT = OutputLimits(max_bytes=1000)


@pytest.fixture
def paths(tmp_path: Path) -> RunPaths:
    return RunPaths(tmp_path / "run")


def test_unpack_names_a_file_that_the_disk_does_not_take(paths: RunPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    replace = os.replace

    def refuse(source: str, target: str) -> None:
        if target.endswith("/odd"):
            raise OSError(errno.EILSEQ, os.strerror(errno.EILSEQ), target)
        replace(source, target)

    monkeypatch.setattr(os, "replace", refuse)
    home = unpack("node0", io.BytesIO(Parcel().add("files/odd").add("files/a/b").finish()), paths, LIMIT)
    assert [output.path for output in home.outputs] == ["outputs/node0/a/b"]
    (refused,) = home.refused
    assert refused.name == "odd"
    assert "this computer cannot store a file of that name" in refused.reason
    assert everything(paths.folder) == {"outputs/node0/a/b"}


def test_unpack_refuses_a_second_name_that_is_the_same_to_the_disk(paths: RunPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that does not tell capital letters from small ones, as far as this is about it."""
    replace, look = os.replace, os.lstat
    monkeypatch.setattr(os, "replace", lambda source, target: replace(source, target.lower()))
    monkeypatch.setattr(os, "lstat", lambda path, **options: look(str(path).replace("/DATA", "/data"), **options))
    home = unpack("node0", io.BytesIO(Parcel().add("files/data", b"1").add("files/DATA", b"2").finish()), paths, LIMIT)
    assert [(o.path, o.sha256) for o in home.outputs] == [("outputs/node0/data", sha256(b"1").hexdigest())]
    assert [r.name for r in home.refused] == ["DATA"]


@pytest.mark.parametrize("moment", ["open", "replace"])
def test_unpack_loses_nothing_when_it_is_killed_before_files_have_names(
    paths: RunPaths, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Between writing and the sync, and between the sync and the first name."""
    sent = Parcel().add("files/a/1", b"1").add("files/2", b"2").finish()
    open_file = os.open

    def end_process(path: Path, second: int, *mode: int) -> int:
        if moment == "open" and second & os.O_CREAT:  # a file is written; what is opened to be read is about to be synced
            return open_file(path, second, *mode)
        os._exit(9)

    child = os.fork()
    if child == 0:
        monkeypatch.setattr(os, moment, end_process)
        unpack("node0", io.BytesIO(sent), paths, LIMIT)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert not [path for path in paths.outputs.rglob("*") if path.is_file()], "a name before the sync"
    home = unpack("node0", io.BytesIO(sent), paths, LIMIT)
    assert len(home.outputs) == 2
    assert everything(paths.folder) == {"outputs/node0/a/1", "outputs/node0/2"}
    assert not list(paths.folder.glob(".*")), "what the killed program left is gone"


def test_unpack_stops_before_the_disk_is_full(paths: RunPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    free = shutil.disk_usage(paths.folder.parent)._replace(free=(256 << 20) + 150)
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: free)
    parcel = Parcel().add("files/a", b"1" * 100).add("files/b", b"2" * 200)
    with pytest.raises(StorageError, match=r"200 B more would leave less than 256.0 MiB free on its disk"):
        unpack("node0", io.BytesIO(parcel.finish()), paths, LIMIT)
    assert everything(paths.folder) == {"outputs/node0/a"}


@pytest.mark.parametrize(("left", "told"), [((256 << 20) - 1, True), (256 << 20, False)])
def test_find_shortage_names_a_disk_that_is_nearly_full(
    left: int, told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = shutil.disk_usage(tmp_path)._replace(free=left)
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: free)
    said = f"the disk of {tmp_path} has 256.0 MiB free: outputs are collected only while 256.0 MiB stay free"
    assert find_shortage(tmp_path) == (said if told else "")


@pytest.mark.parametrize("share", [0.0, 0.5, 0.97])
def test_unpack_leaves_only_whole_files_when_the_stream_is_cut(paths: RunPaths, share: float) -> None:
    parcel = Parcel()
    for number in range(9):
        parcel.add(f"files/{number}", bytes([number]) * 900)
    sent = parcel.finish().rstrip(b"\0")
    with pytest.raises(UnreachableError, match="node0"):
        unpack("node0", io.BytesIO(sent[: int(len(sent) * share)]), paths, LIMIT)
    for path in paths.node_outputs("node0").glob("*"):
        assert path.read_bytes() == bytes([int(path.name)]) * 900
    assert not list(paths.folder.rglob(".*"))


def test_unpack_leaves_no_half_file_on_a_full_disk(paths: RunPaths) -> None:
    parcel = Parcel().add("files/a", b"1" * 100).add("files/b", b"2" * 90_000)
    sent = io.BytesIO(parcel.finish())
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(StorageError, match=r"no space left to write .*/b"):
            unpack("node0", sent, paths, OutputLimits(max_bytes=1 << 20))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert everything(paths.folder) == {"outputs/node0/a"}
