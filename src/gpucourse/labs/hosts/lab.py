"""A lab on machines that exist already: nothing is built and nothing is destroyed but what we put there ourselves."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from gpucourse.context import Context
from gpucourse.errors import MissingError
from gpucourse.model.deployment import HostsDeployment, Leftover, NodeHealth
from gpucourse.model.event import Note, Watcher
from gpucourse.model.node import Node
from gpucourse.remote import host_probe
from gpucourse.remote.fleet import Fleet, Outcome, values
from gpucourse.workspace import runs
from gpucourse.workspace.stack_paths import StackPaths

T = TypeVar("T")
ANSWER_S = 5.0  # `status` has no time for a machine that is switched off


@dataclass(frozen=True)
class HostsLab:
    """Machines of the learner's own. A labs.take_down.Removable; `offered` are the nodes that a deploy just looked at."""

    context: Context
    paths: StackPaths
    deployment: HostsDeployment
    offered: tuple[Node, ...] = ()

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The machines on record."""
        return self.deployment.inventory.nodes if self.deployment.inventory else self.offered

    def plan(self) -> list[tuple[str, str]]:
        """Which machines are taken in, which are kept, and which are left alone from now on."""
        before = {_address(node) for node in self.deployment.inventory.nodes} if self.deployment.inventory else set()
        now = {_address(node): node for node in self.offered}
        taken = [("create", address) for address in now if address not in before]
        return taken + [("delete", address) for address in sorted(before - set(now))]

    def up(self) -> None:
        """Leave our mark on every machine."""
        with self._fleet(self.offered) as fleet:
            values(fleet.do_on_each(lambda link: host_probe.mark(link, self.deployment.uid)))

    def inspect(self) -> list[NodeHealth]:
        """Whether each machine lets us in right now."""
        with self._fleet(self.nodes, timeout_s=ANSWER_S) as fleet:
            outcomes = fleet.connect()
        return [
            NodeHealth(node=outcome.node.name, healthy=outcome.ok, detail=outcome.error.what if outcome.error else "")
            for outcome in outcomes
        ]

    def list_existing(self) -> list[str]:
        """The machines, as the learner would type them."""
        return [_address(node) for node in self.nodes]

    def down(self, watcher: Watcher) -> list[str]:
        """End our runs on every machine and take our folders away; the machines stay as they are.

        Raises UnreachableError where one does not answer: then nothing is proved of it.
        """
        left = self._ask(lambda link, ids: host_probe.clear(link, self.deployment.uid, ids))
        for node, belongings in zip(self.nodes, left, strict=True):
            if belongings.others:
                text = f"{_address(node)}: another lab of yours uses it as well, so what they share in ~/.gpucourse stays"
                watcher(Note(text=text))
        return [_address(node) for node, belongings in zip(self.nodes, left, strict=True) if not belongings.found]

    def scan_leftovers(self) -> list[Leftover]:
        """What of ours is still on the machines."""
        belongings = self._ask(lambda link, ids: host_probe.ours(link, self.deployment.uid, ids))
        return [
            Leftover(kind=kind, id=f"{id_} on {_address(node)}", remove=_remove(node, kind, id_))
            for node, belongings in zip(self.nodes, belongings, strict=True)
            for kind, id_ in belongings.found
        ]

    def end_everything(self) -> None:
        """The same once more."""
        self._ask(lambda link, ids: host_probe.clear(link, self.deployment.uid, ids))

    def _ask(self, question: Callable[..., T]) -> list[T]:
        ids = [record.id for record in runs.readable(self.context.paths)[0] if record.stack == self.deployment.stack]
        with self._fleet(self.nodes) as fleet:
            outcomes: list[Outcome[T]] = fleet.do_on_each(lambda link: question(link, ids))
        return values(outcomes)

    def _fleet(self, nodes: Sequence[Node], timeout_s: float = 10.0) -> Fleet:
        return Fleet(self.context.transport, nodes, timeout_s=timeout_s)


def open_hosts(context: Context, deployment: HostsDeployment) -> HostsLab:
    """The lab of a deployment on the learner's own machines."""
    if deployment.inventory is None and deployment.phase == "ready":
        raise MissingError(f"{deployment.stack} names no machines", hint=f"gpucourse deploy {deployment.module} --target hosts")
    return HostsLab(context, context.paths.stack(deployment.stack), deployment)


def _address(node: Node) -> str:
    port = f":{node.port}" if node.port != 22 else ""
    return f"{node.user}@{node.address}{port}"


def _remove(node: Node, kind: str, id_: str) -> str:
    port = f"-p {node.port} " if node.port != 22 else ""
    command = f"kill -9 {id_}" if kind == "process" else f"rm -rf {shlex.quote(id_)}"
    return f"ssh {port}{node.user}@{node.address} {shlex.quote(command)}"
