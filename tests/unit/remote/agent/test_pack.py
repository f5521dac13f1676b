"""What a node offers of what a script left in its folder, whatever a script leaves there."""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from gpucourse.remote.agent import frames, job, pack, tar


def pack_and_list(
    home: Path, monkeypatch: pytest.MonkeyPatch, *globs: str, output_limit: int = 1 << 20, max_files: int = 100
) -> tuple[set[str], dict[str, str]]:
    """The names that travel, and what is left out, with its reason."""
    monkeypatch.setenv("HOME", str(home))
    (home / ".gpucourse/jobs/otter/job.json").write_text("{}")
    out = io.BytesIO()
    limits = {"max_bytes": 1 << 20, "output_limit": output_limit, "max_files": max_files}
    pack.pack(job.Job("otter"), {"globs": list(globs), "have": {}, **limits}, out)
    out.seek(0)
    with tarfile.open(fileobj=out) as archive:
        listing = archive.extractfile(pack.LISTING)
        assert listing is not None
        told = json.load(listing)
        assert told["outputs"] == pack.tell_outputs(job.Job("otter"))
        left = {entry["name"]: entry["reason"] for entry in told["left"]}
        return {name.removeprefix("files/") for name in archive.getnames() if name.startswith("files/")}, left


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / ".gpucourse/jobs/otter/work"
    (folder / "run1").mkdir(parents=True)
    (folder / "run1/model.pt").write_text("weights")
    (folder / "latest").symlink_to("run1")
    (folder / "loop").symlink_to(".")
    (folder / "gone").symlink_to("nowhere")
    return folder


def _rewrite(file: Path) -> None:
    before = file.stat()
    file.write_text("WEIGHTS")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns + 1))


