"""A real Slurm on simulated nodes, without Terraform: a head and nodes, with the files that its module would render."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gpucourse.local import health
from gpucourse.local.machines import network
from tests.simulated import SimulatedNodes
from tests.waiting import STUCK_S

MODULE = Path(__file__).resolve().parents[1] / "terraform" / "modules" / "slurm"


@dataclass
class Cluster(SimulatedNodes):
    """A head and `workers` nodes."""

    workers: int = 2

    @property
    def names(self) -> list[str]:
        """The machines, the head first."""
        return [f"node{index}" for index in range(self.workers + 1)]

    def spec(self, name: str) -> dict[str, object]:  # type: ignore[override]
        return {
            **super().spec(name),
            "gpus": 0 if name == "node0" else 1,
            "addresses": {node_name: network.address(index) for index, node_name in enumerate(self.names)},
            "slurm": self.files(),
        }

    def inside(self, name: str, *argv: str) -> dict[str, object]:
        """Run a command on a machine as its root, past SSH."""
        return health.ask_host(self.folder, "run", {"name": name, "argv": list(argv)}, timeout_s=STUCK_S)

    def power(self, name: str, way: str) -> None:
        """Cut a machine's power, or restore it."""
        health.ask_host(self.folder, "power", {"name": name, "way": way}, timeout_s=STUCK_S)

    def run_on_head(self, command: str) -> str:
        """What a command says on the head, over SSH."""
        return self.ssh("node0", command).stdout.decode().strip()

    def states(self) -> dict[str, str]:
        """What is wrong, by node; empty if nothing is."""
        return {
            node_health.node: node_health.detail
            for node_health in health.inspect(self.folder, self.names)
            if not node_health.healthy
        }

    def idle(self) -> bool:
        """Whether every node waits for work with its GPU."""
        return self.run_on_head("sinfo -h -N -o '%N|%T|%G'").splitlines() == [f"{name}|idle|gpu:1" for name in self.names[1:]]

    def files(self) -> dict[str, str]:
        """The templates with the values that the stack gives them."""
        return render_templates(
            {
                "${head.name}": "node0",
                "${head.address}": network.address(0),
                "${names}": f"node[1-{self.workers}]",
                "${lines}": "\n".join(
                    f"NodeName={name} NodeAddr={network.address(index)} CPUs=4 RealMemory=2000 Gres=gpu:1 State=UNKNOWN"
                    for index, name in enumerate(self.names)
                    if index
                ),
                "${daemons.user}": "slurm",
                "${daemons.port}": "6817",
                "${daemons.run}": "/run",
                "${daemons.state}": "/var/lib/slurm",
                "${daemons.logs}": "/var/log/slurm",
                "${daemons.suffix}": "",
                "${devices}": "/dev/nvidia0",
            }
        )


class OneHost(Cluster):
    """The same without machines: its daemons side by side on this computer."""

    def spec(self, name: str) -> dict[str, object]:  # type: ignore[override]
        return {key: value for key, value in super().spec(name).items() if key != "addresses"}

    def files(self) -> dict[str, str]:
        """The templates with the values that the stack gives them where namespaces are refused."""
        asked = "NodeHostname=@HOST@ NodeAddr=127.0.0.1 Port=@PORT_{name}@ CPUs=4 RealMemory=2000 Gres=gpu:1 State=UNKNOWN"
        return render_templates(
            {
                "${head.name}": "@HOST@",
                "${head.address}": "127.0.0.1",
                "${names}": f"node[1-{self.workers}]",
                "${lines}": "\n".join(
                    [
                        "SlurmdUser=@USER@",
                        "AuthInfo=socket=@FOLDER@/munge.sock",
                        "TaskProlog=@FOLDER@/slurm/task",
                        "FirstJobId=@FIRST@",
                        *(f"NodeName={name} {asked.format(name=name)}" for name in self.names[1:]),
                    ]
                ),
                "${daemons.user}": "@USER@",
                "${daemons.port}": "@PORT_slurmctld@",
                "${daemons.run}": "@FOLDER@/slurm",
                "${daemons.state}": "@FOLDER@/slurm/state",
                "${daemons.logs}": "@FOLDER@/slurm/log",
                "${daemons.suffix}": ".%n",
                "${devices}": "/dev/null",
            }
        )


def render_templates(values: dict[str, str]) -> dict[str, str]:
    """The templates of the Terraform module with these values."""
    names = ("slurm.conf.tftpl", "gres.conf.tftpl", "cgroup.conf")
    texts = {name.removesuffix(".tftpl"): (MODULE / name).read_text(encoding="utf-8") for name in names}
    for mark, value in {**values, "${patience_s}": "15"}.items():
        texts = {name: text.replace(mark, value) for name, text in texts.items()}
    return {**texts, "mpi.conf": "", "plugstack.conf": ""}
