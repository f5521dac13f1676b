"""What a deploy records, what it removes before another attempt, and what ends a forgotten node."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from gpucourse.aws import instances, schedule
from gpucourse.context import Context
from gpucourse.errors import CloudError, InfrastructureError, LeftoverError, TerraformFailed, UsageError
from gpucourse.labs.aws import build
from gpucourse.labs.aws.budget import read_budget
from gpucourse.labs.request import DeployRequest
from gpucourse.labs.results import PricedProposal
from gpucourse.model.cloud import CloudInstance, Finding
from gpucourse.model.event import Note
from gpucourse.model.node import Inventory
from gpucourse.workspace import deployments
from tests.unit.aws.cloud import TAGS, ScriptedAccount, as_tag_list, error, make_refusal
from tests.unit.aws.test_instances import make_instance
from tests.unit.aws.test_preflight import EVERYTHING_EMPTY
from tests.unit.labs.aws.fakes import choice_of, context_in, deployment_of, node, plan_of

KEPT = ("ec2", "describe_instance_attribute")


class Lab:
    """A spot lab of one instance. Terraform cannot remove it, but the account can, unless it `keeps` the instance."""

    def __init__(self, *, keeps: bool = False) -> None:
        self.deployment = deployment_of(market="spot", backstop="")
        self.cloud: Any = self.deployment.cloud
        self.keeps, self.running = keeps, True
        self.account = ScriptedAccount(
            {
                **EVERYTHING_EMPTY,
                ("ec2", "describe_vpcs"): {},
                ("ec2", "describe_instances"): lambda _asked: {"Reservations": self.reservations()},
                ("ec2", "terminate_instances"): lambda _asked: self.terminate(),
                ("scheduler", "create_schedule_group"): {},
            }
        )

    def reservations(self) -> list[dict[str, Any]]:
        tags = {**TAGS, "Stack": self.deployment.uid, "Node": "node0"}
        return [{"Instances": [make_instance(InstanceLifecycle="spot", Tags=as_tag_list(tags))]}] if self.running else []

    def terminate(self) -> dict[str, Any]:
        if self.keeps:
            raise make_refusal("ec2:TerminateInstances")
        self.running = False
        return {}

    def find_resources(self) -> list[Any]:
        return []

    @property
    def terraform(self) -> Lab:
        return self

    def addresses(self) -> list[str]:
        return []

    def down(self, _watch: object) -> list[str]:
        raise TerraformFailed("terraform destroy failed", hint="", log=None, summary="refused")


def test_remove_failed_attempt_removes_by_tag_what_terraform_cannot_remove_or_fails(tmp_path: Path) -> None:
    context, events = context_in(tmp_path)
    lab: Any = Lab()
    build._remove_failed_attempt(context, lab)
    assert not lab.running
    assert any("Continuing without it, by searching for tags" in event.text for event in events if isinstance(event, Note))
    with pytest.raises(LeftoverError, match="instance i-0 in us-east-2") as caught:
        build._remove_failed_attempt(context, Lab(keeps=True))  # type: ignore[arg-type]  # as much of a lab as it needs
    assert "aws ec2 terminate-instances" in caught.value.hint


def test_arm_records_which_node_has_no_schedule(context: Context) -> None:
    """Schedule only one of two nodes, which is no backstop for the other."""
    lab: Any = Lab()
    lab.deployment.inventory = Inventory(stack=lab.deployment.stack, nodes=(node("node0"), node("node1")))
    armed: list[list[str]] = []

    def arm(_account: object, ids: list[str], *_args: object, **options: object) -> Finding:
        armed.append(ids)
        return Finding(what=schedule.WHAT, state="ok", detail="")

    assert [instance.node for instance in build._arm(context, lab, arm=arm, listed_s=0.0)] == ["node0"]
    assert lab.cloud.backstop == "AWS lists no instance for node1, so nothing is scheduled to terminate it at the deadline"
    lab.deployment.inventory = Inventory(stack=lab.deployment.stack, nodes=(node("node0"),))
    build._arm(context, lab, arm=arm, listed_s=0.0)
    assert (lab.cloud.backstop, armed) == ("", [["i-0"], ["i-0"]])


def test_build_makes_schedules_even_if_terraform_fails(tmp_path: Path) -> None:
    context, events = context_in(tmp_path)
    lab: Any = Lab()
    lab.account.answers |= {
        ("iam", "get_role"): {"Role": {"Arn": "arn:aws:iam::123456789012:role/gpucourse-backstop"}},
        ("scheduler", "create_schedule"): {},
        ("ec2", "describe_volumes"): error("RequestLimitExceeded"),
    }
    build._arm_remains(context, lab)
    with pytest.raises(CloudError):  # of the ledger
        build._guard_costs(context, lab, fresh=True)
    assert [call["Name"] for call in lab.account.list_calls("create_schedule")] == ["i-0", "i-0"]
    assert lab.cloud.backstop == ""
    lab.running = False
    build._arm_remains(context, lab)
    assert len(lab.account.list_calls("create_schedule_group")) == 2, "where nothing is left, nothing is made"
    lab.account.answers["ec2", "describe_instances"] = make_refusal("ec2:DescribeInstances")
    build._arm_remains(context, lab)
    assert "ec2:DescribeInstances" in str(events[-1])


def test_reserve_counts_what_a_deploy_beside_it_will_cost(context: Context) -> None:
    """Make two proposals while the whole budget is free, as in two terminals that wait for a yes."""
    context.paths.settings.write_text("budget_usd: 10\n")
    first, second = (propose_one(context, module) for module in ("3", "1"))
    assert first.plans[0].usd_until_end == pytest.approx(Decimal("6.2"), abs=Decimal("0.5"))
    build._reserve(context, first)
    with pytest.raises(UsageError, match=r"after \$6\.\d\d for other labs until their deadlines") as refusal:
        build._reserve(context, second)
    assert "gpucourse deploy 1 --target aws --ttl 8h --no-spot --yes-over-budget;" in refusal.value.hint
    assert [lab.stack for lab in deployments.every(context.paths)] == [first.plans[0].deployment.stack]
    second.over_budget = True
    build._reserve(context, second)
    assert len(deployments.every(context.paths)) == 2


def propose_one(context: Context, module: str) -> PricedProposal:
    """Return the proposal of a new lab for 4 hours (8 hours for module 1), at the prices that ship with the course."""
    choice = choice_of(context.catalog.module(module))
    hours = 4 if module == "3" else 8
    deployment = deployment_of(module, hours=hours, instance_type=choice.instance_type)
    offer = plan_of(choice, deployment, hours=str(hours))
    offer.changes = [("create", "aws_instance.node[0]")]
    budget = read_budget(context, ())
    command = DeployRequest(module=module, target="aws", ttl_s=hours * 3600, spot=False).command
    return PricedProposal(later=[], findings=[], budget=budget, plans=[offer], over_budget=False, command=command)


def find_on(market: str) -> list[CloudInstance]:
    lab: Any = Lab()
    lab.account.answers["ec2", "describe_instances"] = {
        "Reservations": [{"Instances": [make_instance(InstanceLifecycle=market)]}]
    }
    return instances.find(lab.account, stack="s-1")


def answer_power_off(behaviour: str) -> dict[str, Any]:
    """Return EC2's answer about what happens when an instance powers itself off."""
    return {"InstanceInitiatedShutdownBehavior": {"Value": behaviour}}


