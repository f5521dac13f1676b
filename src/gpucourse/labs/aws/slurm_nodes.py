"""Removing nodes that a lab no longer has from Slurm's configuration, which would otherwise list them as down for ever."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from gpucourse.context import Context
from gpucourse.model.event import Note
from gpucourse.model.node import Inventory

if TYPE_CHECKING:
    from gpucourse.ports import Link

# The nodes write their descriptions here, in files owned by root; from these the head writes slurm.conf, every few seconds.
_FOLDER = '"${{GPUCOURSE_NODE_ROOT:-}}/shared/.gpucourse/"{stack}/nodes'
_REMOVE = "cd {folder} && if [ -w . ]; then rm -f {names}; else sudo -n rm -f {names}; fi"


def forget_others(context: Context, inventory: Inventory, *, stack: str) -> frozenset[str]:
    """Make the head of the cluster forget every node that is not part of the lab; return the names of those that were
    forgotten.

    `stack` is the deployment's uid. If the head refuses that, a note says so, and they stay in Slurm's lists.
    """
    from gpucourse.remote.fleet import Fleet, values

    folder = _FOLDER.format(stack=shlex.quote(stack))
    ours = {node.name for node in inventory.nodes}

    def forget(link: Link) -> frozenset[str]:
        known = link.run(f"ls {folder}", timeout_s=20.0).stdout.decode(errors="replace").split()
        others = frozenset(name for name in known if name not in ours and not name.endswith(".new"))
        if not others:
            return others
        done = link.run(_REMOVE.format(folder=folder, names=shlex.join(sorted(others))), timeout_s=20.0)
        if done.ok:
            return others
        said = done.stderr.decode(errors="replace").strip()[-200:]
        text = f"Slurm still lists nodes of an earlier, larger lab as down: {', '.join(sorted(others))} ({said})"
        context.watch(Note(text=text, level="warning"))
        return frozenset()

    with Fleet(context.transport, (inventory.head,)) as fleet:
        [forgotten] = values(fleet.do_on_each(forget))
    return forgotten
