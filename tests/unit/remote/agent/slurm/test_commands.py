"""Running Slurm's commands: a missing munged is reported at once, and no message that a command printed is lost."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from gpucourse.remote.agent.slurm import commands
from tests.unit.remote.scripted import Scripted


def program(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Write a squeue for the test."""
    path = folder / "squeue"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)


def test_ask_names_a_munged_that_left_its_socket_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program(tmp_path, monkeypatch, "echo said")
    door = tmp_path / "munge.socket.2"
    assert commands.ask("squeue", munge=str(door)) == "said\n"  # no door: it may be elsewhere
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(door))
        listener.listen()
        assert commands.ask("squeue", munge=str(door)) == "said\n"
    with pytest.raises(commands.Controller, match="munged is gone: no process listens at"):
        commands.ask("squeue", munge=str(door))


def test_ask_quotes_a_command_that_took_too_long(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program(tmp_path, monkeypatch, "echo 'Unable to contact slurm controller' >&2; exec sleep 60")
    with pytest.raises(commands.Controller, match=r"did not answer within 0\.5 s: Unable to contact slurm controller"):
        commands.ask("squeue", munge=str(tmp_path / "none"), timeout_s=0.5)


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("slurm_load_jobs error: Invalid job id specified", commands.UnknownJob),
        ("slurm_load_jobs error: Unable to contact slurm controller", commands.Controller),
    ],
)
def test_ask_raises_unknown_job_when_slurm_has_forgotten_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, message: str, kind: type[commands.Controller]
) -> None:
    program(tmp_path, monkeypatch, f"echo '{message}' >&2; exit 1")
    with pytest.raises(commands.Controller) as caught:
        commands.ask("squeue", munge=str(tmp_path / "none"))
    assert type(caught.value) is kind
    assert caught.value.message == message


def test_environment_keeps_what_the_login_sets_for_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {
        "SBATCH_ACCOUNT": "abc123", "SLURM_ACCOUNT": "abc123", "SBATCH_PARTITION": "gpu", "SLURM_PARTITION": "gpu",
        "SBATCH_QOS": "course", "SBATCH_RESERVATION": "course24", "SBATCH_CONSTRAINT": "ib", "SBATCH_GRES": "gpu:a100:1",
        "SBATCH_GPUS_PER_NODE": "1", "SBATCH_MEM_PER_NODE": "8G", "SBATCH_EXPORT": "ALL", "SBATCH_TIMELIMIT": "5",
        "SLURM_CONF": "/etc/x/slurm.conf", "SBATCH_REQUEUE": "1", "SBATCH_CLUSTERS": "big",
    }  # fmt: skip
    dropped = (
        "SBATCH_OUTPUT", "SBATCH_ERROR", "SBATCH_INPUT", "SBATCH_OPEN_MODE", "SBATCH_JOB_NAME", "SBATCH_ARRAY_INX",
        "SBATCH_WAIT", "SBATCH_CHDIR", "SLURM_JOB_NAME", "SLURM_SUBMIT_DIR", "SLURM_WORKING_DIR", "SLURM_REMOTE_CWD",
        "SLURM_STDOUTMODE",
        "SQUEUE_FORMAT", "SINFO_FORMAT", "SACCT_FORMAT", "SSH_TTY",
    )  # fmt: skip
    for name, value in {**variables, **dict.fromkeys(dropped, "/elsewhere")}.items():
        monkeypatch.setenv(name, value)
    environment = commands.environment()
    assert environment.items() >= variables.items()
    assert not {*dropped} & {*environment}
    assert environment["SLURM_CLUSTERS"] == "big", "squeue and scancel look there, too"
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    job_variables = commands.environment()
    assert {name for name in job_variables if name.startswith("SLURM_")} == {
        "SLURM_CONF",
        "SLURM_TIME_FORMAT",
        "SLURM_CLUSTERS",
    }
    assert job_variables["SBATCH_ACCOUNT"] == "abc123"


def test_describe_cluster_groups_nodes(script_slurm: Callable[..., Scripted]) -> None:
    script_slurm(
        sinfo="1-00:05:00|2|a[1-2]|gpu*|idle|gpu:a100:4(S:0-1),gpu:1|4|up|none\n1-00:05:00|1|b|gpu*|down*|(null)|4|up|fan\n"
        "infinite|1|b|cpu|down*|(null)|4|inact|fan|tastic\n"
    )
    partitions = commands.describe_cluster()["partitions"]
    assert [(part["name"], part["default"], part["open"], part["max_s"]) for part in partitions] == [
        ("gpu", True, True, 86700),
        ("cpu", False, False, None),
    ]
    nodes = partitions[0]["nodes"]
    assert [(node["name"], node["count"], node["gpus"], node["gpu_types"]) for node in nodes] == [
        ("a[1-2]", 2, 5, ["a100"]),
        ("b", 1, 0, []),
    ]
    row = {"name": "b", "count": 1, "state": "down*", "gpus": 0, "gpu_types": [], "cores": 4, "reason": "fan|tastic"}
    assert partitions[1]["nodes"] == [row]
