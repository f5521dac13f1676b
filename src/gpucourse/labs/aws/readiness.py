"""The readiness checks of a lab on AWS. The first is that the instances run, and the last is that the ranks can meet. Each
check covers all nodes in parallel.

`start` uses `wait_until_ready` too, so every call queries the account for addresses and host keys.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from gpucourse.aws import console, instances
from gpucourse.aws.caller import caller_cidr
from gpucourse.context import Context
from gpucourse.errors import GpucourseError, InfrastructureError, OtherHostKey, UnreachableError
from gpucourse.labs import collective_check
from gpucourse.labs.aws import first_boot
from gpucourse.labs.aws.lab import CloudLab, update_addresses
from gpucourse.labs.readiness import wait_for_slurm, write_ssh_files
from gpucourse.model.cloud import CloudInstance
from gpucourse.model.event import NodeEvent, Note, ResourceEvent, Watcher, stage
from gpucourse.model.node import Inventory, Node
from gpucourse.remote.patience import ANSWER_S

if TYPE_CHECKING:
    from gpucourse.ports import Link
    from gpucourse.remote.fleet import Fleet

SHARED = "/shared"  # where the stacks mount the storage that their nodes share
# The nodes write their descriptions here, in files owned by root; every few seconds the head writes slurm.conf from them.
_SLURM_NODES = '"${{GPUCOURSE_NODE_ROOT:-}}/shared/.gpucourse/"{stack}/nodes'
_REMOVE_NODES = "cd {folder} && if [ -w . ]; then rm -f {names}; else sudo -n rm -f {names}; fi"
_DRIVER = "nvidia-smi --query-gpu=name,driver_version --format=csv,noheader"


@dataclass(frozen=True, kw_only=True)
class ReadinessTimes:
    """The longest wait for each readiness check, and the pause before it is repeated, in seconds."""

    listed_s: float = instances.LISTED_S
    console_s: float = 900.0  # the console shows the host key minutes after the start, many minutes with a slow disk
    ssh_s: float = 240.0
    ssh_pause_s: float = 3.0
    boot_pause_s: float = first_boot.PAUSE_S
    slurm_s: float = 120.0  # its nodes read the head's configuration within seconds, and register within a minute
    slurm_pause_s: float = 2.0


READINESS_TIMES = ReadinessTimes()


def wait_until_ready(
    context: Context,
    lab: CloudLab,
    times: ReadinessTimes = READINESS_TIMES,
    *,
    on_answer: Callable[[], None] = lambda: None,
) -> Inventory:
    """Run every readiness check; return the nodes with their current addresses and host keys, for the caller to store.

    `on_answer` is called once all nodes answer, before the other checks. Raises InfrastructureError, UnreachableError or
    CloudError, with the names of the nodes that failed and the log that explains the failure.
    """
    from gpucourse.remote.fleet import Fleet

    inventory = lab.deployment.inventory
    if inventory is None:
        raise InfrastructureError(f"{lab.deployment.stack} has no nodes on record", hint="gpucourse deploy builds them")
    gpus_by_node = {node.name: node.gpus or _count_gpus(node) for node in inventory.nodes}
    inventory = _pin_host_keys(context.watch, lab, inventory, _await_instances(context.watch, lab, inventory, times), times)
    write_ssh_files(context, lab.paths, inventory)
    with Fleet(context.transport, inventory.nodes) as fleet:
        with stage(context.watch, "ssh", "SSH answers"):
            _connect_all(context, lab, fleet, times)
        on_answer()
        with stage(context.watch, "first boot", "the first boot is over"):
            marks = first_boot.wait(context, fleet, pause_s=times.boot_pause_s)
        simulated = {name for name, mark in marks.items() if mark.simulated}
        with_gpu = [node for node in fleet.nodes if gpus_by_node[node.name]]
        _check_driver(context.watch, fleet, with_gpu, simulated)
        with stage(context.watch, "torch", "torch is installed"):
            _check_torch(context.watch, fleet, with_gpu)
        if len(with_gpu) > 1:
            with stage(context.watch, "meet", "the nodes reach each other"):
                collective_check.run(context, fleet, with_gpu, simulated)
    inventory = replace(inventory, nodes=tuple(_count_reported_gpus(node, marks[node.name]) for node in inventory.nodes))
    if context.catalog.module(lab.deployment.module).lab.scheduler == "slurm":
        lab.deployment.shared = SHARED
        _check_slurm(context, lab, inventory, simulated, times)
    return inventory


def _report(watch: Watcher, node: str, step: str, start_s: float, *, ok: bool = True, detail: str = "") -> None:
    watch(NodeEvent(node=node, step=step, ok=ok, seconds=time.monotonic() - start_s, detail=detail))


def _count_gpus(node: Node) -> int:
    """Return how many GPUs the node's instance type has. An earlier check may have recorded fewer, for a simulated node."""
    from gpucourse.aws.offerings import instance_types

    instance_type = instance_types().get(node.instance_type)
    return instance_type.gpus if instance_type else 0


