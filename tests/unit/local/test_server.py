"""The host keys of the SSH server. Its sessions are tested in the contract of all transports and in the system tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.local.server import make_host_key, public_part


def test_make_host_key_writes_a_private_file(tmp_path: Path) -> None:
    key = tmp_path / "key"
    make_host_key(key)
    assert key.stat().st_mode & 0o777 == 0o600
    assert public_part(key).startswith("ssh-ed25519 ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["key"]


def test_public_part_refuses_what_is_no_key(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("nothing")
    with pytest.raises(ValueError, match="key: "):
        public_part(tmp_path / "key")
