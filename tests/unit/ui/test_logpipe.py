from __future__ import annotations

import io

from gpucourse.model.event import LogBytes
from gpucourse.ui.loglines import TABLE_MARKER
from gpucourse.ui.logpipe import LogPipe
from gpucourse.ui.out import Out


def piece(data: bytes, rank: int | None = 0, node: str = "node0") -> LogBytes:
    return LogBytes(node=node, rank=rank, data=data)


def test_feed_writes_every_line_with_its_prefix() -> None:
    text = io.StringIO()
    pipe = LogPipe(Out(text))
    pipe.feed(piece(b"one\ntw"))
    pipe.feed(piece(b"from the launcher\n", None, "node1"))
    pipe.feed(piece(b"o\n\nfour"))
    assert text.getvalue() == "[n0 r0] one\n[n1 --] from the launcher\n[n0 r0] two\n[n0 r0] \n"
    pipe.close()
    pipe.close()
    assert text.getvalue().endswith("[n0 r0] four\n")


def test_feed_escapes_bytes_that_are_not_text() -> None:
    text = io.StringIO()
    pipe = LogPipe(Out(text))
    pipe.feed(piece(b"\x1b[32mok\x1b[0m \xff\n10%\r50%\r100%\r\nb\x07\n caf\xc3"))
    pipe.feed(piece(b"\xa9\n"))
    assert text.getvalue().splitlines() == ["[n0 r0] ok \ufffd", "[n0 r0] 100%", "[n0 r0] b\\x07", "[n0 r0]  café"]


def test_feed_leaves_out_a_table_that_the_result_shows() -> None:
    """It does so wherever a piece ends. Hidden lines of launchers and libraries are counted; the lines of the table are not."""
    for prefix in (b"", b"rank 0: "):
        lines = [b"before", TABLE_MARKER, b"step ms", b"-------", b"    1.5", b"", b"after", b""]
        data = b"".join(prefix + line + b"\n" for line in lines)
        for cut in range(0, len(data), 7):
            text = io.StringIO()
            pipe = LogPipe(Out(text), fold=True)
            pipe.feed(piece(data[:cut]))
            pipe.feed(piece(data[cut:]))
            prefix_text = prefix.decode()
            assert text.getvalue() == f"[n0 r0] {prefix_text}before\n[n0 r0] {prefix_text}after\n[n0 r0] {prefix_text}\n"
            assert [source.folded for source in pipe.sources()] == [0]
