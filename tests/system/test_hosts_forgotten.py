"""Labs on machines that cannot be reached any more: said so, and forgotten on request, with what may be left."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.openssh import Server, openssh_nodes
from tests.system.cli import Learner
from tests.system.test_hosts import (
    OWN,
    SLEEPS,
    format_hosts,
    learner,
    list_left_files,
    servers,
    write_known_hosts,
    write_script,
)
from tests.waiting import STUCK_S

__all__ = ["learner", "servers"]
pytestmark = pytest.mark.system


def end(server: Server) -> None:
    server.process.terminate()
    server.process.wait(STUCK_S)


def read_receipt(learner: Learner) -> dict[str, Any]:
    return dict(json.loads(max((learner.workspace / "receipts").glob("*.json")).read_text()))


def test_forget_unreachable_forgets_a_lab_when_a_machine_is_gone(learner: Learner, servers: list[Server]) -> None:
    write_known_hosts(learner, servers)
    gone = format_hosts(servers).split(",")[1]
    learner.types("deploy", "3", "--hosts", format_hosts(servers))
    script = write_script(learner, "own.py", OWN)
    learner.types("run", "--nodes", "2", "--launcher", "python", "--script", script)
    sleeper = write_script(learner, "sleeper.py", SLEEPS)
    learner.types("run", "--script", sleeper, "--launcher", "python", "--nodes", "2", "--detach")
    run = learner.newest_run()["id"]
    end(servers[1])
    shown = learner.types("status").out
    assert "1 of 2" in shown
    assert "does not answer SSH" in shown
    refused = learner.types("destroy", "3", code=7)
    assert f"{gone} does not answer SSH" in refused.err
    assert "gpucourse destroy 3 --forget-unreachable" in " ".join(refused.err.split())
    assert "--forget-unreachable" in " ".join(learner.types("destroy", "3", "--discard", code=7).err.split())

    typed = learner.types("destroy", "3", "--forget-unreachable", "--json", code=8)
    error = typed.document["error"]
    assert error["code"] == "leftover"
    assert f"{gone}: processes of 2 runs and the folder ~/.gpucourse" in error["what"]
    [receipt] = typed.document["receipts"]
    [forgotten] = receipt["forgotten"]
    assert f".gpucourse/jobs/{run}" in forgotten["remove"]
    assert forgotten["remove"].startswith(f"ssh -p {servers[1].node.port} ")
    assert (receipt["leftovers"], len(receipt["removed"])) == ([], 1)
    assert read_receipt(learner)["forgotten"] == [forgotten]
    assert list_left_files(servers[:1]) == [], "the machine that answers is cleaned"
    assert list_left_files(servers[1:])
    assert learner.documents("status")["stacks"] == []
    assert "Nothing is deployed" in learner.types("destroy", "3").out


@pytest.mark.slow
def test_command_of_the_receipt_removes_what_was_left(tmp_path: Path) -> None:
    learner = Learner(tmp_path / "work space")
    learner.takes_ports()
    with openssh_nodes(tmp_path / "machines", 1, learner.workspace / ".gpucourse/keys/id_ed25519") as servers:
        write_known_hosts(learner, servers)
        learner.types("deploy", "1", "--hosts", format_hosts(servers))
        learner.types("run", "--script", write_script(learner, "s.py", SLEEPS), "--launcher", "python", "--detach")
        (Path(learner.environment["HOME"]) / ".ssh" / "known_hosts").unlink()
        key = learner.workspace / ".gpucourse/keys/id_ed25519"
        key.rename(tmp_path / "kept")
        learner.types("destroy", "1", "--forget-unreachable", code=8)
        [forgotten] = read_receipt(learner)["forgotten"]
        command = str(forgotten["remove"])
        assert list_left_files(servers)
        (tmp_path / "kept").rename(key)
        _type_by_hand(command, key)
        left = [path for path in list_left_files(servers) if "/jobs/" in path or "/labs/" in path]
        assert left == []


def _type_by_hand(command: str, key: Path) -> None:
    client = command.replace("ssh ", f"ssh -i '{key}' -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -F none ", 1)
    subprocess.run(client, shell=True, check=True, capture_output=True, timeout=STUCK_S)


@pytest.mark.slow
def test_forget_unreachable_refuses_simulated_nodes(learner: Learner) -> None:
    learner.types("deploy", "1")
    refused = learner.types("destroy", "1", "--forget-unreachable", code=2)
    assert "01-local is never forgotten: it is on this computer, in reach" in " ".join(refused.err.split())
    assert learner.documents("status")["stacks"]
    learner.types("destroy", "1")
