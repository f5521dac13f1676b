"""The plan of a lab: what the quota allows at the same time, how much an existing lab may grow, and the cost."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from gpucourse.aws.quota import Quotas, needs
from gpucourse.context import Context
from gpucourse.errors import MissingError
from gpucourse.labs.aws import plan
from gpucourse.labs.aws.choice import Choice
from gpucourse.labs.aws.plan import Fit, LabPlan
from gpucourse.model.cloud import LabNeed
from tests.unit.aws.cloud import TAGS, ScriptedAccount, as_tag_list, make_refusal
from tests.unit.aws.test_instances import make_instance
from tests.unit.labs.aws.fakes import CLUSTER, ONE_NODE, choice_of, context_in, deployment_of, module_with, plan_of

G, STANDARD = "L-DB2E81BA", "L-1216C47A"


Limits = dict[str, int | None]  # in vCPUs by code; None is one that AWS does not let us read


@pytest.fixture
def limits() -> Limits:
    return {G: 64, STANDARD: 32}


def fit(limits: Limits, choices: list[Choice], *, is_fixed: bool = False, networks: int = 1) -> Fit:
    """Return what fits into these limits, in a region with this many of five networks."""

    quotas = {code: (limit, "") for code, limit in limits.items()}
    vpcs = {"Vpcs": [{"VpcId": f"vpc-{number}"} for number in range(networks)]}
    answers = {("ec2", "describe_vpcs"): vpcs, ("service-quotas", "get_service_quota"): {"Quota": {"Value": 5.0}}}
    return plan.fit(Quotas(ScriptedAccount(answers), limits=quotas, used=({}, "")), choices, is_fixed=is_fixed)


def test_fit_puts_gpus_side_by_side_as_long_as_the_quota_holds(context: Context, limits: Limits) -> None:
    module = module_with(ONE_NODE, context)
    choices = [choice_of(module, gpu=gpu) for gpu in ("t4", "l4", "a10g")]
    fitting = fit(limits, choices)
    assert ([choice.gpu for choice in fitting.now], fitting.later) == (["t4", "l4", "a10g"], [])
    limits[G] = 8
    fitting = fit(limits, choices)
    assert [choice.gpu for choice in fitting.now] == ["t4", "l4"]
    assert [choice.gpu for choice in fitting.later] == ["a10g"]
    limits[G] = None
    assert len(fit(limits, choices).now) == 3, "what is not known is not refused"
    assert len(fit(limits, choices, networks=4).now) == 1, "each lab needs a network of its own"
    limits[STANDARD] = 3
    clusters = [choice_of(module_with(CLUSTER, context), gpu=gpu) for gpu in ("t4", "l4")]
    assert [choice.gpu for choice in fit(limits, clusters).later] == ["l4"], "a head counts against a quota of its own"


def test_fit_takes_fewer_nodes_when_the_module_works_with_them(context: Context, limits: Limits) -> None:
    cluster = choice_of(module_with(CLUSTER, context))
    limits[G] = 8
    fitting = fit(limits, [cluster])
    [choice] = fitting.now
    assert (choice.nodes, choice.need.machines[-1].count) == (2, 2)
    assert "2 nodes, not 3" in fitting.notes[0]
    fixed_fit = fit(limits, [cluster], is_fixed=True)
    assert [choice.nodes for choice in fixed_fit.now] == [3], (
        "what somebody typed stays; the preflight says that it does not fit"
    )
    assert (fixed_fit.fewer, fitting.fewer) == (2, 0)
    limits[G] = 4
    [little] = fit(limits, [cluster]).now
    assert little.nodes == 3


def measure(choice: Choice, *instances: dict[str, Any]) -> LabNeed:
    """Return what the lab needs in addition to these instances."""
    assert choice.existing is not None
    account = ScriptedAccount({("ec2", "describe_instances"): {"Reservations": [{"Instances": list(instances)}]}})
    return plan.measure_growth(account, choice.need, choice.existing)


def make_instances(kind: str, *states: str) -> list[dict[str, Any]]:
    return [make_instance(state, InstanceId=f"i-{index}", InstanceType=kind) for index, state in enumerate(states)]


def test_measure_growth_counts_only_what_a_lab_lacks(context: Context, limits: Limits) -> None:
    limits[G] = 0
    module = context.catalog.module("3")
    standing = choice_of(module, standing=deployment_of())
    assert fit(limits, [standing]).now == [standing]
    two = make_instances("g4dn.2xlarge", "running", "pending")
    assert needs([measure(standing, *two)], "on-demand") == {(G, "on-demand"): {"3": 0}}
    larger = measure(choice_of(module, nodes=5, standing=deployment_of()), *two)
    assert needs([larger], "on-demand") == {(G, "on-demand"): {"3": 24}}
    growth = measure(standing, *make_instances("g4dn.2xlarge", "running", "terminated"))
    assert growth.machines[-1].count == 1
    head = make_instances("t3.medium", "running")
    smaller = deployment_of(instance_type="g4dn.xlarge")
    cluster = measure(choice_of(module_with(CLUSTER, context), standing=smaller), *head)
    assert [(machines.instance_type, machines.count) for machines in cluster.machines] == [("t3.medium", 0), ("g4dn.xlarge", 3)]


def an_account(vcpus: float) -> ScriptedAccount:
    """Return an account in which two nodes of the lab run, with a quota of this many vCPUs."""
    nodes = [
        make_instance(InstanceId=f"i-{name}", InstanceType="g4dn.2xlarge", Tags=as_tag_list({**TAGS, "Node": name}))
        for name in ("node0", "node1")
    ]
    return ScriptedAccount(
        {
            ("ec2", "describe_instances"): {"Reservations": [{"Instances": nodes}]},
            ("service-quotas", "get_service_quota"): {"Quota": {"Value": vcpus}},
            ("service-quotas", "list_requested_service_quota_change_history_by_quota"): {"RequestedQuotas": []},
        }
    )


def test_check_growth_refuses_to_exceed_the_quota_and_says_what_fits(context: Context) -> None:
    standing = deployment_of()
    larger = choice_of(context.catalog.module("3"), nodes=5, standing=standing)
    plan.check_growth(Quotas(an_account(40.0)), larger, standing)
    with pytest.raises(
        MissingError, match=r"the instances that 03-aws-t4 needs(.|\n)*needed 24 vCPU, limit 31, in use 16"
    ) as caught:
        plan.check_growth(Quotas(an_account(31.0)), larger, standing)
    first, ask = caught.value.hint.split("\n")
    assert first == "--nodes 3 fits the present quota"
    assert ask.startswith("gpucourse doctor --target aws --request-quota --module 3 --region us-east-2 --gpu t4 --nodes 5 (")
    account = an_account(0.0)
    account.answers["service-quotas", "get_service_quota"] = make_refusal("servicequotas:GetServiceQuota")
    plan.check_growth(Quotas(account), larger, standing)  # what cannot be read refuses nothing


TYPED = "gpucourse deploy 3 --target aws"
MADE = [("create", "aws_instance.node[0]"), ("update", "aws_vpc.this")]


def planned(tmp_path: Path, *, changes: list[tuple[str, str]] = MADE, hours: str = "4") -> LabPlan:
    context, _events = context_in(tmp_path)
    choice = choice_of(module_with(CLUSTER, context))
    lab_plan = plan_of(choice, deployment_of(instance_type="g4dn.xlarge"), hours=hours)
    lab_plan.changes = changes
    return lab_plan


def test_lab_plan_prices_every_part_with_its_source_and_day(tmp_path: Path) -> None:
    lab_plan = planned(tmp_path)
    assert [line.kind for line in lab_plan.charges] == ["instance", "instance", "burst", "disk", "disk", "address", "storage"]
    head, workers, burst, disk, throughput, address, _storage = lab_plan.charges
    assert [str(head.units), str(workers.units)] == ["1", "3"]
    assert (burst.what, burst.per_hour) == ("CPU bursts of 1 x t3.medium, at most", Decimal("0.08"))
    assert (throughput.what, str(throughput.units)) == ("1125 MB/s of additional disk throughput", str(3 * 375))
    assert [str(disk.units), str(address.units)] == [str(30 + 3 * 120), "4"]
    assert all(line.rate.source and line.rate.date for line in lab_plan.charges)
    assert lab_plan.per_hour == sum(line.per_hour for line in lab_plan.charges)
    assert lab_plan.usd_until_end == 4 * lab_plan.per_hour
    assert lab_plan.usd_usually == lab_plan.choice.need.hours * lab_plan.per_hour
    assert lab_plan.creates == 1


def test_lab_plan_says_that_a_node_goes(tmp_path: Path) -> None:
    shrunk = planned(
        tmp_path, changes=[("delete", 'module.nodes.aws_instance.node["node1-on-demand"]'), ("update", "aws_vpc.this")]
    )
    assert (shrunk.ends, shrunk.creates) == (1, 0)
    assert "1 of its nodes is removed or replaced" in shrunk.notes[0]
    assert planned(tmp_path).notes == ()
