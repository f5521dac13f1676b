"""A tar that is written as a stream, as other programs read it."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

from gpucourse.remote.agent.tar import PIECE, make_member, write_tar


def test_write_tar_joins_small_pieces(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x")
    contents = {"a": b"1", "d/" * 80 + "long": b"22" * 600, "odd\udcff": b"", "large": bytes(3 * PIECE)}
    members = [(make_member(name, len(content), file.stat()), (content,)) for name, content in contents.items()]
    pieces = list(write_tar(members))
    assert len(pieces) == 2, "one with the large file, and the end"
    with tarfile.open(fileobj=io.BytesIO(b"".join(pieces))) as tar:
        assert {member.name: tar.extractfile(member).read() for member in tar} == contents  # type: ignore[union-attr]
        assert {member.pax_headers["mtime"].replace(".", "") for member in tar} == {str(file.stat().st_mtime_ns)}
        assert {member.mode for member in tar} == {0o644}
