"""The command `open`: where the page is written."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.learning import Learning


def test_open_with_a_tilde_after_the_equals_sign_writes_into_the_home_folder(
    learning: Learning, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell replaces `~` at the beginning of a word only."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    learning.types("open", "--out=~/page", "--no-browser")
    assert (tmp_path / "page" / "index.html").is_file()
    assert not (tmp_path / "~").exists()


def test_open_without_a_browser_says_where_the_page_is(learning: Learning, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    result = learning.types("open")
    assert result.out == f"{learning.workspace}/page/index.html\n"
    assert "gpucourse open --serve" in result.err or sys.platform == "darwin"
