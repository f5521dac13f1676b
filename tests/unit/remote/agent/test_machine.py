"""The packages of a node, and their versions."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from gpucourse.remote.agent import machine
from gpucourse.remote.agent.machine import find_installed


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder from which Python imports packages."""
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


def test_free_ports_leaves_out_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert machine.free_ports(port, port, 1) == []
        assert len(machine.free_ports(20000, 60000, 2)) == 2


def test_gpus_are_what_nvidia_smi_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert machine.gpus() == []
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho '0, Tesla T4'\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    [gpu] = machine.gpus()
    assert list(gpu.values())[:2] == ["0", "Tesla T4"]
