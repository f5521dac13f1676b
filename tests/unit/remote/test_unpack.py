"""Unpacking a node's files: none is trusted, and each is on the disk before it gets its name."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import tarfile
from hashlib import sha256
from pathlib import Path

import pytest

from gpucourse.errors import NodeUntrusted, StorageError, UnreachableError
from gpucourse.remote.unpack import OutputLimits, unpack
from gpucourse.workspace.paths import RunPaths
from tests.unit.remote.parcels import Parcel, everything

LIMIT, SMALL = OutputLimits(max_bytes=1000), OutputLimits(max_bytes=1000, output_limit=1000)


@pytest.fixture
def paths(tmp_path: Path) -> RunPaths:
    return RunPaths(tmp_path / "run")


def test_unpack_stores_files_with_their_hash(paths: RunPaths) -> None:
    parcel = Parcel(env={"hostname": "n"}).add("files/a/b/data.bin", b"\x00\xff", mode=0o755).add("files/empty", b"")
    collection = unpack("node0", [parcel.finish()], paths, LIMIT)
    assert [(o.node, o.path, o.bytes, o.sha256) for o in collection.outputs] == [
        ("node0", "outputs/node0/a/b/data.bin", 2, sha256(b"\x00\xff").hexdigest()),
        ("node0", "outputs/node0/empty", 0, sha256(b"").hexdigest()),
    ]
    assert os.access(paths.node_outputs("node0") / "a/b/data.bin", os.X_OK)
    assert collection.environments == {"node0": {"hostname": "n"}}
    assert collection.refused == []


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("/etc/x", {"size": 1}),
        ("files/link", {"type": tarfile.SYMTYPE, "linkname": "../../../x"}),
        ("files/pipe", {"type": tarfile.FIFOTYPE}),
    ],
)
def test_unpack_refuses_what_is_no_file_of_the_run(paths: RunPaths, name: str, fields: dict[str, object]) -> None:
    parcel = Parcel().add("files/good", b"good").add(name, b"x" if "size" in fields else b"", **{"size": 0, **fields})
    with pytest.raises(NodeUntrusted, match="is not a file of the run"):
        unpack("node0", [parcel.finish()], paths, LIMIT)
    assert everything(paths.folder.parent) == {"run/outputs/node0/good"}


def test_unpack_follows_no_link_that_is_there_already(paths: RunPaths, tmp_path: Path) -> None:
    foreign_folder = tmp_path / "outside"
    foreign_folder.mkdir()
    paths.node_outputs("node0").mkdir(parents=True)
    (paths.node_outputs("node0") / "way").symlink_to(foreign_folder)
    (paths.node_outputs("node0") / "target").symlink_to(foreign_folder / "victim")
    parcel = Parcel().add("files/way/x").add("files/target", b"mine")
    collection = unpack("node0", [parcel.finish()], paths, LIMIT)
    assert [r.reason for r in collection.refused] == ["way is not a folder here"]
    assert list(foreign_folder.iterdir()) == []
    assert (paths.node_outputs("node0") / "target").read_bytes() == b"mine"


@pytest.mark.parametrize("place", ["outputs", "outputs/node0"])
def test_unpack_follows_no_link_in_place_of_its_folder(paths: RunPaths, tmp_path: Path, place: str) -> None:
    (tmp_path / "outside/node0").mkdir(parents=True)
    (paths.folder / place).parent.mkdir(parents=True)
    (paths.folder / place).symlink_to(tmp_path / "outside")
    with pytest.raises(StorageError, match="is a link, not a folder of the run"):
        unpack("node0", [Parcel().add("files/a", b"1").finish()], paths, LIMIT)
    assert [path.name for path in (tmp_path / "outside").rglob("*")] == ["node0"]


def test_unpack_names_files_that_are_in_the_way_or_lead_out(paths: RunPaths) -> None:
    parcel = Parcel().add("files/a", b"1").add("files/a/b", b"3").add("files/../../x").add("files/")
    collection = unpack("node0", [parcel.finish()], paths, LIMIT)
    assert [r.name for r in collection.refused] == ["a/b", "../../x", ""]
    assert collection.refused[0].reason == "a is not a folder here"
    assert everything(paths.folder.parent) == {"run/outputs/node0/a"}


@pytest.mark.parametrize(
    ("name", "size", "reason"),
    [("files/b", 1001, "b has 1001 bytes"), ("files/b", 600, "b has 600 bytes"), ("files/a", 1, "two files named a")],
)
def test_unpack_refuses_more_than_the_limits_allow(paths: RunPaths, name: str, size: int, reason: str) -> None:
    parcel = Parcel().add("files/a", b"1" * 600).add(name, b"2" * size)
    with pytest.raises(NodeUntrusted, match=reason):
        unpack("node0", [parcel.finish()], paths, SMALL)
    assert everything(paths.folder) == {"outputs/node0/a"}


def test_unpack_accepts_odd_names_and_no_control_characters(paths: RunPaths) -> None:
    names = [
        "files/with space",
        "files/-dash",
        'files/"quoted"',
        "files/ünïcødé",
        "files/" + "n" * 255,
        "files/" + "d" * 255 + "/x",
    ]
    parcel = Parcel()
    for name in (*names, "files/bad\udcff", "files/new\nline", "files/\x1b[31m", "files/\u202egnp.exe"):
        parcel.add(name, b"1")
    collection = unpack("node0", [parcel.finish()], paths, LIMIT)
    assert everything(paths.node_outputs("node0")) == {name.removeprefix("files/") for name in names} | {"bad\\xff"}
    assert [r.name for r in collection.refused] == ["new\\nline", "\\x1b[31m", "\\u202egnp.exe"]
    assert all("control characters" in refusal.reason for refusal in collection.refused)


def test_unpack_removes_what_changed_while_it_was_read(paths: RunPaths) -> None:
    parcel = Parcel().add("files/growing", b"half").add("files/done", b"whole")
    collection = unpack("node0", [parcel.finish(files=("growing",))], paths, LIMIT)
    assert everything(paths.folder) == {"outputs/node0/done"}
    assert [(r.name, r.reason) for r in collection.refused] == [("growing", "it changed while it was being read")]


@pytest.fixture
def here(paths: RunPaths, tmp_path: Path) -> Path:
    """Return a file of the learner outside the run, links to it, and a file that has already been collected."""
    secret_file = tmp_path / "learner_secret.txt"
    secret_file.write_bytes(b"secret")
    root = paths.node_outputs("node0")
    (root / "folder").mkdir(parents=True)
    (root / "old").write_bytes(b"old")
    (root / "link").symlink_to(secret_file)
    return secret_file


WAY_OUT = "../../../learner_secret.txt"


@pytest.mark.parametrize("name", [WAY_OUT, "/etc/passwd", "link", "folder", "gone", "../../../../../dev/zero"])
@pytest.mark.timeout(60)
def test_unpack_accepts_only_an_offered_file_as_the_same(paths: RunPaths, here: Path, name: str) -> None:
    have = {"old": [3, (paths.node_outputs("node0") / "old").stat().st_mtime_ns]}
    with pytest.raises(NodeUntrusted, match=r"node0: the outputs that it sent cannot be used"):
        unpack("node0", [Parcel(same=[name]).finish(files=(name,))], paths, LIMIT, have=have)
    collection = unpack("node0", [Parcel(same=["old"]).finish()], paths, LIMIT, have=have)
    assert [(o.path, o.bytes) for o in collection.outputs] == [("outputs/node0/old", 3)]
    assert here.read_bytes() == b"secret"


@pytest.mark.parametrize("name", [WAY_OUT, "link", "old", "gone"])
def test_unpack_removes_only_what_was_just_sent(paths: RunPaths, here: Path, name: str) -> None:
    unpack("node0", [Parcel().add("files/a").finish(files=(name, name))], paths, LIMIT)
    assert here.read_bytes() == b"secret"
    assert everything(paths.folder) == {"outputs/node0/a", "outputs/node0/old", "outputs/node0/link"}


@pytest.mark.parametrize(
    "listing",
    [
        {"refused": [[1, "x"]]},
        {"refused": [["x", "y"]] * 5000},
        {"same": [1]},
        {"same": ["a"] * 3000},
        {"env": []},
        {"env": {str(number): 1 for number in range(20_000)}},
    ],
    ids=range(6),
)
def test_unpack_refuses_a_listing_of_another_form(paths: RunPaths, listing: dict[str, object]) -> None:
    with pytest.raises(NodeUntrusted):
        unpack("node0", [Parcel(**listing).finish()], paths, LIMIT)


def test_unpack_escapes_the_environment_of_a_node(paths: RunPaths) -> None:
    env = {"cpu\x1b[31m": "a\nb" + "x" * 1000, "gpus": [{"name": "\x1b]0;title\x07"}], "cores": 2}
    collection = unpack("node0", [Parcel(env=env).finish()], paths, LIMIT)
    environment = collection.environments["node0"]
    assert set(environment) == {"cpu\\x1b[31m", "gpus", "cores"}
    assert environment["gpus"] == [{"name": "\\x1b]0;title\\x07"}]
    assert len(environment["cpu\\x1b[31m"]) == 300


def test_unpack_refuses_more_files_than_the_limit(paths: RunPaths) -> None:
    parcel = Parcel()
    for number in range(11):
        parcel.add(f"files/{number}", b"")
    with pytest.raises(NodeUntrusted, match="more files"):
        unpack("node0", [parcel.finish()], paths, OutputLimits(max_bytes=1000, max_files=9))
    assert len(everything(paths.folder)) == 10


def test_unpack_names_a_file_that_the_disk_does_not_take(paths: RunPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    replace = os.replace

    def refuse(source: str, target: str) -> None:
        if target.endswith("/odd"):
            raise OSError(errno.EILSEQ, os.strerror(errno.EILSEQ), target)
        replace(source, target)

    monkeypatch.setattr(os, "replace", refuse)
    collection = unpack("node0", [Parcel().add("files/odd").add("files/a/b").finish()], paths, LIMIT)
    assert [output.path for output in collection.outputs] == ["outputs/node0/a/b"]
    (refusal,) = collection.refused
    assert refusal.name == "odd"
    assert "this computer cannot store a file of that name" in refusal.reason
    assert everything(paths.folder) == {"outputs/node0/a/b"}


def test_unpack_refuses_a_second_name_that_is_the_same_to_the_disk(paths: RunPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a disk that does not distinguish upper and lower case."""
    replace, look = os.replace, os.lstat
    monkeypatch.setattr(os, "replace", lambda source, target: replace(source, target.lower()))
    monkeypatch.setattr(os, "lstat", lambda path, **options: look(str(path).replace("/DATA", "/data"), **options))
    collection = unpack("node0", [Parcel().add("files/data", b"1").add("files/DATA", b"2").finish()], paths, LIMIT)
    assert [(o.path, o.sha256) for o in collection.outputs] == [("outputs/node0/data", sha256(b"1").hexdigest())]
    assert [r.name for r in collection.refused] == ["DATA"]


