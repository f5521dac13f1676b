"""A lab on AWS from the quote to the last resource, on an account that is a mock: deploy, run, take down."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.aws.learner import CloudLearner, cloud_learner
from tests.system.aws.terminal import Terminal

pytestmark = pytest.mark.system

STACK = "01-aws-t4"
SCRIPT = "import os\nfor name in ('RANK', 'WORLD_SIZE'):\n    print(name, os.environ[name], flush=True)\n"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CloudLearner]:
    """Yield Module 1's node on AWS, up, that was agreed to at a terminal; nothing is left when it is destroyed."""
    with cloud_learner(tmp_path_factory.mktemp("lab")) as learner:
        terminal = Terminal(learner, "deploy", "1", "--target", "aws")
        terminal.shows("[y/N]")
        assert "13 to create" in terminal.screen
        assert learner.list_resources() == [], "nothing is made before the yes"
        terminal.types("y")
        assert terminal.ends() == 0, terminal.screen
        yield learner
        learner.types("destroy", "--all", "--yes", "--discard", timeout=240)
        assert learner.list_resources() == []


def test_deploy_makes_a_tagged_node_with_key_and_schedule_and_enters_it_in_the_ledger(lab: CloudLearner) -> None:
    deployment = lab.deployment(STACK)
    cloud = deployment["cloud"]
    assert deployment["phase"] == "ready"
    assert (cloud["zone"], cloud["instance_type"], cloud["backstop"]) == ("us-east-2a", "g4dn.xlarge", "")
    kinds = [resource.kind for resource in lab.list_resources()]
    assert kinds.count("instance") == kinds.count("volume") == kinds.count("schedule") == 1
    for resource in lab.list_resources("instance", "volume", "vpc", "subnet", "security group", "key pair"):
        assert resource.tags["Stack"] == deployment["uid"]
        assert resource.tags["Expires"] == cloud["expires"]
        assert {"Project", "Course", "Module", "Owner"} <= set(resource.tags)
    [node] = lab.inventory(STACK)
    assert node["host_key"].startswith("ssh-ed25519 ")
    assert (node["gpus"], node["proxy"] != "") == (0, True)
    ledger = [json.loads(line) for line in (lab.workspace / ".gpucourse/ledger.jsonl").read_text().splitlines()]
    assert sorted(entry["kind"] for entry in ledger if entry["event"] == "start") == ["address", "disk", "disk", "instance"]
    assert json.loads((lab.workspace / ".gpucourse/regions.json").read_text())["regions"] == ["us-east-2"]


@pytest.mark.slow
def test_run_brings_the_output_of_the_node_home(lab: CloudLearner, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SCRIPT)
    result = lab.types("run", "--script", str(tmp_path / "mine.py"), "--launcher", "python", timeout=240)
    assert "RANK 0" in result.out + result.err
    assert "simulated nodes" not in result.err
    record = lab.newest_run()
    assert (record["mode"], record["state"], record["world_size"], record["stack"]) == ("aws", "succeeded", 1, STACK)
    assert lab.types("ssh", "1", "--", "echo", "here").out == "here\n"
