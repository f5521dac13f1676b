from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpucourse.ui.out import Out
from tests.waiting import STUCK_S


def test_write_raises_nothing_when_the_reader_has_left() -> None:
    read, write = os.pipe()
    with os.fdopen(write, "w", encoding="utf-8") as stream:
        out = Out(stream)
        os.close(read)
        out.write("nobody hears this\n")
        assert out.closed
        out.write("nor this\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_write_raises_once_on_a_full_disk() -> None:
    with Path("/dev/full").open("w") as stream:
        out = Out(stream)
        with pytest.raises(OSError, match="No space"):
            out.write("x")
        out.write("silent now")
        assert out.closed


def test_write_replaces_signs_that_the_encoding_lacks() -> None:
    raw = io.BytesIO()
    out = Out(io.TextIOWrapper(raw, encoding="ascii"))
    out.write("✓ done – “well” … → 5 × 日\n")
    assert raw.getvalue() == b'+ done - "well" ... -> 5 x ?\n'


def test_out_ends_the_interpreter_quietly_when_its_reader_has_left() -> None:
    script = (
        "import sys\nfrom gpucourse.ui.out import Out\nout = Out(sys.stdout)\n"
        "while not out.closed:\n    out.write('line\\n' * 1000)\nsys.stdout.write('once more')\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.read(10)
        child.stdout.close()
        assert child.stderr.read() == b""
        assert child.wait(STUCK_S) == 0
