"""A lab on machines that exist already. Nothing is built, and only this program's own files are removed."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self, TypeVar

from gpucourse.context import Context
from gpucourse.errors import MissingError
from gpucourse.model.deployment import Deployment, HostsDeployment, Leftover, NodeHealth
from gpucourse.model.event import Note, Watcher
from gpucourse.model.node import Node
from gpucourse.model.record import RunRecord
from gpucourse.ports import Link, Transport
from gpucourse.remote import host_probe
from gpucourse.remote.agent.scratch import LINKS
from gpucourse.remote.fleet import Fleet, Outcome, values
from gpucourse.workspace import runs
from gpucourse.workspace.paths import StackPaths, WorkspacePaths

T = TypeVar("T")
# The environment of every process of a run contains the folder of its job.
_END = 'for p in /proc/[0-9]*; do grep -Eqsz "^GPUCOURSE_RUN_DIR=.*/jobs/({runs})$" $p/environ && kill -9 ${{p#/proc/}}; done; '
# Every job of a run was submitted in the folder of the run, or below it.
_END_JOBS = 'squeue -h -u "$(id -un)" -o "%A %Z" | grep -E "/jobs/({runs})(/|$)" | cut -d" " -f1 | xargs -r scancel; '
# The folder for temporary files of a run has a short link if its own path is too long for sockets.
_UNLINK = 'for l in {links}; do readlink "$l" | grep -Eq "/jobs/({runs})/tmp$" && rm -f "$l"; done; '
ANSWER_S = 5.0  # `status` must not wait long for a machine that is switched off


@dataclass
class HostsLab:
    """The learner's machines. Implements labs.destroy.Removable; the connections stay open until the end of the block.

    `candidate_nodes`: the nodes that a deploy has just examined.
    `without`: the names of nodes to leave alone.
    """

    workspace: WorkspacePaths
    transport: Transport
    paths: StackPaths
    deployment: Deployment
    candidate_nodes: tuple[Node, ...] = ()
    without: Collection[str] = field(default=())

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Return the recorded machines or, before they are recorded, the candidates."""
        nodes = self.deployment.inventory.nodes if self.deployment.inventory else self.candidate_nodes
        return tuple(node for node in nodes if node.name not in self.without)

    @cached_property
    def _fleet(self) -> Fleet:
        return Fleet(self.transport, self.nodes)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._fleet.close()

    def plan(self) -> list[tuple[str, str]]:
        """Return the machines to add, as ("create", address), and those that leave the lab, as ("delete", address)."""
        former_addresses = {_address(node) for node in self.deployment.inventory.nodes} if self.deployment.inventory else set()
        nodes_by_address = {_address(node): node for node in self.candidate_nodes}
        additions = [("create", address) for address in nodes_by_address if address not in former_addresses]
        return additions + [("delete", address) for address in sorted(former_addresses - set(nodes_by_address))]

    def up(self, fleet: Fleet) -> None:
        """Leave the lab's mark on every machine to which the fleet is connected."""
        values(fleet.do_on_each(lambda link: host_probe.mark(link, self.deployment.uid, self._find_shared(link.node))))

    def inspect(self) -> list[NodeHealth]:
        """Return whether each machine accepts the login right now."""
        with Fleet(self.transport, self.nodes, timeout_s=ANSWER_S) as fleet:
            outcomes = fleet.connect()
        return [
            NodeHealth(node=outcome.node.name, healthy=outcome.ok, detail=outcome.error.what if outcome.error else "")
            for outcome in outcomes
        ]

    def list_existing(self) -> list[str]:
        """Return the machines, as the learner would type them."""
        return [_address(node) for node in self.nodes]

    def down(self, watcher: Watcher) -> list[str]:
        """End this program's runs on every machine and remove its folders; change nothing else.

        Return the machines on which nothing is left. Raises UnreachableError if a machine does not answer, because the
        leftovers on it are then unknown.
        """
        answers = self._ask(self._clear)
        for node, belongings in zip(self.nodes, answers, strict=True):
            if belongings.others:
                text = f"{_address(node)}: another lab of yours uses this machine too, so shared files in ~/.gpucourse stay"
                watcher(Note(text=text))
        return [_address(node) for node, belongings in zip(self.nodes, answers, strict=True) if not belongings.found]

    def scan_leftovers(self) -> list[Leftover]:
        """Return the leftovers of this program on the machines."""
        belongings = self._ask(self._look)
        return [
            Leftover(kind=kind, id=f"{id_} on {_address(node)}", remove=_remove(node, kind, id_))
            for node, belongings in zip(self.nodes, belongings, strict=True)
            for kind, id_ in belongings.found
        ]

    def end_everything(self) -> None:
        """End this program's runs and remove its folders again, in case `down` missed some."""
        self._ask(self._clear)

    def find_unreachable_nodes(self) -> dict[str, str]:
        """Return the machines that do not report this program's leftovers, by node name, with the reason."""
        outcomes = self._ask_all(self._look)
        return {outcome.node.name: outcome.error.what for outcome in outcomes if outcome.error is not None}

    def list_forgotten(self, unreachable: Mapping[str, str]) -> list[Leftover]:
        """Return what may be left on these machines: folders of this program, and processes of runs.

        `unreachable`: the machines by node name, with the reason.
        """
        records = self._runs()
        ids = [record.id for record in records]
        scheduled = any(record.slurm is not None for record in records)
        kinds = "processes and Slurm jobs" if scheduled else "processes"
        processes = f"{kinds} of {len(ids)} run{'s' * (len(ids) != 1)} and " if ids else ""
        return [
            Leftover(
                kind="host",
                id=f"{node.label}: {processes}{self._name_folders(node)} ({unreachable[node.name]})",
                remove=_ssh(node, self._write_removal(node, ids, scheduled=scheduled)),
            )
            for node in self.nodes
            if node.name in unreachable
        ]

    def _name_folders(self, node: Node) -> str:
        shared = self._find_shared(node)
        return "the folder ~/.gpucourse" + (f", and .gpucourse in this user's folder below {shared}" if shared else "")

    def _write_removal(self, node: Node, ids: Sequence[str], *, scheduled: bool) -> str:
        """Return the command that a person types to remove everything that these runs and the lab left on a node."""
        shared = self._find_shared(node)
        homes = ["", *([f"{shlex.quote(shared)}/gpucourse-$(id -un)/"] if shared else [])]
        marks = " ".join(f"{home}.gpucourse/labs/{self.deployment.uid}" for home in homes)
        if not ids:
            return f"cd && rm -rf {marks}"
        links = " ".join([f"{LINKS}*", *(f"{home}.gpucourse/tmp-*" for home in homes)])
        jobs = " ".join(f"{home}.gpucourse/jobs/{run}" for home in homes for run in ids)
        end = ((_END_JOBS if scheduled else "") + _END + _UNLINK).format(runs="|".join(ids), links=links)
        # In sh, because another login shell may not understand the command.
        return shlex.join(["sh", "-c", f"cd || exit; {end}rm -rf {marks} {jobs}"])

    def _runs(self) -> list[RunRecord]:
        return [record for record in runs.readable(self.workspace)[0] if record.stack == self.deployment.stack]

    def _look(self, link: Link, runs: list[str]) -> host_probe.Belongings:
        return self._request(host_probe.find_belongings, link, runs)

    def _clear(self, link: Link, runs: list[str]) -> host_probe.Belongings:
        return self._request(host_probe.clear, link, runs)

    def _request(self, request: Callable[..., host_probe.Belongings], link: Link, runs: list[str]) -> host_probe.Belongings:
        return request(link, self.deployment.uid, runs, self._find_shared(link.node))

    def _find_shared(self, node: Node) -> str:
        """Return the cluster's shared folder if the node is the head, which accepts the jobs. Otherwise, return an empty
        text."""
        return self.deployment.shared if node.role == "head" else ""

    def _ask(self, question: Callable[..., T]) -> list[T]:
        return values(self._ask_all(question))

    def _list_folders(self) -> list[str]:
        """Return the names of the lab's folders below `.gpucourse/jobs`: one for each run."""
        return [record.id for record in self._runs()]

    def _ask_all(self, question: Callable[..., T]) -> list[Outcome[T]]:
        ids = self._list_folders()
        return self._fleet.do_on_each(lambda link: question(link, ids))


def open_hosts(context: Context, deployment: HostsDeployment, *, without: Collection[str] = ()) -> HostsLab:
    """Return the lab of a deployment on the learner's machines. `without`: the names of nodes to leave alone."""
    if deployment.inventory is None and deployment.phase == "ready":
        raise MissingError(f"{deployment.stack} names no machines", hint=f"gpucourse deploy {deployment.module} --target hosts")
    return HostsLab(context.paths, context.transport, context.paths.stack(deployment.stack), deployment, without=without)


def _address(node: Node) -> str:
    return node.login if node.way else node.login.removesuffix(":22")


def _remove(node: Node, kind: str, id_: str) -> str:
    return _ssh(node, f"kill -9 {id_}" if kind == "process" else f"rm -rf {shlex.quote(id_)}")


def _ssh(node: Node, command: str) -> str:
    return f"{shlex.join(node.ssh_words)} {shlex.quote(command)}" if node.ssh_words else command
