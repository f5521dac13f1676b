"""The files of a machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpucourse.local.machines import root


def test_write_replaces_a_file_only_if_it_changes(tmp_path: Path) -> None:
    path, owner = tmp_path / "key", (os.getuid(), os.getgid())
    assert root.write(str(path), "one", mode=0o400, owner=owner)
    assert not root.write(str(path), "one", mode=0o400, owner=owner)
    assert root.write(str(path), "two", mode=0o400, owner=owner)
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("two", 0o400)
    assert list(tmp_path.iterdir()) == [path]


def test_home_of_and_ids_read_the_numbers_of_a_user(tmp_path: Path) -> None:
    users = tmp_path / "passwd"
    users.write_text("munger:x:1:2::/:/bin/sh\nmunge:x:64029:64030::/:/bin/sh\n")
    assert root.ids("munge", str(users)) == (64029, 64030)
    with pytest.raises(OSError, match="has no user slurm"):
        root.ids("slurm", str(users))
    assert (root.home_of("root"), root.home_of("me")) == ("/root", "/home/me")
