"""Which packages a node has: what the names of folders say, and what they do not."""

from __future__ import annotations

import os
import platform
import socket
import sys
from pathlib import Path

import pytest

from gpucourse.remote.agent import machine
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


def test_free_ports_leaves_out_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = server.getsockname()[1]
        assert machine.free_ports(taken, taken, 1) == []
        assert len(machine.free_ports(20000, 60000, 2)) == 2


def test_gpus_are_what_nvidia_smi_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert machine.gpus() == []
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho '0, Tesla T4'\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    [gpu] = machine.gpus()
    assert list(gpu.values())[:2] == ["0", "Tesla T4"]


def test_describe_has_the_software_and_the_interfaces_of_the_machine() -> None:
    facts = machine.describe(sys.executable)
    assert facts["python"] == platform.python_version()
    assert facts["interfaces"]["lo"] == "127.0.0.1"
    assert facts["cores"] == os.cpu_count()
