"""Edits of a file: the added and removed lines, and the reasons why a diff leaves them out."""

from __future__ import annotations

import pytest

from gpucourse.grading.edits import MAX_BYTES, MAX_LINES, compare_files


@pytest.mark.parametrize(
    ("new_bytes", "counts", "note"),
    [
        (b"a\nc\nd\n", (2, 1), ""),
        (b"a\r\nb\n", (0, 0), "only the line endings differ"),
        (b"a\nb\n" + b"x\n" * MAX_LINES, (MAX_LINES, 0), "5 more lines"),
        (bytes(MAX_BYTES + 1), (None, None), "larger than 1 MiB, so not compared"),
        (b"\n" * 20_001, (None, None), "more than 20000 lines, so not compared"),
    ],
)
def test_compare_files(new_bytes: bytes, counts: tuple[int | None, int | None], note: str) -> None:
    edit = compare_files("a.py", b"a\nb\n", new_bytes, part=False)
    assert ((edit.added, edit.removed), edit.note) == (counts, note)
