"""A node of the course on a virtual machine: its set-up as Terraform renders it, reached by the program's own code."""

from __future__ import annotations

import gzip
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from gpucourse.aws import console
from gpucourse.aws.session import Account
from gpucourse.context import Context
from gpucourse.errors import UnreachableError
from gpucourse.labs.aws import first_boot
from gpucourse.labs.aws.readiness import READINESS_TIMES
from gpucourse.model.event import Event, ResourceEvent
from gpucourse.model.node import Node
from gpucourse.ports import Link
from gpucourse.remote.fleet import Fleet
from gpucourse.remote.keys import ensure_client_key
from tests.boot.image import PYTHON, Image, cached_image
from tests.boot.machine import Machine
from tests.boot.metadata import Metadata, describe_instance
from tests.boot.wire import Wire, mac
from tests.parts import need
from tests.ports import take_port
from tests.unit.labs.aws.fakes import context_in

PERCENT = int(os.environ.get("GPUCOURSE_BOOT_PERCENT", "0"))
"""How much of one processor each machine gets at most, as CPUQuota= says it; 0 for as much as there is."""
PARTS = ("qemu-system-x86_64", "qemu-img", "mmdebstrap", "mke2fs")


def need_image() -> Image:
    """The image. Skips, with the reason, where it cannot be had or was not asked for."""
    if os.environ.get("CI") and not os.environ.get("GPUCOURSE_BOOT"):
        pytest.skip("a boot keeps two processors busy for minutes, which the whole check has not: `make boot` runs it")
    for part in PARTS:
        need(part, "make boot")
    if os.geteuid() != 0:
        pytest.skip("the image has files of root's, and root makes it: sudo make boot")
    try:
        return cached_image()
    except LookupError as error:
        pytest.skip(str(error))


@dataclass
class RealNode:
    """A node that boots for real. `node` has its host key once the console has shown it.

    `seconds` is how long after the start what was reached (`host key`, `ready`), `processor_s` what QEMU had used until then.
    """

    machine: Machine
    service: Metadata
    node: Node
    context: Context
    events: list[Event]
    seconds: dict[str, float] = field(default_factory=dict)
    processor_s: dict[str, float] = field(default_factory=dict)
    fleet: Fleet | None = None

    @property
    def link(self) -> Link:
        assert self.fleet is not None
        return self.fleet.link(self.node)

    def run(self, command: str) -> str:
        """What a command on the node prints; it must succeed."""
        done = self.link.run(command, timeout_s=120.0)
        assert done.code == 0, (command, done)
        return done.stdout.decode().strip()

    def note(self, what: str, began: float) -> None:
        """Remember when that was reached."""
        self.seconds[what] = time.monotonic() - began
        self.processor_s[what] = self.machine.processor_s

    def watch_first_boot(self, began: float) -> None:
        """Pin the key that the console shows, connect, and wait until the node is ready, by the code that `deploy` uses."""
        account = cast("Account", _ConsoleOnly(self.machine))
        host_key = console.host_key(account, "i-0", timeout_s=READINESS_TIMES.console_s, sleep=self._sleep)
        assert host_key is not None, self.machine.console[-4000:]
        self.note("host key", began)
        self.node = replace(self.node, host_key=host_key)
        self.connect()
        assert self.fleet is not None
        first_boot.wait(self.context, self.fleet)
        self.note("ready", began)

    def connect(self) -> None:
        """Connect with the pinned host key, as soon as SSH answers."""
        self.fleet = Fleet(self.context.transport, [self.node])
        self.machine.wait_for(self._answers, "SSH answers", READINESS_TIMES.console_s)

    def disconnect(self) -> None:
        if self.fleet is not None:
            self.fleet.close()

    def steps(self) -> list[str]:
        """The steps of the set-up that the wait told of, in turn."""
        told = [event.address for event in self.events if isinstance(event, ResourceEvent) and event.state == "started"]
        return [address.partition(": ")[2] for address in told]

    def close(self) -> None:
        self.disconnect()
        self.machine.close()

    def _answers(self) -> bool:
        assert self.fleet is not None
        try:
            self.fleet.link(self.node)
        except UnreachableError:
            return False
        return True

    def _sleep(self, seconds: float) -> None:
        assert self.machine.process is not None
        assert self.machine.process.poll() is None, self.machine.console[-4000:]
        time.sleep(min(seconds, 0.5))


@dataclass
class _ConsoleOnly:
    """An account of which only one instance's console is known: its last 64 KB, as EC2 keeps them."""

    machine: Machine

    def call(self, service: str, operation: str, **_arguments: Any) -> dict[str, str]:
        assert (service, operation) == ("ec2", "get_console_output")
        return {"Output": self.machine.console[-65536:]}


@contextmanager
def boot_node(
    wire: Wire, folder: Path, image: Image, user_data: str, *, number: int, gpus: int, kernel: str = ""
) -> Iterator[RealNode]:
    """A node at its first boot: its machine is on. Off after the block."""
    port, name, key = take_port(), f"node{number}", folder / "key"
    with Metadata() as service:
        network = wire.join(number, metadata_port=service.server_port, ssh=port)
        machine = Machine(folder / name, image, network, number, percent=PERCENT, kernel=kernel)
        service.leaves = describe_instance(
            instance=f"i-0123456789abcde{number:02x}",
            address=machine.address,
            mac=mac(number),
            public_key=ensure_client_key(key),
            user_data=gzip.compress(user_data.encode()),
        )
        node = Node(
            name=name,
            role="worker" if number else "head",
            address="127.0.0.1",
            port=port,
            private_address=machine.address,
            user="ubuntu",
            gpus=gpus,
            instance_type="g4dn.xlarge" if gpus else "t3.medium",
            python=PYTHON,
            mode="aws",
            key=str(key),
        )
        real = RealNode(machine, service, node, *context_in(machine.folder))
        try:
            machine.start()
            yield real
        finally:
            real.close()
