from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpucourse.figures.cache import cache_elsewhere


@pytest.mark.parametrize("home", ["", "/", "/no/such/home", "somewhere", "/etc/passwd"])
def test_cache_elsewhere_is_a_folder_of_this_user_alone(home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = tmp_path / f"gpucourse-matplotlib-{os.getuid()}"
    assert cache_elsewhere({"HOME": home}) == folder
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)  # another user could put a file there
    assert cache_elsewhere({"HOME": home}) not in {folder, None}


def test_cache_elsewhere_is_none_if_matplotlib_can_write_at_home(tmp_path: Path) -> None:
    assert cache_elsewhere({"HOME": str(tmp_path)}) is None