def _count_reported_gpus(node: Node, mark: first_boot.BootMark) -> Node:
    """Return the node. If it is simulated, set the number of GPUs to the number that it reports."""
    return replace(node, gpus=len(mark.gpus)) if mark.simulated else node


def _await_instances(watch: Watcher, lab: CloudLab, inventory: Inventory, times: ReadinessTimes) -> dict[str, CloudInstance]:
    """Wait until the instances of all nodes run; return the instance of each node."""
    start_s = time.monotonic()
    with stage(watch, "instances", "the instances run"):
        names = [node.name for node in inventory.nodes]
        lab_instances = instances.find_nodes(lab.account, stack=lab.deployment.uid, names=names, timeout_s=times.listed_s)
        alive = {instance.node: instance for instance in lab_instances}
        absent = [node.name for node in inventory.nodes if node.name not in alive]
        if absent:
            raise InfrastructureError(
                f"the account has no instance for {', '.join(absent)}",
                hint="type gpucourse deploy again: it builds what is missing",
            )
        halted = [name for name, instance in alive.items() if instance.state in {"stopping", "stopped"}]
        if halted:
            raise InfrastructureError(
                f"{', '.join(halted)} of {lab.deployment.stack} is stopped", hint=f"gpucourse start {lab.deployment.module}"
            )
        cloud_instances = instances.wait(lab.account, [alive[node.name].id for node in inventory.nodes], "running")
        for instance in cloud_instances:
            _report(watch, instance.node, "running", start_s, detail=f"{instance.id}, {instance.address}")
    return {instance.node: instance for instance in cloud_instances}


def _pin_host_keys(
    watch: Watcher, lab: CloudLab, inventory: Inventory, running: dict[str, CloudInstance], times: ReadinessTimes
) -> Inventory:
    """Return the nodes with their current addresses, each with the host key that its console shows.

    If the key for the same address is already known, the console is not queried again.
    """
    nodes = update_addresses(inventory, running.values()).nodes
    strangers = [
        node for node, former in zip(nodes, inventory.nodes, strict=True) if not node.host_key or node.address != former.address
    ]
    if not strangers:
        return replace(inventory, nodes=nodes)

    def ask(node: Node) -> Node:
        start_s = time.monotonic()
        waiting = partial(ResourceEvent, address=f"{node.name}: host key on its console", action="set-up")
        watch(waiting(state="started", seconds=0.0))
        key = console.host_key(lab.account, running[node.name].id, timeout_s=times.console_s)
        seconds = time.monotonic() - start_s
        watch(waiting(state="done", seconds=seconds))
        _report(watch, node.name, "console", start_s, ok=key is not None)
        if key is None:
            raise InfrastructureError(
                f"{node.name} ({running[node.name].id}) did not show its SSH host key on its console within {seconds:.0f} s, "
                "so the machine at its address cannot be trusted",
                hint="type gpucourse deploy again, which reads the console again",
            )
        return replace(node, host_key=key)

    from gpucourse.remote.fleet import do_on_each, values

    with stage(watch, "host keys", "AWS confirms the host keys"):
        authenticated_nodes = {node.name: node for node in values(do_on_each(strangers, ask))}
    return replace(inventory, nodes=tuple(authenticated_nodes.get(node.name, node) for node in nodes))


def _connect_all(context: Context, lab: CloudLab, fleet: Fleet, times: ReadinessTimes) -> None:
    """Connect to every node. If a node refuses because it has just booted, try again."""
    start_s = time.monotonic()

    def connect(node: Node) -> None:
        while True:
            try:
                fleet.link(node)
            except UnreachableError as error:
                is_late = time.monotonic() - start_s > times.ssh_s
                if isinstance(error, OtherHostKey) or is_late or context.stop.wait(times.ssh_pause_s):
                    _report(context.watch, node.name, "ssh", start_s, ok=False, detail=error.what)
                    raise _explain_moved_address(context, lab, error) from error
            else:
                _report(context.watch, node.name, "ssh", start_s)
                return

    from gpucourse.remote.fleet import values

    values(fleet.each_node(connect))


def _explain_moved_address(context: Context, lab: CloudLab, error: UnreachableError) -> UnreachableError:
    """Return the error or, if SSH is no longer open to this computer's address, an error that says so."""
    if context.settings.ssh_cidr:
        return error
    try:
        address = caller_cidr(context.environ)
    except GpucourseError:
        return error
    if address == lab.cloud.ssh_cidr:
        return error
    return UnreachableError(
        f"{error.what} (SSH is open to {lab.cloud.ssh_cidr}, and the address of this computer is now {address})",
        hint=f"gpucourse allow-ip {lab.deployment.module}",
    )


