"""The main path: deploy 3, run 3.2 --nodes 2, destroy --all, with real Terraform, real SSH and real torchrun."""

from __future__ import annotations

import hashlib
import json
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.parts import need
from tests.system import scripts
from tests.system.cli import Learner, Typed, wait_for_words
from tests.waiting import STUCK_S

pytestmark = pytest.mark.system

SMALL = [word for value in ("hidden=64", "samples=512", "batch_size=64", "steps=10") for word in ("--set", value)]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Learner, Typed]]:
    """Yield a learner who deployed the lab of module 3 and ran 3.2 on both nodes, with the output of the run."""
    learner = Learner(tmp_path_factory.mktemp("whole") / 'it\'s my "work" space')
    learner.takes_ports()
    with learner.leaves_nothing():
        plan = learner.types("deploy", "3", "--dry-run")
        assert "terraform_data.node[1]" in plan.out
        assert learner.documents("status")["stacks"] == []
        assert not learner.stack_folder().exists()
        assert "2 ready" in learner.types("deploy", "3").out
        yield learner, learner.types("run", "3.2", "--nodes", "2", "--set", "epochs=2", *SMALL)


def test_run_shows_both_ranks_a_table_and_a_verdict(finished: tuple[Learner, Typed]) -> None:
    _, ran = finished
    assert "[n0 r0]" in ran.err
    assert "[n1 r1]" in ran.err
    assert "messages" in ran.out
    assert "passed" in ran.out
    assert "simulated nodes (mode: local)" in ran.out
    assert "\x1b" not in ran.out + ran.err


def test_record_contains_logs_metrics_environment_pictures_and_seals(finished: tuple[Learner, Typed]) -> None:
    learner, _ = finished
    folder = learner.run_folder()
    metrics = json.loads((folder / "metrics.json").read_text())
    assert (metrics["mode"], metrics["world_size"]) == ("local", 2)
    assert [end["group"] for end in learner.newest_run()["rank_exits"]] == [2, 2], "as torch itself told"
    assert {"node0", "node1"} == set(json.loads((folder / "env.json").read_text())["nodes"])
    for name in ("run.json", "plan.json", "env.json", "metrics.json", "verdict.json", "hashes.json"):
        assert json.loads((folder / name).read_text())["mode"] == "local", name
    assert "mode:&#160;local" in (folder / "screen.svg").read_text()
    for rank in (0, 1):
        node_log = learner.stack_folder() / f"nodes/node{rank}/home/.gpucourse/jobs" / folder.name / f"logs/rank{rank}.log"
        assert (folder / f"logs/node{rank}-rank{rank}.log").read_bytes() == node_log.read_bytes()
    pictures = list(folder.glob("*.png"))
    assert pictures
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures)
    for name, digest in json.loads((folder / "hashes.json").read_text())["sha256"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest, name


def test_plain_ssh_scp_and_rsync_use_the_configuration(finished: tuple[Learner, Typed], tmp_path: Path) -> None:
    lab, _ = finished
    config = str(lab.stack_folder() / "ssh_config")
    (tmp_path / "file").write_bytes(b"\x00\xffdata")
    reply = subprocess.run(
        [need("ssh"), "-F", config, "node1", "echo $GPUCOURSE_NODE"], capture_output=True, text=True, check=True
    )
    assert reply.stdout == "node1\n"
    result = subprocess.run(  # what a line in ~/.ssh/config would include
        [need("ssh"), "-F", str(lab.stack_folder() / "ssh_hosts"), "gpucourse-3-node1", "true"], check=False
    )
    assert result.returncode == 0
    subprocess.run([need("scp"), "-q", "-F", config, str(tmp_path / "file"), "node1:copy"], check=True)
    # rsync splits the command after -e at blanks.
    command = [need("rsync"), "-e", "ssh -F ssh_config", "node1:copy", str(tmp_path / "back")]
    subprocess.run(command, cwd=lab.stack_folder(), check=True)
    assert (tmp_path / "back").read_bytes() == b"\x00\xffdata"
    assert lab.types("ssh", "3", "--node", "1", "--", "cat", "copy", code=0).out.startswith("\x00")
    assert lab.types("ssh", "3", "--", "exit 7", code=7)


def test_destroy_leaves_nothing_but_what_was_handed_in_and_the_logs(finished: tuple[Learner, Typed]) -> None:
    learner, _ = finished
    handed_in = learner.workspace / "deliverables" / "3.2"
    ports = [int(port) for port in re.findall(r"127\.0\.0\.1:(\d+)", learner.types("status").out)]
    assert len(ports) == 2
    receipt = learner.documents("destroy", "--all", "--yes")["receipts"][0]
    assert receipt["leftovers"] == []
    assert sorted(receipt["removed"]) == sorted(receipt["existed"])
    assert learner.processes() == []
    assert not learner.stack_folder().exists()
    for port in ports:
        with socket.socket() as caller:
            assert caller.connect_ex(("127.0.0.1", port)) != 0
    assert json.loads((handed_in / "verdict.json").read_text())["verdict"] == "passed"
    assert not any(path.is_symlink() for path in handed_in.rglob("*"))
    assert learner.types("logs", "--rank", "1").out.count("epoch") == 2


@pytest.mark.slow
def test_second_terminal_follows_and_ctrl_c_detaches(lab: Learner, tmp_path: Path) -> None:
    first = lab.begins("run", "--script", scripts.write(tmp_path, "brief"), "--launcher", "python")
    wait_for_words(first, b"step 3 ")
    second = lab.begins("logs", "-f")
    first.send_signal(signal.SIGINT)
    _, messages = first.communicate(timeout=STUCK_S)
    assert first.returncode == 130
    assert b"keeps running" in messages
    assert b"logs" in messages
    _, output = second.communicate(timeout=STUCK_S)
    assert second.returncode == 0, output.decode()
    for rank in (0, 1):
        log = (lab.run_folder() / f"logs/node{rank}-rank{rank}.log").read_text()
        assert log == "".join(f"step {step} of rank {rank}\n" for step in range(60))
        assert output.decode().count(f"of rank {rank}") == 60
    assert lab.newest_run()["state"] == "succeeded"


@pytest.mark.slow
def test_lab_grows_and_shrinks_and_stays_as_it_is_if_it_is_deployed_again(learner: Learner) -> None:
    learner.types("deploy", "3", "--nodes", "1")
    larger = learner.documents("deploy", "3", "--nodes", "3")
    assert [node["name"] for node in larger["deployment"]["nodes"]] == ["node0", "node1", "node2"]
    assert [address for action, address in larger["changes"] if action != "create"] == ["terraform_data.size"]
    second = learner.documents("deploy", "3", "--nodes", "3")
    assert second["changes"] == []
    assert second["deployment"]["nodes"] == larger["deployment"]["nodes"]
    learner.types("deploy", "3", "--nodes", "2")
    assert [node["healthy"] for node in learner.documents("status")["stacks"][0]["nodes"]] == [True, True]
