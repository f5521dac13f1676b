"""The process of a session, on pipes or on a terminal."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from gpucourse.local.child import Terminal, start
from gpucourse.local.pumps import read_some


@pytest.mark.parametrize(
    ("terminal", "size"),
    [
        (None, b"no size"),
        (Terminal(kind="xterm", columns=100, rows=30), b"30 100"),
        (Terminal(kind="", columns=0, rows=0), b"24 80"),
    ],
)
def test_start_gives_a_terminal_of_the_requested_size(tmp_path: Path, terminal: Terminal | None, size: bytes) -> None:
    async def read() -> list[bytes]:
        command = ["sh", "-c", "stty size 2>/dev/null || echo no size; cat; pwd"]
        child = await start(command, environment=dict(os.environ), cwd=tmp_path, terminal=terminal)
        await child.end_input()
        output = b""
        while piece := await read_some(child.stdout):
            output += piece
        await child.process.wait()
        child.close()
        return output.split(b"\r\n" if terminal else b"\n")

    lines = asyncio.run(read())
    assert (lines[0], lines[1].lstrip(b"^D\b")) == (size, os.fsencode(tmp_path))