def _check_driver(watch: Watcher, fleet: Fleet, nodes: Sequence[Node], simulated: set[str]) -> None:
    """Check that nvidia-smi lists as many GPUs as the instance type has. Skip nodes that report that they are simulated, and
    say so in a note."""

    from gpucourse.remote.fleet import values

    def ask(link: Link) -> None:
        start_s = time.monotonic()
        result = link.run(_DRIVER, timeout_s=ANSWER_S)
        lines = [line for line in result.stdout.decode(errors="replace").splitlines() if line.strip()]
        ok = result.ok and len(lines) == link.node.gpus
        detail = lines[0] if ok else (result.stderr.decode(errors="replace").strip() or f"{len(lines)} GPUs")[-300:]
        _report(watch, link.node.name, "nvidia-smi", start_s, ok=ok, detail=detail)
        if not ok:
            raise InfrastructureError(
                f"{link.node.name}: the driver does not see the GPUs of its {link.node.instance_type}: {detail}",
                hint="take the lab down and deploy it again: another machine may work",
            )

    if real := [node for node in nodes if node.name not in simulated]:
        with stage(watch, "driver", "the driver sees the GPUs"):
            values(fleet.do_on_each(ask, real))
    if skipped := [node.name for node in nodes if node.name in simulated]:
        text = f"{', '.join(skipped)}: the machine reports that it is simulated and has no GPU, so the driver is not checked"
        watch(Note(text=text, level="warning"))


def _check_slurm(context: Context, lab: CloudLab, inventory: Inventory, simulated: set[str], times: ReadinessTimes) -> None:
    """Wait until Slurm lists every node as idle or busy, with its GPUs. If simulated nodes report no GPU, skip this check and
    say so in a note."""
    if simulated and not any(node.gpus for node in inventory.nodes):
        names = ", ".join(node.name for node in inventory.nodes if node.name in simulated)
        text = f"{names}: the machine reports that it is simulated and has no GPU, so Slurm is not checked"
        context.watch(Note(text=text, level="warning"))
        return
    ssh = f"gpucourse ssh {lab.deployment.module} --"
    hint = f"{ssh} sinfo -R shows the reasons; {ssh} sudo scontrol update nodename=NAME state=resume readmits a drained node"
    with stage(context.watch, "slurm", "Slurm lists every node with its GPUs"):
        removed_nodes = forget_others(context, inventory, stack=lab.deployment.uid)
        limit, pause = times.slurm_s, times.slurm_pause_s
        wait_for_slurm(context, inventory, removed_nodes=removed_nodes, patience_s=limit, poll_s=pause, hint=hint)


def _check_torch(watch: Watcher, fleet: Fleet, nodes: Sequence[Node]) -> None:
    from gpucourse.remote import jobs
    from gpucourse.remote.fleet import values

    missing: list[str] = []

    def ask(link: Link) -> None:
        start_s = time.monotonic()
        version = jobs.probe(link, ("torch",), (29500, 29500), versions=True).modules["torch"]
        _report(watch, link.node.name, "torch", start_s, ok=version is not None, detail=version or "not installed")
        if version is None:
            missing.append(f"{link.node.name} ({link.node.python})")

    values(fleet.do_on_each(ask, nodes))
    if missing:
        text = f"torch is not installed on {', '.join(sorted(missing))}: exercises that need it will not run there"
        watch(Note(text=text, level="warning"))


def forget_others(context: Context, inventory: Inventory, *, stack: str) -> frozenset[str]:
    """Make the head of the cluster forget every node that is not one of the lab's; return the names of the forgotten nodes.

    `stack` is the deployment's uid. If the head refuses, a note says so, and Slurm still lists the nodes.
    """
    from gpucourse.remote.fleet import Fleet, values

    folder = _SLURM_NODES.format(stack=shlex.quote(stack))
    node_names = {node.name for node in inventory.nodes}

    def forget(link: Link) -> frozenset[str]:
        files = link.run(f"ls {folder}", timeout_s=20.0).stdout.decode(errors="replace").split()
        obsolete = frozenset(name for name in files if name not in node_names and not name.endswith(".new"))
        if not obsolete:
            return obsolete
        result = link.run(_REMOVE_NODES.format(folder=folder, names=shlex.join(sorted(obsolete))), timeout_s=20.0)
        if result.ok:
            return obsolete
        message = result.stderr.decode(errors="replace").strip()[-200:]
        text = f"Slurm still lists nodes of an earlier, larger lab as down: {', '.join(sorted(obsolete))} ({message})"
        context.watch(Note(text=text, level="warning"))
        return frozenset()

    with Fleet(context.transport, (inventory.head,)) as fleet:
        [forgotten_nodes] = values(fleet.do_on_each(forget))
    return forgotten_nodes
