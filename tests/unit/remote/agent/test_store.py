"""What is on a node of uploaded files and of runs: shared where nobody writes, and gone where the client has it."""

from __future__ import annotations

import io
import os
import time
from pathlib import Path

import pytest

from gpucourse.remote.agent import pack, prune, store, supervise
from gpucourse.remote.agent.job import Job

BIG, SMALL = store.LINKED_FROM, 100
KEYS = {"big": "b-1", "model.pt": "b-2", "small.py": "s-3"}


@pytest.fixture
def store_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The node's store, with two large files and a small one."""
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / ".gpucourse" / "store"
    folder.mkdir(parents=True)
    for name, key in KEYS.items():
        (folder / key).write_bytes(b"0" * (SMALL if name == "small.py" else BIG))
    return folder


def begin(run_id: str) -> tuple[Job, Path]:
    """A run that has begun, and its work folder."""
    job = Job(run_id)
    for name in ("work", "outputs", "logs"):
        Path(job.path(name)).mkdir(parents=True, exist_ok=True)
    files = [{"name": name, "key": key, "executable": False} for name, key in KEYS.items()]
    job.write("job.json", {"files": files})
    store.lay_out(files, job.path("work"))
    Path(job.path("started")).touch()
    later = Path(job.path("started")).stat().st_mtime_ns + 10**9  # the clock of a disk is coarse
    os.utime(job.path("started"), ns=(later - 10**6, later - 10**6))
    return job, Path(job.path("work"))


def end(job: Job) -> None:
    supervise.finish(job, {"code": 0, "reason": "exited", "seconds": 1.0, "killed": 0})


def send(job: Job, *globs: str) -> None:
    limits = {"max_bytes": 1 << 30, "output_limit": 1 << 30, "max_files": 100}
    pack.pack(job, {"globs": list(globs), "have": {}, **limits}, io.BytesIO())
    packed = job.read(pack.PACKED)
    assert packed is not None
    job.write(pack.PACKED, {**packed, "at": float(str(packed["at"])) + 1})  # after what was written in this very moment


def write_later(path: Path, data: bytes, mode: str = "wb") -> None:
    """Write a file as a script does some seconds after the start."""
    with path.open(mode) as file:
        file.write(data)
    later = path.stat().st_mtime_ns + 2 * 10**9
    os.utime(path, ns=(later, later))


def test_store_stays_when_a_script_writes_to_its_files(store_folder: Path) -> None:
    job, work = begin("20260101-000000-otter")
    write_later(work / "big", b"1", "r+b")
    write_later(work / "model.pt", b"2" * BIG)
    end(job)
    assert {(store_folder / key).read_bytes() for key in ("b-1", "b-2")} == {b"0" * BIG}
    assert (work / "big").read_bytes()[:2] == b"10"
    assert (work / "model.pt").read_bytes() == b"2" * BIG
    _, next_work = begin("20260101-000001-heron")
    assert (next_work / "big").read_bytes() == b"0" * BIG


def test_finish_links_files_that_a_run_left_unchanged(store_folder: Path) -> None:
    for second in range(3):
        job, work = begin(f"20260101-00000{second}-otter")
        assert (work / "big").stat().st_ino != (store_folder / "b-1").stat().st_ino, "a copy, while the script may write to it"
        end(job)
        assert (work / "big").samefile(store_folder / "b-1")
        assert not (work / "small.py").samefile(store_folder / "s-3")
        assert (work / "big").stat().st_mode & 0o222 == 0
    assert (store_folder / "b-1").stat().st_nlink == 4


def test_finish_keeps_a_changed_file_with_an_old_date(store_folder: Path) -> None:
    job, work = begin("20260101-000000-otter")
    os.utime(job.path("started"), (time.time() - 60, time.time() - 60))
    (work / "big").write_bytes(b"1" * BIG)
    os.utime(work / "big", (1_600_000_000, 1_600_000_000))  # as `cp -p` of another file does
    end(job)
    assert (work / "big").read_bytes() == b"1" * BIG
    assert (store_folder / "b-1").stat().st_nlink == 1


def test_prune_removes_collected_runs_but_the_newest(store_folder: Path) -> None:
    ids = [f"20260101-00000{second}-otter" for second in range(prune.KEPT + 2)]
    for run_id in ids:
        job, _ = begin(run_id)
        write_later(Path(job.path("outputs", "metrics.json")), b"{}")
        os.utime(job.path("outputs", "metrics.json"))
        end(job)
        send(job)
    removed = store_folder.parent / "jobs" / ".removed-20250101-000000-otter"
    removed.mkdir()
    prune.prune(ids[1:])
    there = {path.name for path in (store_folder.parent / "jobs").iterdir()}
    assert there == {*ids} - {ids[1]}, "the first is not collected, the newest stay, and a half-removed one is removed"


UNSENT = [
    "never sent",
    "not ended",
    "an output since",
    "an output with an old date since",
    "a file in the work folder",
    "a link",
    "later jobs",
]


@pytest.mark.parametrize("why", UNSENT)
def test_prune_keeps_a_run_with_anything_that_is_not_collected(store_folder: Path, why: str) -> None:
    job, work = begin("20260101-000000-otter")
    newer = [f"20260101-00000{second}-heron" for second in range(1, prune.KEPT + 1)]
    for run_id in newer:
        Path(Job(run_id).folder).mkdir()
    if why == "a link":
        Path(job.path("outputs", "link")).symlink_to("/etc/passwd")
    if why == "a file in the work folder":
        write_later(work / "checkpoint.pt", b"x")
    if why != "not ended":
        end(job)
    if why != "never sent":
        send(job, "*.csv")
    if why == "an output since":
        write_later(Path(job.path("outputs", "late")), b"x")
    if why == "an output with an old date since":
        job.write(pack.PACKED, {**(job.read(pack.PACKED) or {}), "at": time.time() - 60})
        Path(job.path("outputs", "restored")).write_bytes(b"x")
        os.utime(job.path("outputs", "restored"), (1_600_000_000, 1_600_000_000))  # as `cp -p` does
    if why == "later jobs":
        job.write("exit.json", {"later": [{"job": "7"}]})
    prune.prune(["20260101-000000-otter", *newer])
    assert work.exists()
    if why == "later jobs":
        job.write("exit.json", {"later": []})
        prune.prune(["20260101-000000-otter", *newer])
        assert not work.exists()
