"""A lab on a cluster as universities run them: examined, tested by a job, used, and left as it was."""

from __future__ import annotations

import json
import shlex
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.system.cli import Learner
from tests.system.exercising import needs_torch
from tests.university import University
from tests.waiting import until

pytestmark = [pytest.mark.system, needs_torch]

TORCH = "module load pytorch/2.13"
APPTAINER = """\
#!/bin/bash
echo "$*" >> /project/stud/calls
[ "$1 $2 $3" = "exec --nv --bind" ] && [ -d "$4" ] && [ -f "$5" ] || exit 255
shift 5
PATH=/opt/sw/pytorch/bin:$PATH exec "$@"
"""
STANDIN = '__version__ = "2.9.0"\nclass version: cuda = None\nclass cuda: is_available = staticmethod(lambda: False)\n'


@pytest.fixture
def learner(university_cluster: University, tmp_path: Path) -> Iterator[Learner]:
    """Return a learner with an account on the cluster. Nothing of the learner stays there."""
    learner = Learner(tmp_path / "work space")
    university_cluster.introduce(tmp_path / "home")
    with learner.leaves_nothing():
        yield learner
    university_cluster.check_nothing_is_left()


def set_up(learner: Learner, **slurm: Any) -> None:
    learner.workspace.mkdir(parents=True, exist_ok=True)
    (learner.workspace / "gpucourse.yaml").write_text(json.dumps({"slurm": slurm}))  # JSON is YAML


def test_deploy_tests_a_cluster_and_destroy_leaves_nothing(university_cluster: University, learner: Learner) -> None:
    set_up(learner, setup=[TORCH], folder="/project/stud")
    report = learner.types("doctor", "--target", "slurm", "--login", "uni", "--json").document
    assert f"  partition: gpu-short\n  cpu_partition: cpu\n  account: abc123\n  setup: [{TORCH}]" in report["settings"]
    learner.types("deploy", "3", "--login", "uni", "--dry-run")
    university_cluster.check_nothing_is_left()

    out = learner.types("deploy", "3", "--target", "slurm", "--login", "uni").out
    assert "on gpu1 and gpu2, with torch" in out
    assert "torch sees no GPU on gpu1" in out
    assert university_cluster.files(user="stud")  # the mark and the probe
    script = learner.workspace / "sleeps.py"
    script.write_text("import time\nprint('begun', flush=True)\ntime.sleep(600)\n")
    learner.types("run", "--script", str(script), "--launcher", "python", "-d")
    until(lambda: any("RUNNING" in job for job in university_cluster.queue()), "the job to run")
    job = university_cluster.inside("adm", "squeue -h -o '%k %a'").split()
    assert (job[0].partition("-")[0], job[1]) == ("gpucourse", "abc123")
    foreign = university_cluster.inside("login1", "sbatch --parsable -A abc123 --wrap 'sleep 60'", user="stud").split()[-1]
    assert "nothing is left" in learner.types("destroy", "3").out
    # the learner's own job, which does not belong to the course, is still there
    assert [line.split()[0] for line in university_cluster.queue()] == [foreign]
    university_cluster.inside("login1", f"scancel {foreign}; rm -f slurm-{foreign}.out", user="stud")
    until(lambda: not university_cluster.queue(), "the queue to be empty")


@pytest.mark.slow  # one message for each place where it can fail: the running job, its folder, and sbatch
@pytest.mark.parametrize(
    ("slurm", "words", "code", "problem"),
    [
        ({}, (), 3, "has no torch"),
        ({"setup": [TORCH], "folder": "/scratch"}, (), 6, "a compute node does not see /scratch"),
        ({"setup": [TORCH]}, ("--account", "dead"), 3, "accounting"),
    ],
)
def test_deploy_leaves_nothing_if_no_job_can_work(
    university_cluster: University, learner: Learner, slurm: dict[str, Any], words: tuple[str, ...], code: int, problem: str
) -> None:
    set_up(learner, **slurm)
    refused = learner.types("deploy", "3", "--login", "uni", *words, code=code)
    assert problem in refused.err
    assert "→" in refused.err
    assert "Nothing is deployed" in learner.types("status").out
    university_cluster.check_nothing_is_left()


