"""What is shown of a lab on AWS after its deploy, at a terminal of 80 columns: no line is wider, nothing is missing."""

from __future__ import annotations

import time
from dataclasses import fields, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import get_args

import pytest

from gpucourse.aws.billing import BilledCost
from gpucourse.labs.aws.cleanup.leaks import LeakScan, ScannedResource, Standing
from gpucourse.labs.aws.money.cost import Cost, CostPart, Running
from gpucourse.labs.aws.node_files import Idle
from gpucourse.labs.aws.status import Outlook
from gpucourse.labs.results import ChangeResult, StackCost
from gpucourse.labs.status import StackStatus
from gpucourse.model.cloud import CloudResource
from gpucourse.model.deployment import AwsDeployment, Cloud, Deployment, NodeHealth
from gpucourse.ui.render import render
from gpucourse.ui.tables import View
from gpucourse.ui.text import hourly, usd
from gpucourse.ui.views import changed, cost, destroy_preview, leaks, status
from tests.unit.ui.examples import deployment

END = (datetime.now(UTC) + timedelta(hours=2, seconds=30)).isoformat()
CLOUD = Cloud(
    region="us-east-2", zone="us-east-2a", instance_type="g4dn.2xlarge", gpu="t4", owner="ada", ssh_cidr="203.0.113.7/32",
    ttl_hours=4, expires=END,
)  # fmt: skip


def render_page(view: View) -> str:
    """At 80 columns; commands to copy may be wider, nothing else."""
    page = render(view, width=80)
    wide = [line for line in page.splitlines() if len(line) > 80 and "aws " not in line]
    assert wide == []
    return page


def on_aws() -> AwsDeployment:
    common = {
        field.name: getattr(deployment(), field.name) for field in fields(Deployment) if field.name not in {"target", "stack"}
    }
    return AwsDeployment(stack="03-aws-t4", cloud=CLOUD, **common)


def render_status(outlook: Outlook) -> str:
    return render_page(status.status([StackStatus(deployment=on_aws(), nodes=outlook.nodes, active_runs=[], cloud=outlook)]))


def outlook(**other: object) -> Outlook:
    values: dict[str, object] = {
        "nodes": [NodeHealth(node="node0", healthy=True, detail="running")],
        "instances": {"node0": "i-0123456789abcdef0"},
        "expires": END,
        "seconds_left": 7230.0,
        "cost_usd": Decimal("3.2"),
        "usd_per_hour": Decimal("1.5403"),
        "backstop": "AWS itself ends it at 2026-11-21 20:10 UTC",
    }
    return Outlook(**(values | other))  # type: ignore[arg-type]  # fields by name


def test_a_lab_that_is_well_says_what_it_costs_and_what_ends_it() -> None:
    page = render_status(outlook(idle=[Idle(node="node0", seen_at=0, busy=("SSH sessions: 1",))]))
    assert "$3.20 so far, $1.54 an hour" in page
    assert "in 2 h 00 min" in page
    assert "node0: in use (SSH sessions: 1)" in page
    assert "Repair it" not in page


def test_an_idle_lab_says_when_it_ends() -> None:
    assert "node0: idle; ends it in 10 min" in render_status(
        outlook(idle=[Idle(node="node0", seen_at=0, ends_at=time.time() + 630)])
    )


def test_an_unknown_lab_is_never_called_healthy_and_not_told_to_heal() -> None:
    blind = NodeHealth(node="node0", healthy=False, known=False, detail="unknown: the AWS credentials have expired")
    page = render_status(outlook(nodes=[blind], unknown="the AWS credentials have expired"))
    assert "unknown" in page
    assert "healthy" not in page
    assert "gpucourse deploy" not in page


def test_a_stopped_lab_is_started_and_a_lost_one_is_deployed() -> None:
    halted = [NodeHealth(node="node0", healthy=False, detail="stopped")]
    page = render_status(outlook(nodes=halted, stopped=True))
    assert "Start it again: gpucourse start 3" in page
    assert "– stopped" in page
    assert "unhealthy" not in page
    gone = render_status(outlook(nodes=halted, ended=["node0 (i-1): AWS took the spot instance back"], seconds_left=-90))
    assert "AWS took the spot instance back" in gone
    assert "gpucourse deploy 3 --target aws" in gone
    assert "passed 90 s ago" in gone


