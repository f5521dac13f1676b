"""Helpers for tests of real Terraform: small stacks in a folder of the test, and a second process that can be killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpucourse.errors import MissingError
from gpucourse.model.event import Event, Note, ResourceEvent
from gpucourse.provision.binary import TerraformBinary, find_terraform
from gpucourse.provision.stack import TerraformStack
from gpucourse.workspace.paths import StackPaths
from tests.waiting import STUCK_S

STACKS = Path(__file__).parent.parent / "data" / "stacks"


def any_terraform() -> TerraformBinary:
    """Return the Terraform of this machine. Skip the test without one."""
    try:
        return find_terraform(os.environ)
    except MissingError as error:
        pytest.skip(error.what)


class Lab:
    """Stacks of the template `pair` in one folder. `do` gives a node instructions for its start (see pair/node.py)."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.binary = any_terraform()
        self.events: list[Event] = []

    def stack(self, name: str = "03-local", *, nodes: int = 2, template: Path | None = None, **options: Any) -> TerraformStack:
        marks = self.root / "marks" / name
        marks.mkdir(parents=True, exist_ok=True)
        variables = {"node_count": nodes, "python": sys.executable, "folder": str(marks)}
        settings = {"binary": self.binary, "lock_wait_s": STUCK_S, **options}
        return TerraformStack(
            paths=StackPaths(self.root / "stacks" / name), template=template or STACKS / "pair", variables=variables, **settings
        )

    def mark(self, node: int, ending: str, stack: str = "03-local") -> Path:
        return self.root / "marks" / stack / f"node{node}.{ending}"

    def do(self, node: int, *lines: str, stack: str = "03-local", on: str = "do") -> None:
        self.mark(node, on, stack).parent.mkdir(parents=True, exist_ok=True)
        self.mark(node, on, stack).write_text("\n".join(lines), encoding="utf-8")

    def forget(self, node: int, stack: str = "03-local") -> None:
        for ending in ("do", "undo", "here", "go"):
            self.mark(node, ending, stack).unlink(missing_ok=True)

    def list_resources(self, stack: str = "03-local") -> list[str]:
        return sorted(path.stem for path in (self.root / "marks" / stack).glob("*.up"))

    def watch(self, event: Event) -> None:
        self.events.append(event)

    def notes(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Note)]

    def list_resource_events(self, state: str) -> list[tuple[str, str]]:
        return [(e.action, e.address) for e in self.events if isinstance(e, ResourceEvent) and e.state == state]

    def elsewhere(self, action: str, name: str = "03-local", *, nodes: int = 2) -> subprocess.Popen[bytes]:
        """Run `action` (up or down) on the same stack in another process, and return the process. Its output goes to
        `output_file`.
        """
        self.stack(name)  # makes the folder for the marks
        stream = self.output_file.open("wb")
        with stream:
            return subprocess.Popen(
                [sys.executable, str(STACKS / "drive.py"), action, str(self.root), name, str(nodes)],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def output_file(self) -> Path:
        return self.root / "said.txt"
