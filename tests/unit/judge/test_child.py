from __future__ import annotations

import os

from gpucourse.judge.apart import Requests


def test_main_reads_requests_line_by_line_however_the_pipe_cuts_them() -> None:
    reader, writer = os.pipe()
    requests = Requests(reader)
    os.write(writer, b'{"part": 1}\n{"part"')
    assert requests.read() == {"part": 1}
    os.write(writer, b": 2}\n")
    assert not requests.have_ended(), "it keeps what it has read"
    assert requests.read() == {"part": 2}
    os.close(writer)
    assert requests.have_ended()
    assert requests.read() is None
    os.close(reader)
