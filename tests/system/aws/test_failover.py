"""No room: the next zone, with every try on record. Any other refusal stops at once, and says what exists and what it costs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.system.aws.courses import write_course
from tests.system.aws.learner import CloudLearner

pytestmark = pytest.mark.system


def _launches(learner: CloudLearner) -> int:
    """How many launches were asked for; a request that is sent again has the token of the first one."""
    return len({call.params["ClientToken"] for call in learner.account.calls("RunInstances") if not call.params.get("DryRun")})


@pytest.mark.slow
def test_the_next_zone_has_room_and_a_quota_is_the_end(learner: CloudLearner, tmp_path: Path) -> None:
    learner.environ["GPUCOURSE_COURSE"] = str(write_course(tmp_path / "course"))
    learner.account.fail("RunInstances", "InsufficientInstanceCapacity", zone="us-east-2a")
    typed = learner.types("deploy", "1", "--target", "aws", "--yes", timeout=400)
    assert "Next: g4dn.xlarge in us-east-2b" in typed.err
    assert "removing what the failed attempt left" in typed.err
    cloud = learner.deployment("01-aws-t4")["cloud"]
    assert cloud["zone"] == "us-east-2b"
    assert [(item["zone"], item["code"]) for item in cloud["tried"]] == [("us-east-2a", "InsufficientInstanceCapacity")]
    [network] = learner.list_resources("vpc")
    assert network.tags["Stack"] == learner.deployment("01-aws-t4")["uid"]

    learner.account.calm()
    learner.account.deny("servicequotas:*")  # so that only the launch can tell
    learner.account.quota("L-DB2E81BA", 4)
    before = _launches(learner)
    full = learner.types("deploy", "4", "--target", "aws", "--yes", code=6, timeout=400)
    assert "VcpuLimitExceeded" in full.err
    assert "no instance among them: together $0.00 an hour" in full.err
    assert "gpucourse destroy 4 --gpu t4" in full.err
    assert _launches(learner) == before + 1, "a quota is the same in every zone"
    record = learner.deployment("04-aws-t4")
    assert (record["phase"], record["cloud"]["tried"]) == ("failed", [])
    assert [item.tags["Node"] for item in learner.list_resources("instance")] == ["node0"]

    learner.account.calm()
    learner.types("destroy", "--all", "--yes", timeout=400)
    assert learner.list_resources() == []


@pytest.mark.slow
def test_spot_nodes_that_terraform_leaves_are_gone_before_the_next_try(learner: CloudLearner) -> None:
    learner.account.deny("ec2:CancelSpotInstanceRequests")
    learner.account.fail("RunInstances", "Unsupported", zone="us-east-2a", nth=3)  # a trial run, one node, and then the other
    typed = learner.types("deploy", "3", "--spot", "--target", "aws", "--yes", timeout=500)
    assert "Terraform could not" in typed.err
    assert [call.code for call in learner.account.calls("CancelSpotInstanceRequests")] == ["UnauthorizedOperation"]
    assert "Next: g4dn.2xlarge in us-east-2b" in typed.err
    cloud = learner.deployment()["cloud"]
    assert (cloud["zone"], cloud["market"]) == ("us-east-2b", "spot")
    assert len(learner.list_resources("instance")) == 2
    learner.account.calm()
    learner.types("destroy", "--all", "--yes", timeout=400)
    assert learner.list_resources() == []
