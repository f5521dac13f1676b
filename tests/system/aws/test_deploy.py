"""A lab on AWS from the quote to the last resource, on an account that is a mock: deploy, run, heal, take down."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.aws import hand_made
from tests.system.aws.learner import CloudLearner, cloud_learner
from tests.system.aws.terminal import Terminal
from tests.waiting import until

pytestmark = pytest.mark.system

DEPLOY = ("deploy", "3", "--target", "aws")
SCRIPT = "import os\nfor name in ('RANK', 'WORLD_SIZE'):\n    print(name, os.environ[name], flush=True)\n"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CloudLearner]:
    """Two nodes on AWS, up, that were agreed to at a terminal; nothing is left when they are destroyed."""
    with cloud_learner(tmp_path_factory.mktemp("lab")) as learner:
        terminal = Terminal(learner, *DEPLOY)
        terminal.shows("[y/N]")
        assert "17 to create" in terminal.screen
        assert learner.list_resources() == [], "nothing is made before the yes"
        terminal.types("y")
        assert terminal.ends() == 0, terminal.screen
        yield learner
        learner.types("destroy", "--all", "--yes", "--discard", timeout=240)
        assert learner.list_resources() == []


def test_deploy_makes_tagged_nodes_with_keys_and_schedules_and_enters_them_in_the_ledger(lab: CloudLearner) -> None:
    deployment = lab.deployment()
    cloud = deployment["cloud"]
    assert deployment["phase"] == "ready"
    assert (cloud["zone"], cloud["instance_type"], cloud["backstop"]) == ("us-east-2a", "g4dn.2xlarge", "")
    kinds = [resource.kind for resource in lab.list_resources()]
    assert kinds.count("instance") == kinds.count("volume") == kinds.count("schedule") == 2
    for resource in lab.list_resources("instance", "volume", "vpc", "file system", "key pair", "placement group"):
        assert resource.tags["Stack"] == deployment["uid"]
        assert resource.tags["Expires"] == cloud["expires"]
        assert {"Project", "Course", "Module", "Owner"} <= set(resource.tags)
    for node in lab.inventory():
        assert node["host_key"].startswith("ssh-ed25519 ")
        assert (node["gpus"], node["proxy"] != "") == (0, True)
    ledger = [json.loads(line) for line in (lab.workspace / ".gpucourse/ledger.jsonl").read_text().splitlines()]
    assert sorted(entry["kind"] for entry in ledger if entry["event"] == "start") == sorted(
        ["instance", "disk", "disk", "address"] * 2 + ["storage"]  # a disk, and its throughput
    )
    assert json.loads((lab.workspace / ".gpucourse/regions.json").read_text())["regions"] == ["us-east-2"]


def test_run_brings_the_ranks_of_both_nodes_home(lab: CloudLearner, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SCRIPT)
    words = ("--script", str(tmp_path / "mine.py"), "--launcher", "python", "--nodes", "2")
    typed = lab.types("run", *words, timeout=240)
    assert "RANK 1" in typed.err
    assert "simulated nodes" not in typed.err
    record = lab.newest_run()
    assert (record["mode"], record["state"], record["world_size"], record["stack"]) == ("aws", "succeeded", 2, "03-aws-t4")
    assert lab.types("ssh", "3", "--node", "1", "--", "echo", "here").out == "here\n"


@pytest.mark.slow
def test_deploy_again_changes_nothing(lab: CloudLearner) -> None:
    before = lab.deployment()
    [again] = lab.types(*DEPLOY, "--json", timeout=240).document["labs"]
    assert (again["changes"], again["healed"]) == ([], [])
    after = lab.deployment()
    assert [after[name] for name in ("uid", "created")] == [before[name] for name in ("uid", "created")]
    assert [after["cloud"][name] for name in ("zone", "expires")] == [before["cloud"][name] for name in ("zone", "expires")]
    for wrong in (("--spot",), ("--region", "us-west-2"), ("--ttl", "2h")):
        assert "exists already" in lab.types(*DEPLOY, *wrong, "--yes", code=2).err


@pytest.mark.slow
def test_deploy_rebuilds_a_node_that_is_gone_and_no_other(lab: CloudLearner) -> None:
    before = {node["name"]: node for node in lab.inventory()}
    ids = {resource.tags["Node"]: resource.id for resource in lab.list_resources("instance")}
    lab.account.client("ec2").terminate_instances(InstanceIds=[ids["node1"]])
    [healed] = lab.types(*DEPLOY, "--yes", "--json", timeout=240).document["labs"]
    assert [address for address in healed["healed"] if "node1" in address]
    after = {node["name"]: node for node in lab.inventory()}
    assert after["node0"] == before["node0"]
    assert after["node1"]["address"] != before["node1"]["address"]
    now = {resource.tags["Node"]: resource.id for resource in lab.list_resources("instance")}
    assert now["node0"] == ids["node0"]
    until(lambda: len(lab.list_resources("schedule")) >= 2, "a schedule each")
    assert lab.types("ssh", "3", "--node", "1", "--", "echo", "here").out == "here\n"


@pytest.mark.slow
def test_deploy_with_an_older_state_builds_no_node_twice(lab: CloudLearner) -> None:
    """The state of an earlier day, such as from the backup that Terraform leaves."""
    before = hand_made.ids(lab)
    file = lab.workspace / ".gpucourse/stacks/03-aws-t4/terraform/terraform.tfstate"
    state = json.loads(file.read_text())
    state["resources"] = [resource for resource in state["resources"] if resource["type"] != "aws_instance"]
    file.write_text(json.dumps(state))
    typed = lab.types(*DEPLOY, "--yes", timeout=240)
    assert "state does not know all of it, so what exists of it is removed and rebuilt" in typed.out
    assert len(hand_made.ids(lab)) == 2
    assert not set(before) & set(hand_made.ids(lab))
    assert len(lab.list_resources("vpc")) == 1
