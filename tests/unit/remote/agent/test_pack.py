"""The files that a node offers, whatever a script leaves in its folder."""

from __future__ import annotations

import io
import json
import os
import tarfile
from pathlib import Path

import pytest

from gpucourse.remote.agent import job, pack
from tests.unit.remote.agent.stored import begin


def pack_and_list(
    home: Path, monkeypatch: pytest.MonkeyPatch, *globs: str, output_limit: int = 1 << 20, max_files: int = 100
) -> tuple[set[str], dict[str, str]]:
    """Return the names of the sent files, and the files that are left out, with the reasons."""
    monkeypatch.setenv("HOME", str(home))
    (home / ".gpucourse/jobs/otter/job.json").write_text("{}")
    out = io.BytesIO()
    limits = {"max_bytes": 1 << 20, "output_limit": output_limit, "max_files": max_files}
    pack.pack(job.Job("otter"), {"globs": list(globs), "have": {}, **limits}, out)
    out.seek(0)
    with tarfile.open(fileobj=out) as archive:
        listing = archive.extractfile(pack.LISTING)
        assert listing is not None
        reply = json.load(listing)
        leftover = dict(reply["refused"])
        return {name.removeprefix("files/") for name in archive.getnames() if name.startswith("files/")}, leftover


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / ".gpucourse/jobs/otter/work"
    (folder / "run1").mkdir(parents=True)
    (folder / "run1/model.pt").write_text("weights")
    (folder / "latest").symlink_to("run1")
    (folder / "loop").symlink_to(".")
    (folder / "gone").symlink_to("nowhere")
    return folder


@pytest.mark.parametrize("globs", [("*",), ("run1", "gone", "latest", "loop")])
def test_pack_leaves_links_out(tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch, globs: tuple[str, ...]) -> None:
    packed_names, reasons = pack_and_list(tmp_path, monkeypatch, *globs)
    assert packed_names == {"run1/model.pt"}
    assert reasons == dict.fromkeys(("latest", "loop", "gone"), "it is a link, and links are not followed")


def test_pack_keeps_to_the_limit_of_all_files(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (work / "large").write_bytes(bytes(2000))
    names, reasons = pack_and_list(work.parents[3], monkeypatch, "large", "run1/*", output_limit=1000)
    assert names == {"run1/model.pt"}
    assert reasons == {"large": "with it, the outputs of this node would exceed 1000 B (output_limit)"}


def test_pack_keeps_to_the_number_of_files(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = work.parent / "outputs"
    outputs.mkdir()
    for number in range(5):
        (outputs / str(number)).write_text("x")
    names, reasons = pack_and_list(work.parents[3], monkeypatch, max_files=3)
    assert names == {"0", "1", "2"}
    assert reasons == {"3": "more than 3 files: no more are sent"}


@pytest.mark.slow
def test_pack_names_only_some_of_very_many_files_left_out(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(pack.MAX_NAMED + 2):
        (work / f"link{number:04d}").symlink_to("run1")
    _, reasons = pack_and_list(work.parents[3], monkeypatch, "link*", max_files=2 * pack.MAX_NAMED)
    assert list(reasons) == [*(f"link{number:04d}" for number in range(pack.MAX_NAMED)), "2 more files"]


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
    request = {"globs": list(names), "have": {}, "max_bytes": 1 << 20, "output_limit": 1 << 20, "max_files": 9}
    pack.pack(job.Job("otter"), request, out)
    out.seek(0)
    with tarfile.open(fileobj=out) as archive:
        closing = archive.extractfile(pack.CLOSING)
        assert closing is not None
        assert json.load(closing) == ["short", "long"]
        assert {member.size for member in archive if member.name.startswith("files/")} == {1000}


def test_list_offers_has_an_upload_only_if_it_is_in_outputs(store_folder: Path) -> None:
    run, work = begin("20260101-000000-otter")
    (Path(run.path("outputs")) / "small.py").hardlink_to(work / "small.py")
    assert store_folder.is_dir()
    assert pack.list_offers(run, ["**", "*.py"]) == ({"small.py": run.path("outputs", "small.py")}, [])
