"""`--target here`: this computer as one node, without a GPU and with one that is played by the processor."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpucourse.local import processes
from tests.parts import needs_namespaces
from tests.system.cli import COMMAND, Learner
from tests.system.exercising import FAKE_GPU, needs_torch
from tests.waiting import until

NONE_LISTED = '{"torch": "2.11.0", "gpus": []}'  # answers of torch to deploy, so that torch is not imported again
LISTED = '{"torch": "2.11.0", "gpus": ["NVIDIA L4"]}'


@pytest.fixture
def learner(tmp_path: Path) -> Iterator[Learner]:
    """Yield a learner with an empty workspace. All labs are taken down at the end."""
    student = Learner(tmp_path / "w")
    yield student
    student.types("destroy", "--all", "--discard", "--yes")


def give_gpu(learner: Learner, script: str) -> None:
    """Let labs use a Python with this script. In the script, python_here means this Python, and `$@` its arguments."""
    python = learner.workspace.parent / "python"
    python.write_text(f"#!/bin/sh\n{script.replace('python_here', sys.executable)}\n")
    python.chmod(0o755)
    learner.takes_ports(node_python=str(python))


def carriers(learner: Learner, uid: str) -> list[int]:
    """Return the processes of a lab that are alive."""
    return processes.list_carriers(processes.marker(processes.STACK, uid))


def record(learner: Learner) -> dict[str, object]:
    """Return the record of module 1's lab, or an empty one if there is none yet."""
    path = learner.workspace / ".gpucourse" / "deployments" / "01-here.json"
    return dict(json.loads(path.read_text())) if path.exists() else {}


@pytest.mark.slow
@needs_torch
def test_deploy_here_says_that_there_is_no_gpu(learner: Learner) -> None:
    message = learner.types("deploy", "1", "--target", "here", code=3).err
    assert "no GPU here: use simulated nodes\n→ gpucourse deploy 1 --target local" in message
    assert record(learner) == {}
    give_gpu(learner, f'case "$2" in *device_count*) echo \'{NONE_LISTED}\' ;; *) exec python_here "$@" ;; esac')
    examined = learner.types("doctor", "--target", "here", "--json", code=3).document
    [gpu] = [finding for finding in examined["findings"] if finding["what"] == "GPU"]
    assert (gpu["state"], gpu["detail"]) == ("missing", "no GPU here: use simulated nodes")
    assert "none in this computer; simulated nodes need none" in learner.types("doctor", "--target", "local", code=None).out


@needs_torch
@pytest.mark.slow
def test_lab_here_serves_with_a_gpu_and_leaves_nothing(learner: Learner) -> None:
    give_gpu(learner, f'PYTHONPATH="{FAKE_GPU}:$PYTHONPATH" OMP_NUM_THREADS=1 exec python_here "$@"')
    assert "lab of module 1 is ready" in learner.types("deploy", "1", "--target", "here").out
    [lab] = learner.documents("status")["stacks"]
    [node] = lab["deployment"]["nodes"]
    assert (lab["healthy"], node["mode"], node["gpus"], node["instance_type"]) == (True, "here", 1, "NVIDIA H100 80GB HBM3")
    learner.types("run", "1.1", "--set", "small=64", "--set", "size=128", code=None)
    run = learner.newest_run()
    verdict = json.loads((learner.run_folder() / "verdict.json").read_text())
    assert (run["mode"], run["state"], verdict["mode"]) == ("here", "succeeded", "here")
    assert "not_measured" not in [c["verdict"] for c in verdict["checks"] if c["evidence"] == "gpu"], "it counts as a GPU's"
    assert "NVIDIA H100" in (learner.run_folder() / "metrics.json").read_text()
    assert "this script computes on cuda:0" in learner.types("logs").out
    assert "gpucourse run 1.1" in learner.types("show", "1.1").out
    assert learner.types("ssh", "1", "--node", "0", "--", "echo $GPUCOURSE_NODE").out == "node0\n"
    learner.types("destroy", "1")
    [receipt] = [json.loads(path.read_text()) for path in (learner.workspace / "receipts").glob("*.json")]
    assert (receipt["mode"], receipt["removed"], receipt["swept"], receipt["leftovers"]) == ("here", ["node0"], [], [])
    assert carriers(learner, receipt["uid"]) == []
    assert list((learner.workspace / ".gpucourse" / "stacks").iterdir()) == []


@pytest.mark.slow
@needs_namespaces()
@needs_torch
def test_lab_here_serves_in_a_container(learner: Learner, tmp_path: Path) -> None:
    give_gpu(learner, f'PYTHONPATH="{FAKE_GPU}:$PYTHONPATH" OMP_NUM_THREADS=1 exec python_here "$@"')
    script = """mount -t proc proc /proc
        GPUCOURSE_WORKSPACE="$EMPTY" "$@" deploy 1 --target here
        "$@" deploy 1 --target here && "$@" run 1.1 --set small=64 --set size=128
        "$@" destroy 1 --yes && ls -d /proc/[0-9]* | wc -l"""
    container = [*"unshare --user --map-root-user --mount --pid --fork --uts --ipc sh -c".split(), script, "sh"]
    environ = {**learner.environment, "EMPTY": str(tmp_path / "empty")}
    result = subprocess.run([*container, *COMMAND], env=environ, capture_output=True, text=True, check=False)
    assert "no GPU here: use simulated nodes" in result.stderr
    assert "lab of module 1 is ready" in result.stdout
    assert "this script computes on cuda:0" in result.stdout + result.stderr
    assert learner.newest_run()["state"] == "succeeded"
    assert "nothing is left" in result.stdout
    assert int(result.stdout.split()[-1]) <= 4, "sh, and what counts"


@pytest.mark.slow
def test_destroy_finds_all_of_a_killed_deploy(learner: Learner) -> None:
    moment = ".gpucourse/stacks/01-here/nodes/host.json"
    give_gpu(learner, f'case "$2" in *device_count*) echo \'{LISTED}\' ;; *) exec python_here "$@" ;; esac')
    deploy = learner.begins("deploy", "1", "--target", "here")
    until((learner.workspace / moment).exists, f"{moment} is there")
    deploy.send_signal(signal.SIGKILL)
    deploy.communicate()
    uid = str(record(learner)["uid"])
    learner.types("destroy", "1", "--yes")
    assert carriers(learner, uid) == []
    assert record(learner) == {}
