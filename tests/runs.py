"""Runs for tests: a script is turned into a launch plan on the nodes of a lab."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpucourse.model.event import Event, LogBytes
from gpucourse.model.node import Node
from gpucourse.model.plan import LaunchPlan, NodeCommand, Upload
from gpucourse.remote import collect, execute, follow
from gpucourse.remote.fleet import Fleet
from gpucourse.remote.follow import FollowedJob, FollowResult
from gpucourse.remote.ssh import SshTransport
from gpucourse.remote.unpack import CollectedOutputs
from gpucourse.workspace.paths import RunPaths
from tests.sshlab import SshLab

_NUMBERS = itertools.count()


@dataclass
class Run:
    """One run under test, with the events that it reported."""

    fleet: Fleet
    plan: LaunchPlan
    paths: RunPaths
    lab: SshLab
    events: list[Event] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def launch(self) -> Run:
        execute.launch(self.fleet, self.plan, self.events.append)
        return self

    def follow(self, *, grace_s: float = 5.0) -> FollowResult:
        return follow.follow(self.fleet, self.job(), self.events.append, self.stop, follow.FollowTimes(grace_s=grace_s))

    def job(self) -> FollowedJob:
        """Return the job to follow."""
        return FollowedJob(run_id=self.plan.run_id, nodes=self.plan.nodes, paths=self.paths, log_limit=self.plan.log_limit)

    def collect(self, *globs: str, max_bytes: int = 1 << 30) -> CollectedOutputs:
        return collect.collect(self.fleet, self.plan.run_id, globs, self.paths, max_bytes, self.events.append)

    def log(self, rank: int | None = 0, node: str = "node0") -> bytes:
        return self.paths.rank_log(node, rank).read_bytes()

    def folder(self, node: str = "node0") -> Path:
        """Return the job's folder on that node."""
        return self.lab.homes[node] / ".gpucourse" / "jobs" / self.plan.run_id

    def collect_log(self, node: str, rank: int | None) -> bytes:
        """Return the part of that log that the watcher received."""
        return b"".join(e.data for e in self.events if isinstance(e, LogBytes) and (e.node, e.rank) == (node, rank))


def prepare(
    lab: SshLab,
    folder: Path,
    script: str,
    *arguments: str,
    nodes: Sequence[Node] | None = None,
    env: Mapping[str, str] | None = None,
    argv: Sequence[str] | None = None,
    uploads: Sequence[Upload] = (),
    timeout_s: float = 60.0,
    log_limit: int = 1 << 30,
) -> Run:
    """Return a run of a Python script that is not launched yet, with one rank on each node. `argv` replaces the command."""
    taking_part = list(lab.nodes if nodes is None else nodes)
    source = folder / "script.py"
    source.write_text(script)
    commands = tuple(
        NodeCommand(
            node=node,
            argv=tuple(argv) if argv else ("{rank}", node.python, "-u", "script.py", *arguments),
            env={"RANK": str(rank), "WORLD_SIZE": str(len(taking_part)), **(env or {})},
            ranks=(rank,),
        )
        for rank, node in enumerate(taking_part)
    )
    plan = LaunchPlan(
        run_id=f"run-{next(_NUMBERS)}", exercise="3.2", launcher="python", mode="local", script="script.py", parameters={},
        commands=commands, uploads=(Upload(name="script.py", source=source), *uploads), master_address="127.0.0.1",
        master_port=29500, timeout_s=timeout_s, collective_timeout_s=60.0, log_limit=log_limit,
    )  # fmt: skip
    return Run(Fleet(SshTransport(lab.key), taking_part), plan, RunPaths(folder / "run"), lab)
