"""Judge a repaired copy: before a cold read, the file must not be in the page cache."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from unittest import mock

from gpucourse.judge import Part, Way

WAYS = {"still": Way("the file stays in the page cache: then a cold read measures memory")}


def judge(part: Part) -> None:
    """Judge the advice to the kernel about the file."""
    forget = part.function("forget")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(bytes(4096))
        with mock.patch.object(os, "posix_fadvise") as advice:
            part.call(forget, path)
    if not any(call.args[3] == os.POSIX_FADV_DONTNEED for call in advice.call_args_list):
        raise part.wrong("still")
    part.note("the file is removed from the page cache")
