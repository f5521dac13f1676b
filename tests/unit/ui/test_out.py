from __future__ import annotations

import fcntl
import io
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gpucourse.ui.out import Out
from tests.waiting import STUCK_S


def test_write_is_no_error_when_the_reader_has_left() -> None:
    read, write = os.pipe()
    with os.fdopen(write, "w", encoding="utf-8") as stream:
        out = Out(stream)
        os.close(read)
        out.write("nobody hears this\n")
        assert out.closed
        out.write("nor this\n")


def test_write_leaves_a_descriptor_alone_that_was_given_out_again(tmp_path: Path) -> None:
    stream = (tmp_path / "first").open("w")
    out = Out(stream)
    number = stream.fileno()
    stream.close()
    other = os.open(tmp_path / "second", os.O_WRONLY | os.O_CREAT)
    assert other == number, "this test needs the number to be given out again"
    try:
        out.write("for the first")
        os.write(other, b"still mine")
    finally:
        os.close(other)
    assert (tmp_path / "second").read_text() == "still mine"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_write_raises_once_on_a_full_disk() -> None:
    with Path("/dev/full").open("w") as stream:
        out = Out(stream)
        with pytest.raises(OSError, match="No space"):
            out.write("x")
        out.write("silent now")
        assert out.closed


def test_write_through_a_pipe_that_does_not_block() -> None:
    read, write = os.pipe()
    os.set_blocking(write, False)
    assert fcntl.fcntl(write, fcntl.F_GETFL) & os.O_NONBLOCK
    got: list[bytes] = []

    def read_all() -> None:
        with os.fdopen(read, "rb") as pipe:
            got.append(pipe.read())

    reader = threading.Thread(target=read_all)
    with os.fdopen(write, "w", encoding="utf-8") as stream:
        out = Out(stream)
        reader.start()
        out.write("x" * (1 << 20))
    reader.join(STUCK_S)
    assert len(got[0]) == 1 << 20


def test_write_replaces_signs_that_the_encoding_lacks() -> None:
    raw = io.BytesIO()
    out = Out(io.TextIOWrapper(raw, encoding="ascii"))
    out.write("✓ done – “well” … → 5 × 日\n")
    assert raw.getvalue() == b'+ done - "well" ... -> 5 x ?\n'


def test_interpreter_ends_quietly_when_its_reader_has_left() -> None:
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
