"""The readiness checks: SSH to every node, its shell and Python, then the packages that the exercises need.

Under Slurm, every node must also be idle or running jobs, and Slurm must list its GPUs.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from gpucourse.context import Context
from gpucourse.errors import InfrastructureError, Interrupted
from gpucourse.model.deployment import NodeHealth
from gpucourse.model.event import NodeEvent, Note, Watcher
from gpucourse.model.node import Inventory, Node
from gpucourse.ports import Transport
from gpucourse.remote.agent.slurm import words as slurm_words
from gpucourse.runs.connect import reach
from gpucourse.storage import write_text
from gpucourse.workspace.paths import StackPaths

if TYPE_CHECKING:
    from gpucourse.ports import Link

_MENDS = "type gpucourse deploy again: it repairs this"
_LIST = "sinfo -h -N -o '%N|%T|%G|%E'"
_LOG = "/var/log/slurm/{daemon}.log"
_SHARED_LOG = '"${{SLURM_CONF%/*}}"/log/{daemon}.log'  # if the daemons of all nodes are on one computer
_AS_WHO_MAY = "if [ -r {log} ]; then {command} {log}; else sudo -n {command} {log}; fi"


def wait_until_ready(context: Context, paths: StackPaths, inventory: Inventory) -> None:
    """Write the SSH configuration, then wait until every node is ready. Each check runs on all nodes in parallel.

    Raises UnreachableError or InfrastructureError with the name of every node that failed. A missing torch is only a warning:
    the lab exists, and exercises that need torch report it again.
    """
    from gpucourse.remote.execute import probe
    from gpucourse.remote.fleet import Fleet, values

    write_ssh_files(context, paths, inventory)
    with Fleet(context.transport, inventory.nodes) as fleet:
        reach(context.watch, fleet)
        values(fleet.do_on_each(lambda link: _has_python(context.watch, link)))
        # Only one node is checked for the packages: the nodes of a stack are identical, and a run checks each of its nodes.
        findings = probe(fleet.part((inventory.head,)), modules=("torch",))[inventory.head.name]
    context.watch(
        NodeEvent(node=inventory.head.name, step="python", ok=True, seconds=findings.seconds, detail=findings.python_version)
    )
    if "torch" in findings.missing:
        mend = f"{inventory.head.python} -m pip install 'gpucourse[local]'"
        text = f"torch is not installed on {inventory.head.name}: exercises that need it will not run. Fix it with: {mend}"
        context.watch(Note(text=text, level="warning"))


def write_ssh_files(context: Context, paths: StackPaths, inventory: Inventory) -> None:
    """Write the files that plain `ssh -F`, `scp`, `rsync` and editors need: the pinned host keys and the configuration."""
    from gpucourse.remote.keys import known_hosts, ssh_config, ssh_hosts

    write_text(paths.known_hosts, known_hosts(inventory), mode=0o600)
    write_text(paths.ssh_config, ssh_config(inventory, context.paths.client_key, paths.known_hosts), mode=0o600)
    write_text(paths.ssh_hosts, ssh_hosts(inventory, context.paths.client_key, paths.known_hosts), mode=0o600)


def _has_python(watch: Watcher, link: Link) -> None:
    start_s = time.monotonic()
    result = link.run(f"test -x {shlex.quote(link.node.python)}", timeout_s=20.0)
    watch(NodeEvent(node=link.node.name, step="shell", ok=result.ok, seconds=time.monotonic() - start_s))
    if not result.ok:
        raise InfrastructureError(
            f"{link.node.name}: there is no program {link.node.python}",
            hint="type gpucourse deploy again, from a Python environment that will not be moved or removed",
        )


_PATIENCE_S, _POLL_S = 30.0, 0.1
_AT_WORK, _FLAGS = slurm_words.AT_WORK, slurm_words.NODE_FLAGS
_LINES, _MAX_LOGS = 12, 3


def wait_for_slurm(
    context: Context,
    inventory: Inventory,
    *,
    removed_nodes: Collection[str] = (),
    looks: Callable[[], Sequence[NodeHealth]] = lambda: (),
    patience_s: float = _PATIENCE_S,
    poll_s: float = _POLL_S,
    hint: str = _MENDS,
) -> None:
    """Wait until Slurm lists every node as ready with its GPUs, and lists none of `removed_nodes`.

    Do not wait for drained nodes, because only a person can resume them. Raises InfrastructureError with `hint`. The error
    names each node that is not ready, with the end of its daemon's log and a reason from Slurm or from `looks`, which inspects
    nodes from outside.
    """
    from gpucourse.remote.fleet import Fleet, values

    start_s = time.monotonic()
    with Fleet(context.transport, (inventory.head,)) as fleet:
        values(fleet.connect())
        while True:
            result = values(fleet.do_on_each(lambda link: link.run(_LIST, timeout_s=20.0)))[0]
            details = (
                _list_unready(inventory, result.stdout.decode(errors="replace"), removed_nodes)
                if result.ok
                else {inventory.head.name: result.stderr.decode(errors="replace").strip()[-200:]}
            )
            if not details:
                break
            wait_s = time.monotonic() - start_s
            if wait_s > patience_s or all(state.startswith("drain") for state in details.values()):
                details |= {health.node: health.detail for health in looks() if not health.healthy and health.detail}
                states = "; ".join(f"{name}: {state}" for name, state in details.items())
                logs = _logs(context.transport, inventory, details)
                raise InfrastructureError(
                    f"Slurm does not list every node as ready after {wait_s:.0f} s: {states}{logs}", hint=hint
                )
            if context.stop.wait(poll_s):
                raise Interrupted("stopped while waiting for Slurm's nodes")
    for node in inventory.nodes:
        context.watch(NodeEvent(node=node.name, step="slurm", ok=True, seconds=time.monotonic() - start_s))


def _list_unready(inventory: Inventory, listing: str, removed_nodes: Collection[str] = ()) -> dict[str, str]:
    rows = {line.split("|")[0]: line.split("|", 3)[1:] for line in listing.splitlines() if line.count("|") >= 3}
    problems = {name: "removed, but still in Slurm's lists" for name in removed_nodes if name in rows}
    for node in inventory.nodes:
        if not node.gpus:
            continue
        state, gres, reason = rows.get(node.name, ["unknown", "", ""])
        if state.rstrip(_FLAGS) not in _AT_WORK:
            problems[node.name] = f"{state} ({reason})" if reason not in {"", "none"} else state
        elif slurm_words.gpus(gres) != node.gpus:
            problems[node.name] = f"{state}, GPUs {gres}"
    return problems


def _logs(transport: Transport, inventory: Inventory, names: Collection[str]) -> str:
    """Return the end of the daemon's log on each of these nodes, as lines. Nodes that do not answer are left out."""
    from gpucourse.remote.fleet import Fleet

    nodes = [node for node in inventory.nodes if node.name in names][:_MAX_LOGS]
    with Fleet(transport, nodes) as fleet:
        ends = [
            (outcome.node, outcome.value) for outcome in fleet.do_on_each(lambda link: _read_log(link, f"tail -n {_LINES}"))
        ]
    return "".join(f"\n{node.name}, the end of {_log(node)}:\n{text}" for node, text in ends if text)


def _read_log(link: Link, command: str) -> str:
    """Run a command on the log of the node's daemon; return its output. On an instance, the log belongs to root."""
    result = link.run(_AS_WHO_MAY.format(command=command, log=_log(link.node)), timeout_s=20.0)
    return result.stdout.decode(errors="replace").strip()


def _log(node: Node) -> str:
    """Return the path of the daemon's log on the node, as text for a shell there."""
    daemon = "slurmctld" if node.role == "head" else "slurmd"
    if node.private_address != "127.0.0.1":
        return _LOG.format(daemon=daemon)
    return _SHARED_LOG.format(daemon=daemon if node.role == "head" else f"{daemon}.{node.name}")
