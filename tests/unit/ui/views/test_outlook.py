from __future__ import annotations

import time
from dataclasses import replace
from decimal import Decimal

from gpucourse.labs.aws.status import Outlook
from gpucourse.model.cloud import Idle
from gpucourse.model.deployment import AwsDeployment
from gpucourse.ui.tables import text_of
from gpucourse.ui.views.outlook import clock, outlook
from tests.unit.ui.examples import END, aws_deployment


def show(lab: AwsDeployment | None = None, **fields: object) -> dict[str, str]:
    values: dict[str, object] = {
        "nodes": [], "instances": {}, "expires": END, "seconds_left": 7230.0, "cost_usd": Decimal("3.2"),
        "usd_per_hour": Decimal("1.5403"), "backstop": "armed",
    }  # fmt: skip
    outlook_of = Outlook(**(values | fields))  # type: ignore[arg-type]  # fields by name
    return {name: text_of(value) for name, value in outlook(lab or aws_deployment(), outlook_of).pairs}


def test_outlook_shows_the_cost_and_the_deadline_and_how_to_extend_it() -> None:
    output = show()
    assert output["cost"] == "$3.20 so far, $1.54 an hour"
    assert output["deadline"] == f"in 2 h 00 min ({clock(END)}); more time: gpucourse extend 3 2h"
    assert show(seconds_left=-90)["deadline"].startswith("passed 90 s ago")


def test_outlook_of_a_stopped_lab_without_a_backstop_says_that_nothing_ends_it() -> None:
    lab = aws_deployment()
    lab.cloud = replace(lab.cloud, backstop="not armed yet")
    assert show(lab, stopped=True)["deadline"].endswith("nothing ends a stopped lab: gpucourse destroy 3")
    lab.cloud = replace(lab.cloud, backstop="")
    assert show(lab, stopped=True)["deadline"] == show()["deadline"]


def test_outlook_says_what_the_idle_agent_will_do() -> None:
    now = time.time()
    nodes = [
        Idle(node="node0", seen_at=0, busy=("SSH sessions: 1",)),
        Idle(node="node1", seen_at=0),
        Idle(node="node2", seen_at=0, ends_at=now + 630),
        Idle(node="node3", seen_at=0, ends_at=now - 1),
    ]
    assert show(idle=nodes)["idle agent"].splitlines() == [
        "node0: in use (SSH sessions: 1)",
        "node1: has not been idle yet",
        "node2: idle; will be ended in 10 min",
        "node3: idle for long enough; being ended now",
    ]
