"""The files of a Slurm whose daemons share one computer, as its Terraform module would render them."""

from __future__ import annotations

from pathlib import Path

MODULE = Path(__file__).resolve().parents[1] / "terraform" / "modules" / "slurm"
NODE = (
    "NodeName={name} NodeHostname=@HOST@ NodeAddr=127.0.0.1 Port=@PORT_{name}@ CPUs=4 RealMemory=2000 Gres=gpu:1 State=UNKNOWN"
)


def render_one_host(workers: int) -> dict[str, str]:
    """Return the templates with the values that the stack gives them if namespaces are refused."""
    values = {
        "${head.name}": "@HOST@",
        "${head.address}": "127.0.0.1",
        "${names}": f"node[1-{workers}]",
        "${lines}": "\n".join(
            [
                "SlurmdUser=@USER@",
                "AuthInfo=socket=@FOLDER@/munge.sock",
                "TaskProlog=@FOLDER@/slurm/task",
                "FirstJobId=@FIRST@",
                *(NODE.format(name=f"node{index}") for index in range(1, workers + 1)),
            ]
        ),
        "${daemons.user}": "@USER@",
        "${daemons.port}": "@PORT_slurmctld@",
        "${daemons.run}": "@FOLDER@/slurm",
        "${daemons.state}": "@FOLDER@/slurm/state",
        "${daemons.logs}": "@FOLDER@/slurm/log",
        "${daemons.suffix}": ".%n",
        "${devices}": "/dev/null",
        "${patience_s}": "15",
    }
    names = ("slurm.conf.tftpl", "gres.conf.tftpl", "cgroup.conf")
    texts = {name.removesuffix(".tftpl"): (MODULE / name).read_text(encoding="utf-8") for name in names}
    for mark, value in values.items():
        texts = {name: text.replace(mark, value) for name, text in texts.items()}
    return {**texts, "mpi.conf": "", "plugstack.conf": ""}
