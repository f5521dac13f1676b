"""A node of a Slurm without machines. It accepts logins like any hosted node, and has its own daemons of Slurm."""

from __future__ import annotations

import os
from pathlib import Path

from gpucourse.local import layout
from gpucourse.local.hosted import HostedNode, Spec
from gpucourse.local.one_host.cluster import SlurmDaemons

# The host's name is the same on every node, so the prompt shows the name that Slurm uses.
_BASHRC = "PS1='[${{SLURMD_NODENAME:-{name}}}] \\w \\$ '\n"


class SlurmNode(HostedNode):
    """A node that accepts logins and belongs to the stack's cluster, from `open` until `end`."""

    def __init__(self, folder: Path, spec: Spec, cluster: SlurmDaemons) -> None:
        super().__init__(folder, spec)
        self._cluster = cluster

    async def open(self) -> None:
        """Listen for logins, and start the node's daemons if they are not running."""
        await super().open()
        self._furnish()
        await self._cluster.join(self.spec)

    async def end(self) -> None:
        """Accept no more logins, and end every connection and the node's daemons."""
        await super().end()
        self._cluster.leave(self.spec.name)

    def _furnish(self) -> None:
        """Make a prompt with the node's name, and a link to the folder that all nodes share, because there is no /shared
        here."""
        shared, home = self._folder / layout.SHARED, layout.home(self._folder, self.spec.name)
        shared.mkdir(mode=0o755, exist_ok=True)
        if not (home / ".bashrc").exists():
            (home / ".bashrc").write_text(_BASHRC.format(name=self.spec.name), encoding="utf-8")
        if not os.path.lexists(home / layout.SHARED):
            (home / layout.SHARED).symlink_to(shared)  # there is no /shared here

    def _environment(self) -> dict[str, str]:
        environment = super()._environment()
        return {**environment, **self._cluster.environment}
