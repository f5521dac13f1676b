"""`extend` on AWS: the new end reaches everything that ends a lab, has a limit and a price, and survives a kill."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from gpucourse.aws import resource_scan, schedule
from gpucourse.aws.session import Account
from gpucourse.errors import UnreachableError
from gpucourse.labs.aws import extend
from gpucourse.labs.aws.budget import read_budget
from tests.mock_aws.account import REGION
from tests.system.aws import hand_made
from tests.system.aws.learner import CloudLearner
from tests.waiting import STUCK_S, until

pytestmark = pytest.mark.system


def read_end(learner: CloudLearner) -> datetime:
    """Return the end of the lab according to its record."""
    return datetime.fromisoformat(learner.deployment()["cloud"]["expires"])


def read_deadlines(learner: CloudLearner) -> set[str]:
    return {(hand_made.state_folder(learner, item) / "deadline").read_text().strip() for item in hand_made.ids(learner)}


def arm_backstop(learner: CloudLearner) -> Account:
    account = Account(REGION, learner.environment)
    tags = hand_made.tags_of(learner, learner.deployment()["uid"], Expires=learner.deployment()["cloud"]["expires"])
    assert schedule.arm(account, hand_made.ids(learner), read_end(learner), project_tags=tags).state == "ok"
    return account


def kill_extend(learner: CloudLearner, action: str) -> None:
    """Kill `extend 3 2h` when a call of this name has taken effect and its answer is held back."""
    learner.account.hold(action, after=True)
    extending = learner.begins("extend", "3", "2h")
    until(lambda: any(action in call for call in learner.account.list_held_calls()), f"{action} is held back")
    extending.kill()
    extending.communicate(timeout=STUCK_S)
    learner.account.calm()


def test_extend_reaches_everything_that_ends_a_node(lab_owner: CloudLearner) -> None:
    account = arm_backstop(lab_owner)
    new_end = read_end(lab_owner) + timedelta(minutes=90)
    document = lab_owner.documents("extend", "3", "90m")
    assert document["warnings"] == []
    assert datetime.fromisoformat(document["expires"]) == read_end(lab_owner) == new_end
    assert read_deadlines(lab_owner) == {f"{new_end.timestamp():.0f}"}
    uid = lab_owner.deployment()["uid"]
    assert set(schedule.read_scheduled_ends(account, stack=uid).values()) == {new_end + schedule.AFTER}
    ends = {item.kind: item.tags["Expires"] for item in resource_scan.find(account, stack=uid) if "Expires" in item.tags}
    assert set(ends.values()) == {new_end.isoformat(timespec="seconds")}
    assert {"instance", "volume", "VPC", "security group", "key pair", "schedule group"} <= ends.keys()


def test_extend_has_a_price(lab_owner: CloudLearner) -> None:
    lab_owner.sets(budget_usd=2)
    result = lab_owner.types("extend", "3", "2h", code=2)
    assert "More time than the budget allows" in result.out
    assert "of the budget of $2.00 is left" in result.err
    assert "gpucourse extend 3 120m --yes-over-budget" in result.err
    assert "has more time" in lab_owner.types("extend", "3", "1h", "--yes-over-budget").out
    for duration in ("soon", "0"):
        assert "gpucourse extend 3 2h" in lab_owner.types("extend", "3", duration, code=2).err


@pytest.mark.slow
def test_extend_that_one_node_refuses_leaves_the_earlier_deadline_for_all(lab_owner: CloudLearner) -> None:
    context = hand_made.context(lab_owner)
    extend.extend(context, extend.more_time(context, "3", 3600))
    old_expiry = lab_owner.deployment()["cloud"]["expires"]
    file = lab_owner.workspace / ".gpucourse/deployments/03-aws-t4.json"
    deployment = json.loads(file.read_text())
    deployment["inventory"]["nodes"][1]["proxy"] = "false"
    file.write_text(json.dumps(deployment))
    with pytest.raises(UnreachableError, match="still ends at") as error:
        extend.extend(context, extend.more_time(context, "3", 3600))
    assert "node1" in error.value.what
    assert lab_owner.deployment()["cloud"]["expires"] == old_expiry
    assert {item.tags["Expires"] for item in lab_owner.list_resources("instance")} == {old_expiry}
    assert read_deadlines(lab_owner) == {f"{datetime.fromisoformat(old_expiry).timestamp():.0f}"}, "node0 had taken it"


@pytest.mark.slow
@pytest.mark.parametrize("is_moved", [False, True], ids=["tags alone", "everything"])
def test_extend_that_was_killed_reserves_what_the_account_says(learner: CloudLearner, is_moved: bool) -> None:
    """The backstop has the end that holds; without an answer the later one counts."""
    lab = hand_made.lab(learner)
    arm_backstop(learner)
    learner.sets(budget_usd=20)
    kill_extend(learner, "UpdateSchedule" if is_moved else "CreateTags")
    assert learner.deployment()["cloud"]["reservation"]["until"] > lab.cloud.expires
    learner.account.expire_credentials()
    context = hand_made.context(learner)
    assert read_budget(context, ()).reserved == pytest.approx(Decimal("4.6"), abs=Decimal("0.3")), "nobody answered"
    learner.account.renew_credentials()
    hours = 6 if is_moved else 4
    assert read_budget(context, ()).reserved == pytest.approx(Decimal("0.77") * hours, abs=Decimal("0.3"))
    assert (learner.deployment()["cloud"]["expires"] > lab.cloud.expires) == is_moved
    learner.types("extend", "3", "1h")
    assert read_end(learner) == datetime.fromisoformat(lab.cloud.expires) + timedelta(hours=3 if is_moved else 1)
    assert learner.deployment()["cloud"]["reservation"] is None
