"""A lab on AWS from the quote to the last resource, on an account that is a mock: deploy, run, heal, take down."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from tests.parts import slow_after
from tests.system.aws import hand_made
from tests.system.aws.courses import write_course
from tests.system.aws.learner import CloudLearner, cloud_learner
from tests.system.aws.terminal import Terminal
from tests.waiting import until

pytestmark = pytest.mark.system

DEPLOY = ("deploy", "3", "--target", "aws")


@pytest.fixture(scope="module")
def somebody(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CloudLearner]:
    """Somebody who deploys in the course of these tests, and has nothing afterwards."""
    with cloud_learner(tmp_path_factory.mktemp("lab")) as learner:
        yield learner
        learner.types("destroy", "--all", "--yes", "--discard", timeout=240)
        assert learner.list_resources() == []


@pytest.fixture(scope="module")
def lab(somebody: CloudLearner) -> CloudLearner:
    """Two nodes on AWS, up."""
    typed = somebody.types(*DEPLOY, "--yes", "--json", timeout=240)
    (somebody.workspace / "deployed.json").write_text(typed.out)
    return somebody


@pytest.mark.slow
def test_a_rehearsal_has_a_source_for_every_price(tmp_path: Path) -> None:
    with cloud_learner(tmp_path) as learner:
        shown = learner.types(*DEPLOY, "--dry-run", "--json").document
        [quote] = shown["quotes"]
        assert len(quote["changes"]) == 17
        assert {line["kind"] for line in quote["lines"]} == {"instance", "disk", "address", "storage"}
        assert all(line["source"] and line["date"] for line in quote["lines"])
        assert Decimal(quote["usd_per_hour"]) > Decimal("1.5")
        assert abs(Decimal(quote["usd_to_the_end"]) - 4 * Decimal(quote["usd_per_hour"])) < Decimal("0.01")
        assert learner.list_resources() == []


def test_what_is_asked_for_before_anything_is_made(somebody: CloudLearner) -> None:
    """The first one here: nobody has deployed yet."""
    terminal = Terminal(somebody, *DEPLOY)
    terminal.shows("[y/N]")
    assert "17 to create" in terminal.screen
    terminal.types("n")
    assert terminal.ends() == 130
    assert "nothing was built" in terminal.screen

    assert somebody.list_resources() == []
    assert [call for call in somebody.account.calls("RunInstances") if not call.params.get("DryRun")] == []
    assert somebody.deployment() == {}
    assert not any((somebody.workspace / ".gpucourse" / "stacks").iterdir())


@pytest.mark.slow
def test_what_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with cloud_learner(tmp_path) as learner:
        learner.sets(budget_usd=3)
        poor = learner.types(*DEPLOY, "--gpu", "t4", "--yes", code=2)
        assert "this would cost $6.33 to its end; $3.00 of the budget of $3.00 is left" in poor.err
        assert "gpucourse deploy 3 --target aws --gpu t4 --yes-over-budget;" in poor.err

        learner.account.quota("L-DB2E81BA", 8)
        learner.account.plan("FREE")
        stopped = learner.types(*DEPLOY, "--yes", code=3)
        assert "needed 16 vCPU, limit 8" in stopped.err
        assert "Free plan" in stopped.err
        assert "--request-quota" in stopped.err

        assert learner.list_resources() == []
        assert [call for call in learner.account.calls("RunInstances") if not call.params.get("DryRun")] == []
        assert learner.deployment() == {}
        assert not any((learner.workspace / ".gpucourse" / "stacks").iterdir())


def test_what_stands_afterwards(lab: CloudLearner) -> None:
    document = json.loads((lab.workspace / "deployed.json").read_text())
    [built] = document["labs"]
    cloud = built["deployment"]["cloud"]
    assert built["deployment"]["phase"] == "ready"
    assert (cloud["zone"], cloud["instance_type"], cloud["backstop"]) == ("us-east-2a", "g4dn.2xlarge", "")
    kinds = [resource.kind for resource in lab.list_resources()]
    assert kinds.count("instance") == kinds.count("volume") == kinds.count("schedule") == 2
    for resource in lab.list_resources("instance", "volume", "vpc", "file system", "key pair", "placement group"):
        assert resource.tags["Stack"] == built["deployment"]["uid"]
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


SCRIPT = "import os\nfor name in ('RANK', 'WORLD_SIZE'):\n    print(name, os.environ[name], flush=True)\n"


@pytest.mark.parametrize("of_the_course", slow_after(1, False, True))
def test_a_run_on_both_nodes_comes_home(lab: CloudLearner, of_the_course: bool, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SCRIPT)
    own = ("--script", str(tmp_path / "mine.py"), "--launcher", "python")
    typed = lab.types("run", *(("3.1", "--set", "elements=1000") if of_the_course else own), "--nodes", "2", timeout=240)
    assert "passed" in typed.out if of_the_course else "RANK 1" in typed.err
    assert "simulated nodes" not in typed.err
    record = lab.newest_run()
    assert (record["mode"], record["state"], record["world_size"], record["stack"]) == ("aws", "succeeded", 2, "03-aws-t4")
    plan = json.loads((lab.run_folder() / "plan.json").read_text())
    for command in plan["commands"]:
        assert command["env"]["GLOO_SOCKET_IFNAME"] == "lo"
    said = lab.types("ssh", "3", "--node", "1", "--", "echo", "here")
    assert said.out == "here\n"


@pytest.mark.slow
def test_a_second_plan_changes_nothing(lab: CloudLearner) -> None:
    before = lab.deployment()
    document = lab.types(*DEPLOY, "--json", timeout=240).document
    [again] = document["labs"]
    assert (again["changes"], again["healed"]) == ([], [])
    after = lab.deployment()
    assert [after[name] for name in ("uid", "created")] == [before[name] for name in ("uid", "created")]
    assert [after["cloud"][name] for name in ("zone", "expires")] == [before["cloud"][name] for name in ("zone", "expires")]


@pytest.mark.slow
def test_a_node_that_is_gone_is_built_anew(lab: CloudLearner) -> None:
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
    for wrong in (("--spot",), ("--region", "us-west-2"), ("--ttl", "2h")):
        assert "exists already" in lab.types(*DEPLOY, *wrong, "--yes", code=2).err


@pytest.mark.slow
def test_a_lab_whose_state_is_lost_is_not_built_beside_itself(tmp_path: Path) -> None:
    with cloud_learner(tmp_path) as learner:
        hand_made.lab(learner, nodes=2)
        before = set(hand_made.ids(learner))
        typed = learner.types(*DEPLOY, "--yes", timeout=240)
        assert "what exists of it is removed and rebuilt" in typed.out
        assert len(hand_made.ids(learner)) == 2
        assert not before & set(hand_made.ids(learner))
        assert len(learner.list_resources("vpc")) == 1
        learner.types("destroy", "--all", "--yes", timeout=240)
        assert learner.list_resources() == []


@pytest.mark.slow
def test_a_node_that_an_older_state_does_not_know_is_not_built_twice(tmp_path: Path) -> None:
    """The state of an earlier day, such as from the backup that Terraform leaves."""
    with cloud_learner(tmp_path) as learner:
        learner.environ["GPUCOURSE_COURSE"] = str(write_course(tmp_path / "course"))
        small = ("deploy", "1", "--target", "aws", "--yes")
        learner.types(*small, timeout=240)
        [before] = hand_made.ids(learner)
        file = learner.workspace / ".gpucourse/stacks/01-aws-t4/terraform/terraform.tfstate"
        state = json.loads(file.read_text())
        state["resources"] = [resource for resource in state["resources"] if resource["type"] != "aws_instance"]
        file.write_text(json.dumps(state))
        typed = learner.types(*small, timeout=240)
        [after] = hand_made.ids(learner)
        assert after != before
        assert "state does not know all of it, so what exists" in typed.out
        learner.types("destroy", "--all", "--yes", timeout=240)
        assert learner.list_resources() == []
