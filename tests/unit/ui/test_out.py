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


def test_a_reader_that_left_is_no_error() -> None:
    read, write = os.pipe()
    with os.fdopen(write, "w", encoding="utf-8") as stream:
        out = Out(stream)
        os.close(read)
        out.write("nobody hears this\n")
        assert out.closed
        out.write("nor this\n")


def test_a_closed_stream_is_no_error() -> None:
    stream = io.StringIO()
    out = Out(stream)
    stream.close()
    out.write("late")
    assert out.closed


def test_a_number_that_belongs_to_another_file_by_now_is_left_alone(tmp_path: Path) -> None:
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
def test_a_full_disk_is_told_once() -> None:
    with Path("/dev/full").open("w") as stream:
        out = Out(stream)
        with pytest.raises(OSError, match="No space"):
            out.write("x")
        out.write("silent now")
        assert out.closed


def test_everything_arrives_through_a_pipe_that_does_not_block() -> None:
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


def test_an_encoding_without_our_signs_gets_others() -> None:
    raw = io.BytesIO()
    out = Out(io.TextIOWrapper(raw, encoding="ascii"))
    out.write("✓ done – “well” … → 5 × 日\n")
    assert raw.getvalue() == b'+ done - "well" ... -> 5 x ?\n'


def test_threads_do_not_tear_each_others_lines() -> None:
    read, write = os.pipe()
    got: list[str] = []

    def read_all() -> None:
        with os.fdopen(read, encoding="utf-8") as pipe:
            got.extend(pipe.read().splitlines())

    reader = threading.Thread(target=read_all)
    reader.start()
    with os.fdopen(write, "w", encoding="utf-8") as stream:
        out = Out(stream)
        words = [str(number) * 3000 for number in range(8)]

        def write_lines(word: str) -> None:
            for _ in range(50):
                out.write(f"{word}\n")

        writers = [threading.Thread(target=write_lines, args=(word,)) for word in words]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
    reader.join(STUCK_S)
    assert sorted(got) == sorted(words * 50)


def test_the_interpreter_ends_quietly_after_its_reader_left() -> None:
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
