"""The subordinate user IDs that the system lends to a user."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from gpucourse.local.machines import userspace


def test_read_lent_ids_finds_the_numbers_of_an_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (file := tmp_path / "subuid").write_text("ada:100000:65536\n7:300000:65536\n")
    monkeypatch.setattr("pwd.getpwuid", lambda _number: SimpleNamespace(pw_name="ada"))
    assert userspace.read_lent_ids(str(file), 8) == (100_000, 65_536)
    accounts: dict[int, str] = {}
    monkeypatch.setattr("pwd.getpwuid", accounts.__getitem__)
    with pytest.raises(OSError, match="has no account on this computer"):
        userspace.read_lent_ids(str(file), 8)
