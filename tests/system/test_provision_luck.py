"""Bad luck around Terraform: a full disk, a folder that cannot be written, a strange path."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpucourse.errors import ExitCode, StorageError
from tests.system.provisioning import Lab

pytestmark = pytest.mark.system

NOISE = 20_000  # lines of 100 bytes


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 4 MiB; skips where this machine does not let us mount one."""
    where = tmp_path / "disk"
    where.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(where)], capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a small disk: {mounted.stderr.decode(errors='replace').strip()}")
    yield where
    subprocess.run(["umount", str(where)], check=True)


def fill(disk: Path, *, leave: int) -> Path:
    """Fill the disk up to `leave` bytes."""
    filler = disk / "filler"
    free = os.statvfs(disk)
    filler.write_bytes(bytes(max(0, free.f_bavail * free.f_frsize - leave)))
    return filler


def test_up_and_down_find_a_full_disk_before_anything_changes(lab: Lab, small_disk: Path) -> None:
    lab.root = small_disk
    stack = lab.stack()
    filler = fill(small_disk, leave=256 << 10)
    with pytest.raises(StorageError, match="no space left") as caught:
        stack.up()
    assert "df -h" in caught.value.hint
    assert caught.value.exit_code == ExitCode.MISSING
    assert lab.list_resources() == []
    filler.unlink()
    assert len(lab.stack().up().nodes) == 2
    filler = fill(small_disk, leave=256 << 10)
    with pytest.raises(StorageError, match="no space left"):
        lab.stack().down()
    assert lab.list_resources() == ["node0", "node1"]
    filler.unlink()
    assert len(lab.stack().down()) == 4


def test_up_loses_nothing_when_the_disk_fills_up(lab: Lab, small_disk: Path) -> None:
    lab.root = small_disk
    lab.do(1, f"say {NOISE}")  # its output, wrapped by Terraform, is far more than the disk takes
    with pytest.raises(StorageError, match=r"no space left .* what it had built is recorded"):
        lab.stack().up()
    assert "terraform_data.node[0]" in lab.stack().addresses()
    lab.forget(1)
    for log in small_disk.rglob("terraform-*.log"):
        log.unlink()
    assert len(lab.stack().up().nodes) == 2
    assert len(lab.stack().down()) == 4
    assert lab.list_resources() == []


def test_up_and_down_in_a_folder_of_a_strange_name(tmp_path: Path) -> None:
    name = '-a "quote\'s" ünï-节点-🚀 $(touch x) `id` %d ${path.module}\nb'
    lab = Lab(tmp_path / name)
    assert len(lab.stack(name).up().nodes) == 2
    assert lab.list_resources(name) == ["node0", "node1"]
    assert len(lab.stack(name).down()) == 4
    assert lab.list_resources(name) == []
