"""Machines that exist already, as the target of a lab: real OpenSSH servers, examined, used, and left as they were."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpucourse.remote.keys import ensure_client_key
from tests.openssh import Server, openssh_nodes
from tests.system.cli import Learner
from tests.waiting import STUCK_S

pytestmark = pytest.mark.system

OWN = "import os; print('rank {RANK} of {WORLD_SIZE} at {MASTER_ADDR}'.format(**os.environ), flush=True)\n"
SLEEPS = "import time\nprint('begun', flush=True)\ntime.sleep(600)\n"


@pytest.fixture
def learner(tmp_path: Path) -> Learner:
    """Return a learner whose machines have a Python without torch, if the tests' own Python is in a virtual environment."""
    learner = Learner(tmp_path / "work space")
    set_python(learner, WITHOUT_TORCH)
    return learner


def write_script(learner: Learner, name: str, text: str) -> str:
    (learner.workspace / name).write_text(text)
    return str(learner.workspace / name)


def set_python(learner: Learner, python: str) -> None:
    """Set the Python of the machines. If it has torch, each machine imports torch for the sum at the end of `deploy`."""
    learner.takes_ports(node_python=python)


@pytest.fixture
def servers(learner: Learner, tmp_path: Path) -> Iterator[list[Server]]:
    """Yield two machines that accept the workspace's own key."""
    with openssh_nodes(tmp_path / "machines", 2, learner.workspace / ".gpucourse/keys/id_ed25519") as running:
        yield running


def format_hosts(servers: list[Server]) -> str:
    return ",".join(f"{server.node.user}@127.0.0.1:{server.node.port}" for server in servers)


def write_known_hosts(learner: Learner, servers: list[Server]) -> None:
    """Add the machines to the learner's known hosts, as one login with plain ssh does."""
    folder = Path(learner.environment["HOME"]) / ".ssh"
    folder.mkdir(exist_ok=True)
    lines = (f"[127.0.0.1]:{server.node.port} {server.node.host_key}\n" for server in servers)
    (folder / "known_hosts").write_text("".join(lines))


def list_left_files(servers: list[Server]) -> list[str]:
    return [str(path) for server in servers for path in server.home.rglob("*")]


WITHOUT_TORCH = sys._base_executable  # type: ignore[attr-defined]


@pytest.mark.parametrize("python", [WITHOUT_TORCH, pytest.param(sys.executable, marks=pytest.mark.slow)], ids=["", "torch"])
def test_machines_serve_from_their_first_fingerprint_to_destroy(learner: Learner, servers: list[Server], python: str) -> None:
    set_python(learner, python)
    error = learner.types("deploy", "3", "--hosts", format_hosts(servers), "--json", code=3).document["error"]
    assert error["code"] == "unknown_hosts"
    assert error["what"].count("SHA256:") == 2
    trust = error["hint"][error["hint"].index("--trust") :].split()
    rehearsed = learner.types("deploy", "3", "--hosts", format_hosts(servers), *trust, "--dry-run")
    assert "2 to create" in rehearsed.out
    assert list_left_files(servers) == []
    assert learner.documents("status")["stacks"] == []

    thesis, other_job = servers[0].home / "thesis.tex", servers[0].home / ".gpucourse" / "jobs" / "of-another-user"
    thesis.write_text("mine")
    other_job.mkdir(parents=True)
    learner.types("deploy", "3", "--hosts", format_hosts(servers), *trust)
    document = learner.documents(
        "deploy", "3", "--target", "hosts"
    )  # the trust is stored, and the names need not be typed again
    inventory = document["deployment"]["nodes"]
    assert [node["mode"] for node in inventory] == ["hosts", "hosts"]
    assert [node["python"] for node in inventory] == [python] * 2
    assert all(node["private_address"] for node in inventory)
    [stack] = learner.documents("status")["stacks"]
    assert (stack["healthy"], stack["deployment"]["stack"]) == (True, "03-hosts")
    assert learner.types("ssh", "3", "--node", "1", "--", "echo $HOME").out.strip() == str(servers[1].home)

    script = write_script(learner, "own.py", OWN)  # deploy has tested that the ranks meet
    ran = learner.types("run", "--nodes", "2", "--launcher", "python", "--script", script, code=None)
    record = learner.newest_run()
    assert (record["state"], record["mode"], record["world_size"]) == ("succeeded", "hosts", 2), ran.err + ran.out
    logs = learner.types("logs", record["id"])
    assert f"rank 1 of 2 at {inventory[0]['private_address']}" in logs.out + logs.err

    write_known_hosts(learner, servers)
    learner.types("deploy", "1", "--hosts", format_hosts(servers[:1]))
    assert "another lab of yours uses this machine too" in learner.types("destroy", "3").err
    assert list_left_files(servers[1:]) == []
    receipt = json.loads(next((learner.workspace / "receipts").glob("*.json")).read_text())
    assert (receipt["mode"], len(receipt["removed"]), receipt["leftovers"]) == ("hosts", 2, [])
    assert "nothing is left" in learner.types("destroy", "1").out
    assert learner.documents("status")["stacks"] == []
    assert thesis.read_text() == "mine"
    assert other_job.is_dir()
    assert not list((servers[0].home / ".gpucourse" / "labs").iterdir())
    assert all(server.process.poll() is None for server in servers), "the machines themselves are not ours to end"


