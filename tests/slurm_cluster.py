"""A real Slurm on simulated machines, without Terraform: a head and nodes, with the files that its module would render."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gpucourse.local import health
from gpucourse.local.machines import network
from tests.simulated import SimulatedNodes

MODULE = Path(__file__).resolve().parents[1] / "terraform" / "modules" / "slurm"


@dataclass
class Cluster(SimulatedNodes):
    """A head and `workers` nodes. `layer`: a folder with packages that lie over this computer's own."""

    workers: int = 2
    layer: str = ""

    @property
    def names(self) -> list[str]:
        """The machines, the head first."""
        return [f"node{index}" for index in range(self.workers + 1)]

    def spec(self, name: str) -> dict[str, object]:  # type: ignore[override]
        return {
            **super().spec(name),
            "gpus": 0 if name == "node0" else 1,
            "addresses": {each: network.address(index) for index, each in enumerate(self.names)},
            "slurm": self.files(),
            "layer": self.layer,
        }

    def inside(self, name: str, *argv: str) -> dict[str, object]:
        """Run a command on a machine as its root, past SSH."""
        return health.ask_host(self.folder, "run", {"name": name, "argv": list(argv)}, timeout_s=30.0)

    def power(self, name: str, way: str) -> None:
        """Cut a machine's power, or give it back."""
        health.ask_host(self.folder, "power", {"name": name, "way": way}, timeout_s=30.0)

    def said(self, command: str) -> str:
        """What a command says on the head, over SSH."""
        return self.ssh("node0", command).stdout.decode().strip()

    def states(self) -> dict[str, str]:
        """What is wrong, by node; empty where all is well."""
        return {one.node: one.detail for one in health.inspect(self.folder, self.names) if not one.healthy}

    def idle(self) -> bool:
        """Whether every node waits for work with its GPU."""
        return self.said("sinfo -h -N -o '%N|%T|%G'").splitlines() == [f"{name}|idle|gpu:1" for name in self.names[1:]]

    def files(self) -> dict[str, str]:
        """The templates with the values that the stack gives them."""
        text = (MODULE / "slurm.conf.tftpl").read_text(encoding="utf-8")
        workers = [
            f"NodeName={name} NodeAddr={network.address(index)} CPUs=4 RealMemory=2000 Gres=gpu:1 State=UNKNOWN"
            for index, name in enumerate(self.names)
            if index
        ]
        values = {
            "${head.name}": "node0",
            "${head.address}": network.address(0),
            "${names}": f"node[1-{self.workers}]",
            "${lines}": "\n".join(workers),
            "${daemons.user}": "slurm",
            "${daemons.port}": "6817",
            "${daemons.run}": "/run",
            "${daemons.state}": "/var/lib/slurm",
            "${daemons.logs}": "/var/log/slurm",
            "${daemons.each}": "",
            "${patience_s}": "15",
        }
        for mark, value in values.items():
            text = text.replace(mark, value)
        devices = (MODULE / "gres.conf.tftpl").read_text(encoding="utf-8").replace("${devices}", "/dev/nvidia0")
        cgroups = (MODULE / "cgroup.conf").read_text(encoding="utf-8")
        return {"slurm.conf": text, "gres.conf": devices, "cgroup.conf": cgroups, "mpi.conf": "", "plugstack.conf": ""}