@pytest.mark.parametrize(
    "change",
    [
        _rewrite,
        lambda file: file.unlink(),
        lambda file: file.with_name("more").touch(),
        lambda file: file.rename(file.with_name("other")),
        lambda file: file.parents[2].joinpath("env.json").write_text('{"cores": 2}'),
    ],
    ids=["written", "removed", "another", "renamed", "described"],
)
def test_tell_outputs_changes_with_the_outputs(
    tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], object]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    otter = job.Job("otter")
    assert pack.tell_outputs(otter) == ""  # nobody asked for them yet
    pack_and_list(tmp_path, monkeypatch, "**")
    sent = pack.tell_outputs(otter)
    assert sent == pack.tell_outputs(otter) != ""
    change(work / "run1/model.pt")
    assert pack.tell_outputs(otter) not in {"", sent}


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="only Linux has such a folder")
def test_pack_leaves_out_what_vanishes_meanwhile(tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this folder lies what is open: the folder itself as well while its names are read, and no longer afterwards."""
    monkeypatch.setenv("HOME", str(tmp_path))
    work.with_name("outputs").symlink_to("/proc/self/fd")
    work.with_name("job.json").write_text("{}")
    out = io.BytesIO()
    limits = {"max_bytes": 1 << 20, "output_limit": 1 << 20, "max_files": frames.MOST_FILES}
    pack.pack(job.Job("otter"), {"globs": ["run1"], "have": {}, **limits}, out)
    out.seek(0)
    with tarfile.open(fileobj=out) as archive:
        assert archive.getnames() == [pack.LISTING, "files/run1/model.pt", pack.CLOSING]


@pytest.mark.parametrize("globs", [("*",), ("run1", "gone", "latest", "loop")])
def test_pack_leaves_links_out(tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch, globs: tuple[str, ...]) -> None:
    packed_names, left = pack_and_list(tmp_path, monkeypatch, *globs)
    assert packed_names == {"run1/model.pt"}
    assert left == dict.fromkeys(("latest", "loop", "gone"), "it is a link, and links are not followed")


def test_pack_is_silent_about_links_to_what_it_collects(tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (work / "outside").symlink_to("/etc/hostname")
    (work / "debug.log").symlink_to(work / "run1/model.pt")
    outputs = work.parent / "outputs"
    outputs.mkdir()
    (outputs / "metrics.json").write_text("{}")
    (outputs / "newest.json").symlink_to("metrics.json")
    (outputs / "work").symlink_to(work)
    packed_names, left = pack_and_list(tmp_path, monkeypatch, "**")
    assert packed_names == {"run1/model.pt", "metrics.json"}
    assert left == dict.fromkeys(("gone", "outside"), "it is a link, and links are not followed")
    assert "work" in pack_and_list(tmp_path, monkeypatch)[1], "nothing of it is collected"


def test_pack_keeps_to_the_limit_of_all_files(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (work / "large").write_bytes(bytes(2000))
    names, left = pack_and_list(work.parents[3], monkeypatch, "large", "run1/*", output_limit=1000)
    assert names == {"run1/model.pt"}
    assert left == {"large": "with it the outputs of this node were more than 1000 B (output_limit)"}


def test_pack_keeps_to_the_number_of_files(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = work.parent / "outputs"
    outputs.mkdir()
    for number in range(5):
        (outputs / str(number)).write_text("x")
    names, left = pack_and_list(work.parents[3], monkeypatch, max_files=3)
    assert names == {"0", "1", "2"}
    assert left == {"3": "more than 3 files: no more are taken"}


def test_pack_names_only_some_of_very_many_files_left_out(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(pack.MOST_LEFT + 2):
        (work / f"link{number:04d}").symlink_to("run1")
    _, left = pack_and_list(work.parents[3], monkeypatch, "link*", max_files=2 * pack.MOST_LEFT)
    assert list(left) == [*(f"link{number:04d}" for number in range(pack.MOST_LEFT)), "2 more files"]


def test_pack_names_a_file_that_changes_while_it_is_sent(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"short": -1, "long": 1, "same": 0}
    for name in names:
        (work / name).write_bytes(b"x" * 1000)
    read = os.read

    def change_then_read(handle: int, count: int) -> bytes:
        name = Path(f"/proc/self/fd/{handle}").readlink().name
        if names[name]:
            os.truncate(work / name, 1000 + names[name])
        return read(handle, count)

    monkeypatch.setattr(os, "read", change_then_read)
    monkeypatch.setenv("HOME", str(work.parents[3]))
    (work.parent / "job.json").write_text("{}")
    out = io.BytesIO()
    wanted = {"globs": list(names), "have": {}, "max_bytes": 1 << 20, "output_limit": 1 << 20, "max_files": 9}
    pack.pack(job.Job("otter"), wanted, out)
    out.seek(0)
    with tarfile.open(fileobj=out) as archive:
        closing = archive.extractfile(pack.CLOSING)
        assert closing is not None
        assert json.load(closing) == {"changed": ["short", "long"]}
        assert {member.size for member in archive if member.name.startswith("files/")} == {1000}


@pytest.mark.parametrize("name", ["plain", "n" * 101, "ünï/x", "deep/" * 40 + "x"])
@pytest.mark.parametrize("size", [0, 513, (8 << 30) + 1])
def test_header_is_read_by_any_tar(name: str, size: int) -> None:
    block = tar.header(name, size, True, 1_700_000_000_123_456_789)
    member = tarfile.TarFile(fileobj=io.BytesIO(block + tar.END)).next()
    assert member is not None
    told = (member.name, member.size, member.mode, member.isreg(), member.mtime)
    assert told == (name, size, 0o755, True, 1_700_000_000)
    assert block[-12:] == b"123456789\0\0\0"


@pytest.mark.parametrize("mtime_ns", [None, -1, (8 << 30) * 10**9])
def test_header_leaves_out_a_time_that_it_cannot_hold(mtime_ns: int | None) -> None:
    block = tar.header("name", 1, False, mtime_ns)
    assert tarfile.TarFile(fileobj=io.BytesIO(block + bytes(512) + tar.END)).next() is not None
    assert block[-12:] == bytes(12)
