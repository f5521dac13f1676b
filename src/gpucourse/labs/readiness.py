"""The readiness checks: SSH to every node, its shell and Python, then what the exercises need."""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING

from gpucourse.context import Context
from gpucourse.errors import InfrastructureError
from gpucourse.model.event import NodeEvent, Note
from gpucourse.model.node import Inventory
from gpucourse.runs.connect import reach
from gpucourse.storage import write_text
from gpucourse.workspace.stack_paths import StackPaths

if TYPE_CHECKING:
    from gpucourse.ports import Link


def wait_until_ready(context: Context, paths: StackPaths, inventory: Inventory) -> None:
    """Write the SSH configuration, then wait until every node is ready: each check on all of them at once.

    Raises UnreachableError or InfrastructureError that names every node that failed. A missing torch is only a warning: the lab
    exists, and exercises that need torch report it again.
    """
    from gpucourse.remote.execute import probe
    from gpucourse.remote.fleet import Fleet, values

    write_ssh_files(context, paths, inventory)
    with Fleet(context.transport, inventory.nodes) as fleet:
        reach(context, fleet)
        values(fleet.do_on_each(lambda link: _has_python(context, link)))
        # Only one node is checked for the packages: the nodes of a stack are alike, and a run checks each of its own.
        findings = probe(fleet.part((inventory.head,)), modules=("torch",)).nodes[inventory.head.name]
    context.watch(
        NodeEvent(node=inventory.head.name, step="python", ok=True, seconds=findings.seconds, detail=findings.python_version)
    )
    if "torch" in findings.missing:
        mend = f"{inventory.head.python} -m pip install 'gpucourse[local]'"
        text = f"torch is not installed on {inventory.head.name}: exercises that need it will not run. Fix it with: {mend}"
        context.watch(Note(text=text, level="warning"))


def write_ssh_files(context: Context, paths: StackPaths, inventory: Inventory) -> None:
    """Write what plain `ssh -F`, `scp`, `rsync` and editors need: the pinned host keys and the configuration."""
    from gpucourse.remote.keys import known_hosts, ssh_config, ssh_hosts

    write_text(paths.known_hosts, known_hosts(inventory), mode=0o600)
    write_text(paths.ssh_config, ssh_config(inventory, context.paths.client_key, paths.known_hosts), mode=0o600)
    write_text(paths.ssh_hosts, ssh_hosts(inventory, context.paths.client_key, paths.known_hosts), mode=0o600)


def _has_python(context: Context, link: Link) -> None:
    began = time.monotonic()
    done = link.run(f"test -x {shlex.quote(link.node.python)}", timeout_s=20.0)
    context.watch(NodeEvent(node=link.node.name, step="shell", ok=done.ok, seconds=time.monotonic() - began))
    if not done.ok:
        raise InfrastructureError(
            f"{link.node.name}: there is no program {link.node.python}",
            hint="type gpucourse deploy again, from an environment that stays where it is",
        )