def test_what_goes_is_shown_before_the_question() -> None:
    labs = [StackCost(deployment=on_aws(), per_hour=Decimal("1.54"), spent=Decimal(3), runs=("20261121-101500-otter",))]
    untracked = CloudResource(
        kind="instance", id="i-0123456789abcdef0", region="us-east-2", remove="aws ec2 ...", state="running"
    )
    page = render_page(destroy_preview.destroy_preview(labs, untracked=[untracked], others=2, discard=True))
    for words in ("03-aws-t4", "$1.54 an hour", "otter", "i-0123456789abcdef0", "2 labs that cost nothing", "will be lost"):
        assert words in page


@pytest.mark.parametrize("state", get_args(Standing))
def test_leaks_of_each_kind(state: Standing) -> None:
    tags = {"Project": "gpucourse", "Course": "c", "Module": "3", "Owner": "grace", "Expires": END}
    thing = CloudResource(
        kind="instance", id="i-0123456789abcdef0", region="us-east-2", remove="aws ec2", tags=tags, note="may not look"
    )
    held = LeakScan(
        account="123456789012", course="mine", regions=("us-east-2",),
        things=[ScannedResource(resource=thing, state=state, stack="03-aws-t4")], usd_per_hour=Decimal(1),
    )  # fmt: skip
    page = render_page(leaks.holdings(held))
    assert ("Remove them by hand\naws ec2" in page) == (state == "leak")
    assert ("Check by hand\naws ec2" in page) == ("may not look" in page) == (state == "unknown")
    assert ("no leaks" in page) == (state in {"standing", "another's"})
    assert ("grace" in page) == (state != "unknown")
    assert ("--everyone" in page) == (state == "another's")
    assert "other regions" in page
    assert "not looked at: mx-central-1" in render_page(leaks.holdings(replace(held, unasked="not looked at: mx-central-1")))


def test_the_cost_with_everything_and_with_nothing() -> None:
    nothing = Cost(
        usd=Decimal(0), usd_per_hour=Decimal(0), usd_to_end=Decimal(0), budget_usd=None,
        running=[], modules=[], exercises=[], kinds=[], sources=[],
    )  # fmt: skip
    assert "simulated nodes are free" in render_page(cost.cost(nothing))
    running = Running(
        stack="03-aws-t4", module="3", usd_per_hour=Decimal("1.54"), usd=Decimal(2), expires=END, usd_to_end=Decimal(3)
    )
    lost = Running(stack="c0ffee-1", module="3", usd_per_hour=Decimal(1), usd=Decimal(1))
    bill = BilledCost(
        first=date(2026, 11, 1), until=date(2026, 11, 22), services=(("EC2 - Other", Decimal("0.25")),), requests=1, final=False
    )
    everything = Cost(
        usd=Decimal(3), usd_per_hour=Decimal(2), usd_to_end=Decimal(12), budget_usd=Decimal(10), running=[running, lost],
        modules=[CostPart(name="3", usd=Decimal(3), title="Parallel computing")],
        exercises=[CostPart(name="3.2", usd=Decimal("0.004"), hours=0.5)], kinds=[CostPart(name="instance", usd=Decimal(3))],
        sources=["EC2 on-demand prices of us-east-1, 2026-07-20"], warnings=["a warning"], billed=bill,
    )  # fmt: skip
    page = render_page(cost.cost(everything))
    for words in (
        "$7.00 left of $10.00; not enough until the end", "no record: gpucourse leaks", "3 Parallel computing",
        "less than $0.01", "0.50 h", "not final: $0.25", "2026-07-20", "a warning",
    ):  # fmt: skip
        assert words in page


def test_what_changed_and_what_did_not_go_well() -> None:
    done = ChangeResult(
        stack="03-aws-t4", module="3", title="03-aws-t4 is stopped", changed=["node0 is stopped"],
        warnings=["its deadline stands"], expires=END, usd_per_hour=None, next="gpucourse start 3",
    )  # fmt: skip
    page = render_page(changed.change_result(done, "gpucourse answer 3.2"))
    for words in (
        "03-aws-t4 is stopped",
        "node0 is stopped",
        "its deadline stands",
        "not known",
        "Useful now: gpucourse start 3",
        "Next: gpucourse answer 3.2",
    ):
        assert words in page


def test_amounts() -> None:
    assert [usd(Decimal(text)) for text in ("0", "0.004", "0.006", "1.545", "1234.5")] == [
        "$0.00", "less than $0.01", "less than $0.01", "$1.55", "$1,234.50",
    ]  # fmt: skip
    assert hourly(None) == "not known"
