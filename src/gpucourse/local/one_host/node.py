"""A node of a Slurm without machines: it answers like any hosted node, and a daemon of Slurm runs for it."""

from __future__ import annotations

from pathlib import Path

from gpucourse.local import layout
from gpucourse.local.hosted import HostedNode, Spec
from gpucourse.local.one_host.cluster import Cluster, extended

# The host's name is the same on every node, so the prompt names Slurm's.
_BASHRC = "PS1='[${{SLURMD_NODENAME:-{name}}}] \\w \\$ '\n"


class SlurmNode(HostedNode):
    """A node that answers and takes part in the stack's cluster, from `open` to `end`."""

    def __init__(self, folder: Path, spec: Spec, cluster: Cluster) -> None:
        super().__init__(folder, spec)
        self._cluster = cluster

    async def open(self) -> None:
        """Listen, and have its daemon run."""
        await super().open()
        (self._folder / layout.SHARED).mkdir(mode=0o755, exist_ok=True)
        bashrc = layout.home(self._folder, self.spec.name) / ".bashrc"
        if not bashrc.exists():
            bashrc.write_text(_BASHRC.format(name=self.spec.name), encoding="utf-8")
        await self._cluster.join(self.spec)

    async def end(self) -> None:
        """Let nobody in, end every connection and the daemon."""
        await super().end()
        self._cluster.leave(self.spec.name)

    def _environment(self) -> dict[str, str]:
        found = super()._environment()
        return {**found, "PATH": extended(found["PATH"]), **self._cluster.environment}
