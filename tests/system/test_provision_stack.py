"""A stack with real Terraform: plan, build, change, fail, remove. Each test has a folder of its own."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpucourse.errors import ExitCode, MissingError, StorageError, TerraformFailed
from gpucourse.model.event import Event
from tests.system.provisioning import STACKS, Lab

pytestmark = pytest.mark.system


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Yield a disk of 4 MiB. Skip the test if this machine does not allow mounting one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(disk)], capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a small disk: {mounted.stderr.decode(errors='replace').strip()}")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_plan_up_and_down(lab: Lab) -> None:
    stack = lab.stack()
    assert not stack.exists()
    changes = stack.plan(lab.watch)
    assert sorted(changes) == [("create", f"terraform_data.{kind}[{index}]") for kind in ("node", "slot") for index in (0, 1)]
    assert lab.list_resources() == []
    assert not stack.exists()

    inventory = stack.up(lab.watch)

    assert [(node.name, node.role, node.port) for node in inventory.nodes] == [
        ("node0", "head", 20000),
        ("node1", "worker", 20001),
    ]
    assert inventory.stack == "03-local"
    assert lab.list_resources() == ["node0", "node1"]
    assert (
        sorted(lab.list_resource_events("planned"))
        == sorted(lab.list_resource_events("started"))
        == sorted(lab.list_resource_events("done"))
        == sorted(changes)
    )
    assert stack.exists()
    assert sorted(stack.addresses()) == sorted(address for _, address in changes)
    assert stat.S_IMODE(stack.paths.terraform.stat().st_mode) == 0o700
    assert stat.S_IMODE(stack.paths.variables.stat().st_mode) == 0o600
    assert stat.S_IMODE(stack.paths.terraform_log("apply").stat().st_mode) == 0o600
    assert not stack.paths.plan_file.exists()

    assert lab.stack().plan() == []
    assert lab.stack().up() == inventory
    assert lab.stack(nodes=3).plan() == [("create", "terraform_data.slot[2]"), ("create", "terraform_data.node[2]")]
    assert len(lab.stack(nodes=3).up().nodes) == 3
    assert lab.stack(nodes=2).up() == inventory

    assert sorted(lab.stack().down(lab.watch)) == sorted(address for _, address in changes)
    assert lab.list_resources() == []
    assert not stack.exists()
    assert lab.stack().down() == []


def test_up_applies_what_was_planned_unless_the_variables_changed(lab: Lab) -> None:
    stack = lab.stack(nodes=1)
    changes = stack.plan(lab.watch)
    stack.paths.variables.write_text(json.dumps({**stack.variables, "node_count": 3}), encoding="utf-8")
    assert [node.name for node in stack.up(lab.watch).nodes] == ["node0"]
    assert sorted(lab.list_resource_events("done")) == sorted(changes)
    second_stack = lab.stack("05-local", nodes=3)
    second_stack.plan()
    second_stack.variables = {**second_stack.variables, "node_count": 1}
    second_stack.prepare()
    assert len(second_stack.up().nodes) == 1


def test_up_names_a_node_that_fails_and_keeps_the_rest(lab: Lab) -> None:
    lab.do(1, "fail port 2222 is taken \x1b[31m")
    with pytest.raises(TerraformFailed) as caught:
        lab.stack().up(lab.watch)
    error = caught.value
    assert error.address == "terraform_data.node[1]"
    assert "terraform apply failed at terraform_data.node[1]" in error.what
    assert "exit status 3" in error.what
    assert "port 2222 is taken \N{REPLACEMENT CHARACTER}[31m" in error.what
    assert "gpucourse destroy" in error.hint
    assert error.exit_code == ExitCode.INFRASTRUCTURE
    assert error.log is not None
    assert "port 2222 is taken" in error.log.read_text(encoding="utf-8")
    assert lab.list_resource_events("failed") == [("create", "terraform_data.node[1]")]
    assert lab.list_resources() == ["node0"]

    lab.forget(1)
    assert len(lab.stack().up().nodes) == 2
    lab.stack().down()
    assert lab.list_resources() == []


def test_stack_keeps_its_own_files_as_long_as_it_exists(lab: Lab, tmp_path: Path) -> None:
    template = tmp_path / "template"
    shutil.copytree(STACKS / "pair", template)
    lab.stack(template=template).up()
    (template / "main.tf").write_text('output "nodes" { value = "a newer course" }\n', encoding="utf-8")
    assert lab.stack(template=template).plan() == []
    shutil.rmtree(template)
    assert len(lab.stack(template=template).up().nodes) == 2
    assert len(lab.stack(template=template).down()) == 4
    with pytest.raises(MissingError, match="Terraform files are missing"):
        lab.stack(template=template).plan()
    assert len(lab.stack().up().nodes) == 2


def test_down_restores_lost_files_next_to_their_state(lab: Lab) -> None:
    stack = lab.stack()
    stack.up()
    for path in (stack.paths.terraform / "main.tf", stack.paths.variables):
        path.unlink()
    assert len(lab.stack().down(lab.watch)) == 4
    assert lab.list_resources() == []
    assert any("lost its Terraform files" in note for note in lab.notes())


def test_up_waits_for_terraform_when_its_watcher_fails(lab: Lab) -> None:
    def break_pipe(event: Event) -> None:
        raise BrokenPipeError("nobody reads")

    stack = lab.stack()
    stack.plan()
    with pytest.raises(BrokenPipeError, match="nobody reads"):
        stack.up(break_pipe)
    assert lab.list_resources() == ["node0", "node1"]
    assert len(lab.stack().addresses()) == 4


def test_down_recovers_a_state_that_could_not_be_stored(lab: Lab) -> None:
    stack = lab.stack()
    stack.up()
    stack.paths.state.rename(stack.paths.error_state)
    assert stack.exists()
    assert len(lab.stack().down(lab.watch)) == 4
    assert lab.list_resources() == []
    assert any("recovered the state" in note for note in lab.notes())


def test_up_loses_nothing_when_the_disk_fills_up(lab: Lab, small_disk: Path) -> None:
    lab.root = small_disk
    lab.do(1, "say 20000")  # its output, wrapped by Terraform, is far larger than the disk
    with pytest.raises(StorageError, match=r"no space left .* what it had built is recorded"):
        lab.stack().up()
    assert "terraform_data.node[0]" in lab.stack().addresses()
    lab.forget(1)
    for log in small_disk.rglob("terraform-*.log"):
        log.unlink()
    assert len(lab.stack().up().nodes) == 2
    assert len(lab.stack().down()) == 4
    assert lab.list_resources() == []