def test_deploy_sends_nothing_to_a_machine_with_another_key(learner: Learner, servers: list[Server]) -> None:
    write_known_hosts(learner, [servers[1], servers[0]])
    folder = Path(learner.environment["HOME"]) / ".ssh"
    swapped = [(servers[0], servers[1]), (servers[1], servers[0])]
    lines = (f"[127.0.0.1]:{first.node.port} {impostor.node.host_key}\n" for first, impostor in swapped)
    (folder / "known_hosts").write_text("".join(lines))
    result = learner.types("deploy", "3", "--hosts", format_hosts(servers), code=7)
    assert "shows a different host key" in result.err
    assert f"ssh-keygen -R '[127.0.0.1]:{servers[0].node.port}'" in " ".join(result.err.split())
    assert "node0" not in result.err
    assert list_left_files(servers) == []


def test_deploy_uses_the_key_of_the_learner(tmp_path: Path) -> None:
    learner = Learner(tmp_path / "work space")
    key = Path(learner.environment["HOME"]) / ".ssh" / "id_ed25519"
    with openssh_nodes(tmp_path / "machines", 1, key) as servers:
        write_known_hosts(learner, servers)
        learner.types("deploy", "1", "--hosts", format_hosts(servers))
        assert learner.types("ssh", "1", "--", "echo", "in").out == "in\n"
        learner.types("destroy", "1")
        stranger_key = tmp_path / "other"
        ensure_client_key(stranger_key)
        refusal = learner.types("deploy", "1", "--hosts", format_hosts(servers), "--key", str(stranger_key), code=7)
        assert "ssh-copy-id -i" in refusal.err
        assert "ssh-agent" not in refusal.err
        key.rename(tmp_path / "elsewhere")
        result = learner.types("deploy", "1", "--hosts", format_hosts(servers), code=7, SSH_AUTH_SOCK="/tmp/agent")
        assert "ssh-copy-id -i" in result.err
        assert "Keys that only ssh-agent holds are not used" in " ".join(result.err.split())
        assert list_left_files(servers) == []


