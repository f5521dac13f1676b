from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from gpucourse.ui.pager import show_in_pager
from tests.learning import Terminal


@pytest.mark.parametrize(
    ("pager", "keyboard", "shown"),
    [
        ("tee {file}", True, True),
        ("tee {file}", False, False),
        ("cat", True, False),
        ("no-pager", True, False),
        ("{broken}", True, False),
    ],
)
def test_show_in_pager_needs_a_keyboard_and_a_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pager: str, keyboard: bool, shown: bool
) -> None:
    file, broken = tmp_path / "text", tmp_path / "broken"
    broken.touch(mode=0o755)
    if keyboard:
        monkeypatch.setattr(sys, "stdin", Terminal())
    assert show_in_pager("a\nb\n", {"PAGER": pager.format(file=file, broken=broken), "PATH": os.environ["PATH"]}) == shown
    assert file.exists() == shown
