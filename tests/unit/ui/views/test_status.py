from __future__ import annotations

import re
from decimal import Decimal

from gpucourse.labs.aws.status import Outlook
from gpucourse.labs.status import StackStatus
from gpucourse.model.deployment import NodeHealth
from gpucourse.ui.views import status
from tests.unit.ui.examples import END, aws_deployment, deployment, record, render_page, text


def render_status(outlook: Outlook) -> str:
    return render_page(
        status.status([StackStatus(deployment=aws_deployment(), nodes=outlook.nodes, active_runs=[], cloud=outlook)])
    )


def outlook(**fields: object) -> Outlook:
    values: dict[str, object] = {
        "nodes": [NodeHealth(node="node0", healthy=True, detail="running")], "instances": {"node0": "i-0123456789abcdef0"},
        "expires": END, "seconds_left": 7230.0, "cost_usd": Decimal("3.2"), "usd_per_hour": Decimal("1.5403"),
        "backstop": "AWS itself ends it at 2026-11-21 20:10 UTC",
    }  # fmt: skip
    return Outlook(**(values | fields))  # type: ignore[arg-type]  # fields by name


def test_status_of_an_unknown_lab_calls_it_neither_healthy_nor_broken() -> None:
    blind = NodeHealth(node="node0", healthy=False, known=False, detail="unknown: the AWS credentials have expired")
    page = render_status(outlook(nodes=[blind], unknown="the AWS credentials have expired"))
    assert "unknown" in page
    assert "healthy" not in page
    assert "gpucourse deploy" not in page


def test_status_of_a_stopped_or_lost_lab_says_what_to_type() -> None:
    halted = [NodeHealth(node="node0", healthy=False, detail="stopped")]
    page = render_status(outlook(nodes=halted, stopped=True))
    assert "Start it again: gpucourse start 3" in page
    assert "– stopped" in page
    assert "unhealthy" not in page
    output = render_status(outlook(nodes=halted, ended=["node0 (i-1): AWS reclaimed the spot instance"], seconds_left=-90))
    assert "AWS reclaimed the spot instance" in output
    assert "gpucourse deploy 3 --target aws" in output
    assert "passed 90 s ago" in output


def test_status_of_an_unhealthy_lab() -> None:
    health = [NodeHealth(node="node0", healthy=True), NodeHealth(node="node1", healthy=False, detail="its process has ended")]
    view = status.status([StackStatus(deployment=deployment(), nodes=health, active_runs=[record(state="running")])])
    output = text(view)
    assert view.mode == "local"
    assert re.search(r"m3-local  3 Parallel computing  unhealthy  1 of 2  \d+ s  20261121-101500-otter", output)
    assert "node1  m3-local  worker  learner@127.0.0.1:2201  ✗ unhealthy  its process has ended" in output
    assert "gpucourse deploy 3" in output


def test_status_of_a_lab_that_failed() -> None:
    half = deployment(phase="failed", inventory=None, error="terraform said no")
    output = text(
        status.status([StackStatus(deployment=half, nodes=[NodeHealth(node="node0", healthy=False)], active_runs=[])])
    )
    assert "failed" in output
    assert "terraform said no" in output
    assert "Nothing is deployed." in text(status.status([]))
    assert "The record of a lab cannot be read" in text(status.status([], unreadable=1))
