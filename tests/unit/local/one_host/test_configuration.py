"""The files of a Slurm on one computer."""

from __future__ import annotations

import subprocess
from pathlib import Path

from gpucourse.local.one_host import configuration
from tests.slurm_cluster import render_one_host

UID = "course-0123abcd"
FOLDER = Path("/tmp/gpucourse-0123456789ab")


def test_daemons_have_the_configuration_that_fill_in_writes() -> None:
    files = render_one_host(workers=2)
    names = configuration.daemons(files)
    assert names == ["slurmctld", "node1", "node2"]
    filled = configuration.fill_in(
        files,
        host="laptop",
        user="you",
        folder=FOLDER,
        ports={name: 17000 + at for at, name in enumerate(names)},
        first_job=101,
    )
    lines = filled["slurm.conf"].splitlines()
    assert "SlurmctldHost=laptop(127.0.0.1)" in lines
    assert "SlurmctldPort=17000" in lines
    assert "NodeName=node2 NodeHostname=laptop NodeAddr=127.0.0.1 Port=17002" in filled["slurm.conf"]
    assert not [line for line in lines if any(place in line for place in ("=/etc", "=/var", "=/run", "=slurm", "6817"))]
    assert filled["gres.conf"] == "Name=gpu File=/dev/null\n"
    assert [name for name, text in filled.items() if "@" in text] == []


def test_task_prints_the_variables_of_a_task(tmp_path: Path) -> None:
    nodes = tmp_path / "it's a $HOME with blanks"
    program = tmp_path / configuration.TASK
    program.write_text(configuration.task(UID, nodes, nodes / "slurm" / "slurm.conf"), encoding="utf-8")
    program.chmod(0o755)
    result = subprocess.run([program], env={"SLURMD_NODENAME": "node2"}, capture_output=True, text=True, check=True).stdout
    assert result.splitlines() == [
        f"export GPUCOURSE_STACK_UID={UID}",
        f"export GPUCOURSE_NODE_UID={UID}/node2",
        "export GPUCOURSE_NODE=node2",
        f"export SLURM_CONF={nodes}/slurm/slurm.conf",
        f"export HOME={nodes}/node2/home",
        "unset GPUCOURSE_SESSION",
    ]


def test_first_job_differs_between_clusters() -> None:
    first = {configuration.first_job(f"course-{number}") for number in range(40)}
    assert len(first) > 20
    assert all(1 <= number < 10_000 for number in first)
    assert configuration.first_job(UID) == configuration.first_job(UID)
