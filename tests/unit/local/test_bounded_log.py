"""The log of the host."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from gpucourse.local import bounded_log


def test_log_keeps_its_newest_part(tmp_path: Path) -> None:
    file = tmp_path / "host.log"
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    log = bounded_log.BoundedLog(handle)
    for number in range(12_000):
        log.emit(logging.LogRecord("host", logging.WARNING, "", 0, "line %d of many", (number,), None))
    os.close(handle)
    lines = file.read_text().splitlines()
    assert file.stat().st_size < 1 << 19
    assert lines[-1].endswith("WARNING host: line 11999 of many")
    assert all("WARNING host: line" in line for line in lines), "no line is cut"
    assert len(lines) > 1000