def test_check_power_off_asks_about_spot_nodes_and_accepts_that_they_end(tmp_path: Path) -> None:
    context, events = context_in(tmp_path)
    lab: Any = Lab()
    lab.cloud.backstop = "no permission"
    build._check_power_off(context, lab, find_on("scheduled"), fresh=True)
    assert lab.account.list_calls("describe_instance_attribute") == []
    lab.account.answers[KEPT] = answer_power_off("terminate")
    build._check_power_off(context, lab, find_on("spot"), fresh=True)
    assert lab.account.list_calls("describe_instance_attribute")[0]["InstanceId"] == "i-0"
    assert events == []
    assert lab.running


def test_check_power_off_takes_down_a_new_spot_node_that_outlives_it(tmp_path: Path) -> None:
    """Take down a new node. Nothing is left, and the reason is reported. A node that a person works on stays."""
    context, events = context_in(tmp_path)
    lab: Any = Lab()
    lab.account.answers[KEPT] = answer_power_off("stop")
    with pytest.raises(InfrastructureError, match="i-0 would be stopped, not terminated"):
        build._check_power_off(context, lab, find_on("spot"), fresh=False)
    assert lab.running
    with pytest.raises(InfrastructureError, match="after a power-off, i-0 would be stopped, not terminated") as caught:
        build._check_power_off(context, lab, find_on("spot"), fresh=True)
    assert not lab.running
    assert "without --spot" in caught.value.hint
    assert any(event.text.endswith("The lab is being taken down") for event in events if isinstance(event, Note))
    assert lab.deployment.inventory is None


def test_check_power_off_needs_the_backstop_when_ec2_does_not_say(tmp_path: Path) -> None:
    context, events = context_in(tmp_path)
    lab: Any = Lab()
    lab.account.answers[KEPT] = error("InternalError")
    build._check_power_off(context, lab, find_on("spot"), fresh=True)
    assert [event.level for event in events if isinstance(event, Note)] == ["warning"]
    assert "i-0" in str(events)
    assert lab.running
    lab.cloud.backstop = "no permission"
    with pytest.raises(InfrastructureError, match="no backstop") as caught:
        build._check_power_off(context, lab, find_on("spot"), fresh=True)
    assert "gpucourse doctor --setup" in caught.value.hint
    assert not lab.running