@pytest.mark.slow
@pytest.mark.parametrize("words", [("status",), ("run", "3.1", "--no-predict", "--dry-run")], ids=["status", "run"])
def test_next_command_reads_the_result_of_a_probe_that_waited(
    university_cluster: University, learner: Learner, words: tuple[str, ...]
) -> None:
    set_up(learner, setup=[TORCH])
    university_cluster.inside("adm", "scontrol update nodename=gpu[1-2] state=drain reason=maintenance")
    try:
        out = learner.types("deploy", "3", "--login", "uni").out
        assert "not tested yet: the probe" in out
        assert "0 of 2" in out
    finally:
        university_cluster.inside("adm", "scontrol update nodename=gpu[1-2] state=resume")
    until(lambda: not university_cluster.queue(), "the probe to end")
    typed = learner.types(*words)
    assert "torch sees no GPU on gpu1" in typed.out + typed.err


@pytest.mark.slow
def test_container_runs_the_commands_of_probe_and_runs(university_cluster: University, learner: Learner) -> None:
    """A stand-in for Apptainer notes its arguments, and runs the command if the folders and the image exist."""
    project = "/project/stud"
    write = f"mkdir {project}/bin; printf %s {shlex.quote(APPTAINER)} > {project}/bin/apptainer; chmod 700 {project}/bin/*"
    university_cluster.inside("login1", f"{write}; touch {project}/pt.sif", user="stud")
    container = {"apptainer": "$PROJECT/pt.sif"}
    set_up(learner, account="abc123", setup=[f"export PATH={project}/bin:$PATH"], container=container, folder="$PROJECT")
    try:
        assert "with torch" in learner.types("deploy", "3", "--login", "uni").out
        learner.types("run", "3.1", "--no-predict", "--nodes", "2", "--set", "elements=1000")
        calls = university_cluster.inside("login1", f"cat {project}/calls", user="stud").splitlines()
        folder = f"{project}/gpucourse-stud/.gpucourse"
        launch = f"exec --nv --bind {folder} {project}/pt.sif python -m torch.distributed.run"
        assert sum(call.startswith(launch) for call in calls) == 2, "once on each node"
        learner.types("destroy", "3")
    finally:
        university_cluster.inside("login1", f"rm -rf {project}/bin {project}/pt.sif {project}/calls", user="stud")


@pytest.mark.slow
def test_install_makes_an_environment_by_wheels(university_cluster: University, learner: Learner) -> None:
    """Install from wheels that only the login node can see; compute nodes have no network. The wheels are stand-ins with the
    packages' names.
    """
    wheels = university_cluster.folder / "nodes/login1/scratch/wheels"
    wheels.mkdir()
    for name, version in (("numpy", "2.0"), ("psutil", "6.0"), ("torch", "2.9.0"), ("transformers", "5.17.0")):
        with zipfile.ZipFile(wheels / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
            info = f"{name}-{version}.dist-info"
            wheel.writestr(f"{name}/__init__.py", STANDIN if name == "torch" else "")
            wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
            wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{info}/RECORD", "")
    config = (
        "mkdir -p .config/pip; printf '[global]\\nno-index = true\\nfind-links = /scratch/wheels\\n' > .config/pip/pip.conf"
    )
    university_cluster.inside("login1", config, user="stud")
    try:
        out = learner.types("deploy", "3", "--login", "uni", "--install", "--nodes", "1").out
        assert "/home/stud/.gpucourse/venv/bin/python" in out
        assert "with torch 2.9.0" in out
        learner.types("destroy", "3")
    finally:
        university_cluster.inside("login1", "rm -rf .config", user="stud")
        shutil.rmtree(wheels)
