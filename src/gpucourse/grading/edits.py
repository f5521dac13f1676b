"""Diffs of limited size that show a learner's changes to the files of an exercise."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

MAX_BYTES = 1 << 20
"""The largest file, in bytes, that is compared line by line."""
MAX_LINES, MAX_LINE = 400, 200
"""The maximum number of lines in a diff, and of characters in a line."""
_MAX_COMPARED = 20_000  # lines: at worst, the time to compare grows with their square


@dataclass(frozen=True, kw_only=True)
class FileEdit:
    """One file that differs from the course's.

    `part`: whether the learner writes this file.
    `added` and `removed`: numbers of lines. They are None if the file could not be compared.
    `lines`: the unified diff, cut at `MAX_LINES`.
    `note`: what the diff leaves out.
    """

    file: str
    part: bool
    added: int | None
    removed: int | None
    lines: tuple[str, ...] = ()
    note: str = ""

    @property
    def changed_lines(self) -> int:
        """Return the number of added lines or of removed lines, whichever is larger."""
        return max(self.added or 0, self.removed or 0)


def compare_files(file: str, original: bytes, new_bytes: bytes, *, part: bool) -> FileEdit:
    """Return the edit of one file as a unified diff against the course's original."""
    original_lines, new_lines = (text.decode(errors="replace").splitlines() for text in (original, new_bytes))
    limit = ""
    if max(len(original), len(new_bytes)) > MAX_BYTES:
        limit = f"larger than {MAX_BYTES >> 20} MiB"
    elif max(len(original_lines), len(new_lines)) > _MAX_COMPARED:
        limit = f"more than {_MAX_COMPARED} lines"
    if limit:
        return FileEdit(file=file, part=part, added=None, removed=None, note=f"{limit}, so not compared")
    diff = list(difflib.unified_diff(original_lines, new_lines, f"course/{file}", f"learner/{file}", lineterm="", n=2))
    body = diff[2:]
    return FileEdit(
        file=file,
        part=part,
        added=sum(line.startswith("+") for line in body),
        removed=sum(line.startswith("-") for line in body),
        lines=tuple(line[:MAX_LINE] for line in diff[:MAX_LINES]),
        note=f"{len(diff) - MAX_LINES} more lines" if len(diff) > MAX_LINES else "" if body else "only the line endings differ",
    )


def count_script_lines(edits: dict[str, tuple[FileEdit, ...]]) -> int:
    """Count the changed lines of the course's own scripts in all exercises. Parts do not count, because learners write them."""
    return sum(edit.changed_lines for exercise in edits.values() for edit in exercise if not edit.part)
