"""Uploaded files in a node's store: shared with the runs that do not write to them."""

from __future__ import annotations

import os
import time
from pathlib import Path

from tests.unit.remote.agent.stored import BIG, begin, end, write_later


def test_lay_out_copies_files_that_a_script_may_change(store_folder: Path) -> None:
    job, work = begin("20260101-000000-otter")
    write_later(work / "big", b"1", "r+b")
    write_later(work / "model.pt", b"2" * BIG)
    end(job)
    assert {(store_folder / key).read_bytes() for key in ("b-1", "b-2")} == {b"0" * BIG}
    assert (work / "big").read_bytes()[:2] == b"10"
    assert (work / "model.pt").read_bytes() == b"2" * BIG
    _, next_work = begin("20260101-000001-heron")
    assert (next_work / "big").read_bytes() == b"0" * BIG


def test_share_links_files_that_a_run_left_unchanged(store_folder: Path) -> None:
    for second in range(3):
        job, work = begin(f"20260101-00000{second}-otter")
        assert (work / "big").stat().st_ino != (store_folder / "b-1").stat().st_ino, "a copy, while the script may write to it"
        end(job)
        assert (work / "big").samefile(store_folder / "b-1")
        assert not (work / "small.py").samefile(store_folder / "s-3")
        assert (work / "big").stat().st_mode & 0o222 == 0
    assert (store_folder / "b-1").stat().st_nlink == 4


def test_share_keeps_a_changed_file_with_an_old_date(store_folder: Path) -> None:
    job, work = begin("20260101-000000-otter")
    os.utime(job.path("started"), (time.time() - 60, time.time() - 60))
    (work / "big").write_bytes(b"1" * BIG)
    os.utime(work / "big", (1_600_000_000, 1_600_000_000))  # as `cp -p` of another file does
    end(job)
    assert (work / "big").read_bytes() == b"1" * BIG
    assert (store_folder / "b-1").stat().st_nlink == 1
