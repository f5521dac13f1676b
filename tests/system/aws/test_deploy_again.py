"""`deploy` of labs on AWS: a new lab is tagged and entered in the ledger, and a run works on it. A repeated deploy changes
nothing, replaces a lost node, and copes with an old state. Two GPUs give two labs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.aws import hand_made
from tests.system.aws.courses import write_course
from tests.system.aws.learner import CloudLearner, cloud_learner
from tests.waiting import until

pytestmark = [pytest.mark.system, pytest.mark.slow]

DEPLOY = ("deploy", "3", "--target", "aws")
SCRIPT = "import os\nfor name in ('RANK', 'WORLD_SIZE'):\n    print(name, os.environ[name], flush=True)\n"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CloudLearner]:
    """Yield a learner with the lab of module 3 on AWS."""
    with cloud_learner(tmp_path_factory.mktemp("lab")) as learner:
        learner.types(*DEPLOY, "--yes", timeout=240)
        yield learner
        learner.types("destroy", "--all", "--yes", "--discard", timeout=240)
        assert learner.list_resources() == []


def test_deploy_tags_its_nodes_schedules_their_end_and_enters_them_in_the_ledger(lab: CloudLearner) -> None:
    deployment = lab.deployment()
    cloud = deployment["cloud"]
    assert deployment["phase"] == "ready"
    assert (cloud["zone"], cloud["backstop"]) == ("us-east-2a", "")
    kinds = [resource.kind for resource in lab.list_resources()]
    assert kinds.count("instance") == kinds.count("volume") == kinds.count("schedule") == 2
    for resource in lab.list_resources("instance", "volume", "vpc", "subnet", "security group", "key pair"):
        assert resource.tags["Stack"] == deployment["uid"]
        assert resource.tags["Expires"] == cloud["expires"]
        assert {"Project", "Course", "Module", "Owner"} <= set(resource.tags)
    for node in lab.inventory():
        assert node["host_key"].startswith("ssh-ed25519 ")
        assert (node["gpus"], node["proxy"] != "") == (0, True)
    ledger = [json.loads(line) for line in (lab.workspace / ".gpucourse/ledger.jsonl").read_text().splitlines()]
    entries = [entry["kind"] for entry in ledger if entry["event"] == "start"]
    assert [entries.count(kind) for kind in ("address", "disk", "instance")] == [2, 4, 2]
    assert json.loads((lab.workspace / ".gpucourse/regions.json").read_text())["regions"] == ["us-east-2"]


def test_run_collects_the_output_of_the_node(lab: CloudLearner, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SCRIPT)
    words = ("--script", str(tmp_path / "mine.py"), "--launcher", "python", "--nodes", "1")
    result = lab.types("run", *words, timeout=240)
    assert "RANK 0" in result.out + result.err
    assert "simulated nodes" not in result.err
    record = lab.newest_run()
    assert (record["mode"], record["state"], record["world_size"], record["stack"]) == ("aws", "succeeded", 1, "03-aws-t4")
    assert lab.types("ssh", "3", "--", "echo", "here").out == "here\n"


def test_deploy_again_changes_nothing(lab: CloudLearner) -> None:
    before = lab.deployment()
    [second] = lab.types(*DEPLOY, "--json", timeout=240).document["labs"]
    assert (second["changes"], second["healed"]) == ([], [])
    after = lab.deployment()
    assert [after[name] for name in ("uid", "created")] == [before[name] for name in ("uid", "created")]
    assert [after["cloud"][name] for name in ("zone", "expires")] == [before["cloud"][name] for name in ("zone", "expires")]
    for options in (("--spot",), ("--region", "us-west-2"), ("--ttl", "2h")):
        assert "exists already" in lab.types(*DEPLOY, *options, "--yes", code=2).err


def test_deploy_rebuilds_a_node_that_is_gone_and_no_other(lab: CloudLearner) -> None:
    before = {node["name"]: node for node in lab.inventory()}
    ids = {resource.tags["Node"]: resource.id for resource in lab.list_resources("instance")}
    lab.account.client("ec2").terminate_instances(InstanceIds=[ids["node1"]])
    [healed] = lab.types(*DEPLOY, "--yes", "--json", timeout=240).document["labs"]
    assert [address for address in healed["healed"] if "node1" in address]
    after = {node["name"]: node for node in lab.inventory()}
    assert after["node0"] == before["node0"]
    assert after["node1"]["address"] != before["node1"]["address"]
    new_ids = {resource.tags["Node"]: resource.id for resource in lab.list_resources("instance")}
    assert new_ids["node0"] == ids["node0"]
    until(lambda: len(lab.list_resources("schedule")) >= 2, "a schedule each")
    assert lab.types("ssh", "3", "--node", "1", "--", "echo", "here").out == "here\n"


def test_deploy_with_an_older_state_builds_no_node_twice(lab: CloudLearner) -> None:
    """Deploy with the state of an earlier day, such as Terraform's backup."""
    old_ids = hand_made.ids(lab)
    file = lab.workspace / ".gpucourse/stacks/03-aws-t4/terraform/terraform.tfstate"
    state = json.loads(file.read_text())
    state["resources"] = [resource for resource in state["resources"] if resource["type"] != "aws_instance"]
    file.write_text(json.dumps(state))
    result = lab.types(*DEPLOY, "--yes", timeout=240)
    assert "state does not contain the whole lab, so its existing parts are removed and rebuilt" in " ".join(result.out.split())
    assert len(hand_made.ids(lab)) == 2
    assert not set(old_ids) & set(hand_made.ids(lab))
    assert len(lab.list_resources("vpc")) == 1


def test_deploy_of_two_gpus_makes_a_lab_of_each(learner: CloudLearner, tmp_path: Path) -> None:
    words = ("deploy", "4", "--gpu", "t4,l4", "--target", "aws")
    learner.environ["GPUCOURSE_COURSE"] = str(write_course(tmp_path / "course"))
    learner.account.fail("ec2:RunInstances", "RequestLimitExceeded", times=2)
    labs = learner.types(*words, "--yes", "--json", timeout=400).document["labs"]
    assert {lab["deployment"]["template"] for lab in labs} == {"benchmark"}
    assert all(lab["deployment"]["phase"] == "ready" for lab in labs)
    types = {lab["deployment"]["stack"]: lab["deployment"]["cloud"]["instance_type"] for lab in labs}
    assert types == {"04-aws-l4": "g6.xlarge", "04-aws-t4": "g4dn.xlarge"}
    assert len({resource.tags["Stack"] for resource in learner.list_resources("vpc")}) == 2

    result = learner.types("destroy", "--all", "--yes", "--discard", timeout=400)
    assert "Terraform failed" not in result.err
    assert learner.list_resources() == []
