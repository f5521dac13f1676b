"""Which packages a node has: what the names of folders say, and what they do not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gpucourse.remote.agent.machine import find_installed

REFUSING = """
import os
listdir = os.listdir
def refuse(folder="."):
    if str(folder).endswith("closed"):
        raise PermissionError(13, "Permission denied", folder)
    return listdir(folder)
os.listdir = refuse
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that Python takes packages from."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def _find(name: str) -> dict[str, object]:
    return find_installed(sys.executable, [name], versions=True)[name]


@pytest.mark.parametrize(
    ("folder", "version"),
    [
        ("madeup-2.3.0+cu121.dist-info", "2.3.0+cu121"),
        ("MadeUp-1!2.0rc1.dist-info", "1!2.0rc1"),
        ("madeup-2.4.0a0_git1-py3.11.egg-info", "2.4.0a0_git1"),
        ("madeup-2.4.0a0_git1-py3.11-linux-x86_64.egg-info", "2.4.0a0_git1"),
        ("~adeup-1.0.dist-info", ""),
        ("madeup_more-1.0.dist-info", ""),
        ("madeup-1.0.zip", ""),
    ],
)
def test_find_installed_reads_the_version_in_the_name_of_a_folder(place: Path, folder: str, version: str) -> None:
    (place / "madeup.py").touch()
    (place / folder).mkdir()
    assert _find("madeup") == {"found": True, "version": version}


def test_find_installed_reads_the_version_of_an_editable_package(place: Path) -> None:
    (place / "madeup.py").touch()
    (place / "madeup.egg-info").mkdir()
    (place / "madeup.egg-info" / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: madeup\nVersion: 2.5.0a0\n")
    assert _find("madeup") == {"found": True, "version": "2.5.0a0"}


def test_find_installed_looks_beyond_a_folder_that_it_cannot_list(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "madeup.py").touch()
    (place / "madeup-1.0.dist-info").mkdir()
    (place / "sitecustomize.py").write_text(REFUSING)
    (place / "closed").mkdir()
    monkeypatch.setenv("PYTHONPATH", f"{place / 'closed'}:{place}")
    assert _find("madeup") == {"found": True, "version": "1.0"}


def test_find_installed_gives_a_missing_package_no_version(place: Path) -> None:
    (place / "madeup-1.0.dist-info").mkdir()
    assert _find("madeup") == {"found": False, "version": ""}
