from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path
from typing import cast

import pytest

from gpucourse.errors import InfrastructureError, MissingError, NodeUntrusted
from gpucourse.labs.slurm.facts import look, read_facts, read_partitions
from gpucourse.model.node import Node
from gpucourse.model.slurm_settings import SlurmSettings
from gpucourse.ports import CommandResult, Link

SINFO = """\
cpu*|up|5:00|2|4|(null)|idle
gpu|up|1-00:00:00|1|8|gpu:a100:4(S:0-1)|mixed
gpu|up|1-00:00:00|3|64|gpu:v100:8|idle
gpu|up|1-00:00:00|1|8|gpu:a100:4|drained
big|down|infinite|4000|128|gpu:8|allocated
nonsense
"""
SCONTROL = """\
PartitionName=gpu AllowGroups=ALL AllowAccounts=abc,def AllowQos=ALL DenyAccounts= MaxNodes=2 MaxTime=1-00:00:00
PartitionName=big AllowAccounts=ALL AllowQos=course DenyAccounts=dead MaxNodes=UNLIMITED
PartitionName=gone AllowAccounts=ALL
"""


LOGIN = Node(
    name="login", role="head", address="127.0.0.1", port=22, private_address="", user="me", gpus=0, instance_type="",
    python="", mode="slurm", typed="me@uni",
)  # fmt: skip


class Here:
    """A login node whose commands run on this computer, with these programs on its path."""

    def __init__(self, folder: Path, **programs: str) -> None:
        self.node = LOGIN
        self.folder = folder / "bin"
        self.folder.mkdir()
        for name in ("id", "grep", "sort", "head", "tr", "sh"):
            self.put(name, f'exec {shlex.quote(str(find(name)))} "$@"')
        self.put("bash", f'shift; exec {shlex.quote(str(find("bash")))} -c "$@"')  # a login shell would change the path
        for name, text in programs.items():
            self.put(name, text)

    def put(self, name: str, text: str) -> None:
        (self.folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.folder / name).chmod(0o755)

    def run(self, command: str, *, timeout_s: float) -> CommandResult:
        del timeout_s
        command = command.replace(":/usr/local/bin:/usr/bin:/bin", "")  # this computer may have a Slurm of its own
        environ = {"PATH": str(self.folder), "HOME": str(self.folder.parent), "SCRATCH": str(self.folder.parent)}
        result = subprocess.run(["/bin/sh", "-c", command], capture_output=True, env=environ, check=False)
        return CommandResult(code=result.returncode, stdout=result.stdout, stderr=result.stderr)


def find(name: str) -> Path:
    path = shutil.which(name)
    assert path is not None
    return Path(path)


def make_slurm(folder: Path, **changes: str) -> Link:
    programs = {
        "sinfo": f"printf %s {shlex.quote(SINFO)}",
        "scontrol": f'case $* in *partition) printf %s {shlex.quote(SCONTROL)};; *) echo "ClusterName             = uni"; '
        'echo "MinJobAge               = 300 sec"; echo "AccountingStorageEnforce = associations,limits";; esac',
        "sacctmgr": 'case $* in *user\\ *) echo dead;; *) echo "dead|normal|"; echo "abc|normal,course|7";; esac',
        "sacct": "exit 0",
        "module": "echo PyTorch/2.5; echo cuda/12.4; echo gcc/13",
    }
    programs |= dict.fromkeys(("sbatch", "squeue", "scancel"), "") | changes
    return cast("Link", Here(folder, **{name: text for name, text in programs.items() if text != "missing"}))


def test_read_partitions_groups_the_nodes_of_each() -> None:
    cpu, gpu, big = read_partitions(SINFO.splitlines(), SCONTROL.splitlines())
    assert (cpu.name, cpu.default, cpu.open, cpu.max_s, cpu.nodes, cpu.gpus) == ("cpu", True, True, 300, 2, 0)
    assert (gpu.nodes, gpu.usable, gpu.gpus, gpu.gpu_nodes, gpu.cores) == (5, 4, 8, 5, 64)
    assert (gpu.gpu_types, gpu.accounts, gpu.max_nodes) == ({"a100": 2, "v100": 3}, ("abc", "def"), 2)
    assert (big.open, big.max_s, big.gpu_types, big.qos, big.denied_accounts) == (False, None, {}, ("course",), ("dead",))
    assert big.max_nodes is None


def test_look_asks_everything_in_one_request(tmp_path: Path) -> None:
    facts = look(make_slurm(tmp_path), SlurmSettings(folder="$SCRATCH"))
    assert [partition.name for partition in facts.partitions] == ["cpu", "gpu", "big"]
    assert (facts.cluster, facts.accounts, facts.qos) == ("uni", ("dead", "abc"), ("normal", "course"))
    assert (facts.enforced, facts.has_sacct) == (("associations", "limits"), True)
    assert facts.min_job_age_s == 300
    assert facts.modules == ("PyTorch/2.5", "cuda/12.4")
    assert facts.folder == str(tmp_path)


def test_look_works_without_accounting(tmp_path: Path) -> None:
    facts = look(make_slurm(tmp_path, sacctmgr="exit 1", sacct="exit 1", module="missing"), SlurmSettings())
    assert (facts.accounts, facts.has_sacct, facts.modules, facts.folder) == ((), False, (), "")


@pytest.mark.parametrize(
    ("changes", "folder", "kind", "text"),
    [
        ({"sbatch": "missing"}, "", MissingError, "me@uni has no Slurm: there is no sbatch"),
        ({"sinfo": "echo no answer >&2; exit 1"}, "", InfrastructureError, r"Slurm does not answer \(no answer\)"),
        ({}, "/nowhere", MissingError, r"has no folder /nowhere"),
        ({}, "$NOWHERE", MissingError, r"has no folder \$NOWHERE .*the variable is not set there"),
        ({}, "$NOWHERE/me", MissingError, r"has no folder \$NOWHERE/me .*the variable is not set there"),
        ({"sinfo": "echo 'gpu|up|1:00|999999999|1|x|idle'"}, "", NodeUntrusted, "Slurm's description"),
        ({"sinfo": "echo 'a$b|up|1:00|1|1|x|idle'"}, "", NodeUntrusted, "Slurm's description of its cluster"),
    ],
)
def test_look_says_what_is_wrong(
    tmp_path: Path, changes: dict[str, str], folder: str, kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind, match=text):
        look(make_slurm(tmp_path, **changes), SlurmSettings(folder=folder))


def test_read_facts_ignores_what_a_start_file_prints(tmp_path: Path) -> None:
    text = "Welcome\npart default\nnot ours\n\nm default\nabc\n\nm sacct\nyes\n"
    facts = read_facts(make_slurm(tmp_path), text, "m")
    assert (facts.accounts, facts.has_sacct, facts.partitions) == (("abc",), True, [])