def test_login_node_of_slurm_computes_only_if_that_is_typed(learner: Learner, tmp_path: Path) -> None:
    key, shell = learner.workspace / ".gpucourse/keys/id_ed25519", 'PATH=~/bin:$PATH; export PATH; eval "$SSH_ORIGINAL_COMMAND"'
    with openssh_nodes(tmp_path / "cluster", 1, key, shell=shell) as servers:
        write_known_hosts(learner, servers)
        home, host = servers[0].home, format_hosts(servers)
        (home / "bin").mkdir()
        for name in ("sbatch", "squeue", "sinfo", "scancel"):
            (home / "bin" / name).write_text("#!/bin/sh\nprintf 'gpu1\\ngpu2\\n'\n")
            (home / "bin" / name).chmod(0o755)
        before = list_left_files(servers)
        result = learner.types("deploy", "3", "--hosts", host, code=2)
        assert "is a login node of a Slurm cluster, and runs of this lab would compute on it" in result.err
        assert f"gpucourse deploy 3 --target slurm --login {host}" in " ".join(result.err.split())
        result = learner.types("deploy", "2", "--hosts", host, code=2)
        assert f"gpucourse deploy 2 --target slurm --login {host}" in " ".join(result.err.split())
        assert list_left_files(servers) == before
        learner.types("deploy", "3", "--hosts", host, "--on-login-node")
        assert "ready" in learner.types("deploy", "3", "--hosts", host).out, "it is on record"


def test_deploy_names_a_machine_given_twice(learner: Learner, servers: list[Server]) -> None:
    write_known_hosts(learner, servers)
    host = format_hosts(servers[:1])
    with (Path(learner.environment["HOME"]) / ".ssh" / "known_hosts").open("a") as file:
        file.write(f"[localhost]:{servers[0].node.port} {servers[0].node.host_key}\n")
    duplicate = learner.types("deploy", "3", "--hosts", f"{host},{host.replace('127.0.0.1', 'localhost')}", code=2)
    assert "are the same machine" in duplicate.err
    assert list_left_files(servers) == []


def end(server: Server) -> None:
    server.process.terminate()
    server.process.wait(STUCK_S)


def read_receipt(learner: Learner) -> dict[str, Any]:
    return dict(json.loads(max((learner.workspace / "receipts").glob("*.json")).read_text()))


@pytest.mark.slow
def test_forget_unreachable_forgets_a_lab_when_a_machine_is_gone(learner: Learner, servers: list[Server]) -> None:
    write_known_hosts(learner, servers)
    host = format_hosts(servers).split(",")[1]
    learner.types("deploy", "3", "--hosts", format_hosts(servers))
    sleeper = write_script(learner, "sleeper.py", SLEEPS)
    learner.types("run", "--script", sleeper, "--launcher", "python", "--nodes", "2", "--detach")
    run = learner.newest_run()["id"]
    end(servers[1])
    output = learner.types("status").out
    assert "1 of 2" in output
    assert "does not answer SSH" in output
    refusal = learner.types("destroy", "3", code=7)
    assert f"{host} does not answer SSH" in refusal.err
    assert "gpucourse destroy 3 --forget-unreachable" in " ".join(refusal.err.split())
    assert "--forget-unreachable" in " ".join(learner.types("destroy", "3", "--discard", code=7).err.split())

    result = learner.types("destroy", "3", "--forget-unreachable", "--json", code=8)
    error = result.document["error"]
    assert error["code"] == "leftover"
    assert f"{host}: processes of 1 run and the folder ~/.gpucourse" in error["what"]
    [receipt] = result.document["receipts"]
    [lab_entry] = receipt["forgotten"]
    assert f".gpucourse/jobs/{run}" in lab_entry["remove"]
    assert lab_entry["remove"].startswith(f"ssh -p {servers[1].node.port} ")
    assert (receipt["leftovers"], len(receipt["removed"])) == ([], 1)
    assert read_receipt(learner)["forgotten"] == [lab_entry]
    assert list_left_files(servers[:1]) == [], "the machine that answers is cleaned"
    assert list_left_files(servers[1:])
    assert learner.documents("status")["stacks"] == []
    assert "Nothing is deployed" in learner.types("destroy", "3").out
