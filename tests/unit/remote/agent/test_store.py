"""Uploaded files in a node's store, and their copies in the folders of runs."""

from __future__ import annotations

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
