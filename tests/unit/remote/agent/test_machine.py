"""Which packages a node has, and which versions of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gpucourse.remote.agent.machine import find_installed


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that Python takes packages from."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def _find(name: str) -> str | None:
    return find_installed(sys.executable, [name], versions=True)[name]


@pytest.mark.parametrize(
    ("file", "version"),
    [
        ("madeup-2.3.0+cu121.dist-info/METADATA", "2.3.0+cu121"),
        ("MadeUp-1!2.0rc1.dist-info/METADATA", "1!2.0rc1"),
        ("madeup.egg-info/PKG-INFO", "2.5.0a0"),
        ("madeup_more-1.0.dist-info/METADATA", ""),
    ],
)
def test_find_installed_reads_the_version_of_a_package(place: Path, file: str, version: str) -> None:
    (place / "madeup.py").touch()
    (place / file).parent.mkdir()
    (place / file).write_text(f"Metadata-Version: 2.1\nName: madeup\nVersion: {version}\n")
    assert _find("madeup") == version


def test_find_installed_gives_a_missing_package_no_version(place: Path) -> None:
    (place / "madeup-1.0.dist-info").mkdir()
    assert _find("madeup") is None