@pytest.mark.parametrize("moment", ["open", "replace"])
def test_unpack_loses_nothing_when_it_is_killed_before_files_have_names(
    paths: RunPaths, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Kill the program between writing and the sync, and between the sync and the first rename."""
    data = Parcel().add("files/a/1", b"1").add("files/2", b"2").finish()
    open_file = os.open

    def end_process(path: Path, second: int, *mode: int) -> int:
        if moment == "open" and second & os.O_CREAT:  # a file is written; what is opened to be read is about to be synced
            return open_file(path, second, *mode)
        os._exit(9)

    child = os.fork()
    if child == 0:
        monkeypatch.setattr(os, moment, end_process)
        unpack("node0", [data], paths, LIMIT)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert not [path for path in paths.outputs.rglob("*") if path.is_file()], "a name before the sync"
    collection = unpack("node0", [data], paths, LIMIT)
    assert len(collection.outputs) == 2
    assert everything(paths.folder) == {"outputs/node0/a/1", "outputs/node0/2"}
    assert not list(paths.folder.glob(".*")), "what the killed program left is gone"


def test_unpack_stops_before_the_disk_is_full(paths: RunPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    free = shutil.disk_usage(paths.folder.parent)._replace(free=(256 << 20) + 150)
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: free)
    parcel = Parcel().add("files/a", b"1" * 100).add("files/b", b"2" * 200)
    with pytest.raises(StorageError, match=r"200 B more would leave less than 256.0 MiB free on its disk"):
        unpack("node0", [parcel.finish()], paths, LIMIT)
    assert everything(paths.folder) == {"outputs/node0/a"}


@pytest.mark.parametrize("share", [0.0, 0.5, 0.97])
def test_unpack_leaves_only_whole_files_when_the_stream_is_cut(paths: RunPaths, share: float) -> None:
    parcel = Parcel()
    for number in range(9):
        parcel.add(f"files/{number}", bytes([number]) * 900)
    data = parcel.finish().rstrip(b"\0")
    with pytest.raises(UnreachableError, match="node0"):
        unpack("node0", [data[: int(len(data) * share)]], paths, LIMIT)
    for path in paths.node_outputs("node0").glob("*"):
        assert path.read_bytes() == bytes([int(path.name)]) * 900
    assert not list(paths.folder.rglob(".*"))


def test_unpack_leaves_no_half_file_on_a_full_disk(paths: RunPaths) -> None:
    parcel = Parcel().add("files/a", b"1" * 100).add("files/b", b"2" * 90_000)
    data = [parcel.finish()]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(StorageError, match=r"no space left to write .*/b"):
            unpack("node0", data, paths, OutputLimits(max_bytes=1 << 20))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert everything(paths.folder) == {"outputs/node0/a"}
