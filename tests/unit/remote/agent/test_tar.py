"""The headers of a tar, as the standard library reads them."""

from __future__ import annotations

import io
import tarfile

import pytest

from gpucourse.remote.agent.tar import END, header, pad


@pytest.mark.parametrize("name", ["files/a", "files/" + "n" * 250, "files/ünïcødé", "files/bad\udcff"])
def test_header_keeps_any_name(name: str) -> None:
    whole = header(name, 3, executable=True) + pad(b"abc") + END
    with tarfile.open(fileobj=io.BytesIO(whole)) as archive:
        [member] = archive.getmembers()
        file = archive.extractfile(member)
        assert file is not None
        assert (member.name, member.mode, file.read()) == (name, 0o755, b"abc")


def test_header_keeps_a_size_of_many_gigabytes() -> None:
    with tarfile.open(fileobj=io.BytesIO(header("big", 9 << 30) + END)) as archive:
        member = archive.next()
    assert member is not None
    assert (member.size, member.mode) == (9 << 30, 0o644)


def test_header_ends_with_the_nanoseconds_of_the_time() -> None:
    block = header("a", 0, mtime_ns=1_600_000_000_123_456_789)
    assert tarfile.TarInfo.frombuf(block, "utf-8", "strict").mtime == 1_600_000_000
    assert block.rstrip(b"\0").endswith(b"123456789")
    assert tarfile.TarInfo.frombuf(header("a", 0, mtime_ns=-1), "utf-8", "strict").mtime == 0
