"""Reading a tar as it arrives: it is limited in every way, and nothing waits beyond its end."""

from __future__ import annotations

import io
import itertools
import tarfile

import pytest

from gpucourse.outside.archives import TarReader
from gpucourse.outside.names import OutsideError


def tar_of(*members: tuple[str, bytes], **fields: object) -> bytes:
    file = io.BytesIO()
    with tarfile.TarFile(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            for key, value in fields.items():
                setattr(member, key, value)
            tar.addfile(member, io.BytesIO(content))
    return file.getvalue()


def reader(data: bytes, *, members: int = 10, total: int = 1 << 20) -> TarReader:
    return TarReader([data[:700], b"", data[700:]], max_members=members, max_total=total)


def everything(tar: TarReader) -> list[tuple[str, bytes]]:
    return [(member.name, b"".join(tar.pieces())) for member in tar]


def header(name: str = "x", size: int = 0, kind: bytes = tarfile.REGTYPE) -> bytes:
    member = tarfile.TarInfo(name)
    member.size, member.type = size, kind
    return member.tobuf(tarfile.GNU_FORMAT)


def test_pieces_are_what_tarfile_writes() -> None:
    members = [("a", b"1"), ("d/" * 80 + "long", b"22" * 600), ("ü" * 90, b""), ("odd\udcff", b"3"), ("block", b"4" * 512)]
    tar = reader(tar_of(*members, mode=0o755, pax_headers={"mtime": "1700000000.000000017"}))
    read = [(m.name, m.size, m.kind, m.mode, m.changed_ns, b"".join(tar.pieces())) for m in tar]
    entries = [(n.replace("\udcff", "\\xff"), len(c), "file", 0o755, 1700000000_000000017, c) for n, c in members]
    assert read == entries


@pytest.mark.parametrize(
    ("kind", "output"),
    [(tarfile.SYMTYPE, "link"), (tarfile.LNKTYPE, "link"), (tarfile.FIFOTYPE, "other"), (b"Z", "other")],
)
def test_content_is_none_for_what_is_no_file(kind: bytes, output: str) -> None:
    (member,) = reader(tar_of(("x", b""), type=kind, linkname="/etc/passwd"))
    assert member.kind == output
    assert member.link == "/etc/passwd"


def pax(record: bytes) -> bytes:
    return header(size=len(record), kind=b"x") + record.ljust(-(-len(record) // 512) * 512, b"\0")


def mend_checksum(block: bytearray) -> bytes:
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def with_size(size: bytes) -> bytes:
    block = bytearray(header())
    block[124:136] = size
    return mend_checksum(block)


LIES = {
    "nothing": b"",
    "noise": b"no tar at all" * 100,
    "less content than announced": header(size=1000) + bytes(512),
    "size 2^60, then zeros": header(size=1 << 60) + bytes(1 << 16),
    "size 2^88": with_size(b"\x80" + b"\xff" * 11),
    "a negative size": with_size(b"\xff" * 12),
    "a wrong checksum": b"y" + header()[1:],
    "a large extended header": header(size=1 << 17, kind=b"x") + bytes(1 << 17),
    "chained extended headers": pax(b"9 path=a\n") * 3000 + header() + bytes(1024),
    "an extended header without a file": pax(b"9 path=a\n") + bytes(1024),
    "a global header": header(size=9, kind=b"g") + b"9 path=a\n".ljust(512, b"\0") + header() + bytes(1024),
    "an extended size of 2^70": pax(b"31 size=1180591620717411303424\n") + header() + bytes(1024),
    "more files than the limit": tar_of(*((str(number), b"") for number in range(11))),
    "more bytes than the limit": tar_of(("a", bytes(1 << 19)), ("b", bytes((1 << 19) + 1))),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("lie", LIES)
def test_pieces_of_a_wrong_tar_raise_one_error(lie: str) -> None:
    with pytest.raises(OutsideError) as caught:
        everything(reader(LIES[lie]))
    assert str(caught.value).isprintable()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("member", [header(), header(size=1 << 18) + bytes(1 << 18), header(kind=b"L", size=512) + bytes(512)])
def test_pieces_end_at_the_limit_when_a_tar_never_ends(member: bytes) -> None:
    tar = TarReader(itertools.repeat(member), max_members=500, max_total=1 << 20)
    with pytest.raises(OutsideError):
        everything(tar)
