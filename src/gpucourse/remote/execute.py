"""Carry out a launch plan on its nodes: probe, start, cancel. `follow` and `collect` have their own files."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence

from gpucourse.errors import GpucourseError, NodeUntrusted, UnreachableError
from gpucourse.model.event import Event, NodeEvent, Watcher
from gpucourse.model.node import Node
from gpucourse.model.plan import LaunchPlan, NodeCommand
from gpucourse.ports import Link
from gpucourse.remote import answers, jobs, slurm_client
from gpucourse.remote.agent.pack import MAX_FILES
from gpucourse.remote.exchange import Silent
from gpucourse.remote.fleet import Fleet, Outcome, combine_errors, values
from gpucourse.remote.patience import ANSWER_S, COPY_PACE
from gpucourse.remote.push import Parcel, parcels, push
from gpucourse.units import format_bytes

PORTS = (29500, 29599)
"""The first and the last port at which ranks may meet, unless the learner's settings name others."""

CANCEL_GRACE_S = 5.0
MAX_FILES_OF_RUN = 128_000
"""The maximum number of files that are collected from all nodes together. The run's seal names all of them, but must not exceed
the limit for reading a file."""


def probe(
    fleet: Fleet, *, modules: Sequence[str] = (), programs: Sequence[str] = (), ports: tuple[int, int] = PORTS
) -> dict[str, answers.Probe]:
    """Ask every node, in one round trip, for the facts that a launch depends on. Return the answers by the nodes' names. Raises
    one error for all nodes that cannot be probed."""
    probes = values(fleet.do_on_each(lambda link: jobs.probe(link, modules, ports, programs=programs)))
    return {node.name: probe for node, probe in zip(fleet.nodes, probes, strict=True)}


def launch(
    fleet: Fleet,
    plan: LaunchPlan,
    watcher: Watcher,
    *,
    faults: Mapping[str, Mapping[str, object]] | None = None,
    secrets: Mapping[str, str] | None = None,
    collected: Sequence[str] = (),
    array: Mapping[str, object] | None = None,
) -> None:
    """Push the plan's files and start its command on all nodes at the same time.

    `faults`: the faults of a drill, by node.
    `secrets`: the values of the variables that the plan passes on. They are passed to the processes and written to no file.
    `collected`: runs whose outputs and logs are all here. Each node removes the oldest of them.
    `array`: the job array that the run is a task of: its `runs`, in the order of their tasks, and the `text` of its file.

    If one node fails, the run is cancelled on all nodes and the error is raised.

    All nodes receive the files at the same time, but the first node starts first, because the ranks meet there. A rank that
    connects too early waits half a second before it tries again.
    """
    wrapped = parcels(plan.uploads)
    tell = make_thread_safe(watcher)
    commands, faults_by_node = {command.node.name: command for command in plan.commands}, faults or {}
    head_has_begun = threading.Event()

    def launch_on(node: Node) -> None:
        head = node.name == plan.nodes[0].name
        start_s, step = time.monotonic(), "push"
        try:
            link = fleet.link(node)
            detail = format_bytes(push(link, wrapped))
            tell(NodeEvent(node=node.name, step=step, ok=True, seconds=time.monotonic() - start_s, detail=detail))
            if not head:
                head_has_begun.wait()
            order = {"drill": dict(faults_by_node[node.name])} if node.name in faults_by_node else {}
            extra_fields = {"collected": list(collected), **({"secrets": dict(secrets)} if secrets else {})}
            spec = {**_spec(plan, commands[node.name], wrapped, array), **extra_fields, **order}
            start_s, step = time.monotonic(), "start"
            _start(fleet, link, spec, ANSWER_S + sum(parcel.size for parcel in wrapped) / COPY_PACE)
            tell(NodeEvent(node=node.name, step=step, ok=True, seconds=time.monotonic() - start_s))
        except GpucourseError as error:
            tell(NodeEvent(node=node.name, step=step, ok=False, seconds=time.monotonic() - start_s, detail=error.what))
            raise
        finally:
            if head:
                head_has_begun.set()  # even if the head failed, because the other nodes wait for it

    outcomes = fleet.each_node(launch_on, plan.nodes)
    if failures := [outcome for outcome in outcomes if outcome.error is not None]:
        fleet.do_on_each(lambda link: jobs.cancel(link, [plan.run_id], 1.0), plan.nodes)
        raise combine_errors(failures, of=len(outcomes))


def max_files_of(nodes: int) -> int:
    """Return the maximum number of files to collect from each of `nodes` nodes. The number is limited, because the seal of a
    run names every file."""
    return max(1, min(MAX_FILES, MAX_FILES_OF_RUN // max(1, nodes)))


def cancel(fleet: Fleet, run_id: str, grace_s: float = CANCEL_GRACE_S) -> list[Outcome[answers.State]]:
    """End every process of the run on every node: send TERM, and KILL after `grace_s`. If the run has not begun on a node, it
    will never begin there.

    Return one outcome for each node. A node that cannot be reached does not keep the run alive on the other nodes.
    """
    return fleet.do_on_each(lambda link: jobs.cancel(link, [run_id], grace_s)[run_id])


def states(fleet: Fleet, run_id: str) -> dict[str, answers.JobState]:
    """Return the state of the run on each node, by the node's name. Raises UnreachableError, which names the nodes that do not
    answer."""
    job_states = values(fleet.do_on_each(lambda link: jobs.states(link, [run_id])[run_id]))
    return {node.name: state for node, state in zip(fleet.nodes, job_states, strict=True)}


def _start(fleet: Fleet, link: Link, spec: dict[str, object], timeout_s: float) -> None:
    try:
        jobs.start(link, spec, timeout_s=timeout_s)
    except (NodeUntrusted, Silent):
        raise
    except UnreachableError:
        # The answer was lost, but the run may have started; another request does no harm.
        jobs.start(fleet.link(link.node), spec, timeout_s=timeout_s)


def _spec(
    plan: LaunchPlan, command: NodeCommand, wrapped: Sequence[Parcel], array: Mapping[str, object] | None
) -> dict[str, object]:
    return {
        "run_id": plan.run_id,
        "exercise": plan.exercise,
        "argv": list(command.argv),
        "env": command.env,
        "ranks": list(command.ranks),
        "python": command.node.python,
        "timeout_s": plan.timeout_s,
        "grace_s": CANCEL_GRACE_S,
        "log_limit": plan.log_limit,
        "max_restarts": plan.max_restarts,
        "files": [parcel.entry() for parcel in wrapped],
        **slurm_client.spec(plan, array),
    }


def make_thread_safe(watcher: Watcher) -> Watcher:
    """Return a watcher that several threads may call. It passes on one event at a time."""
    lock = threading.Lock()

    def tell(event: Event) -> None:
        with lock:
            watcher(event)

    return tell
