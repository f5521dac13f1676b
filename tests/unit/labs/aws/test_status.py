from __future__ import annotations

from datetime import UTC, datetime

from gpucourse.context import Context
from gpucourse.errors import CredentialsError
from gpucourse.labs.aws.status import _make_outlook
from gpucourse.model.cloud import CloudInstance
from gpucourse.model.node import Inventory
from tests.unit.labs.aws.fakes import deployment_of, node


def test_health_is_what_the_account_says_of_each_node(context: Context) -> None:
    lab = deployment_of(backstop="")
    lab.inventory = Inventory(stack=lab.stack, nodes=tuple(node(f"node{number}", address="203.0.113.7") for number in range(3)))
    instances = [
        CloudInstance(
            id=f"i-{number}", node=f"node{number}", instance_type="g4dn.2xlarge", region="us-east-2", zone="us-east-2a",
            market="spot", state=state, launched=datetime.now(UTC), address=address, stack=lab.uid,
        )
        for number, (state, address) in enumerate([("running", "203.0.113.7"), ("running", "203.0.113.8"), ("terminated", "")])
    ]  # fmt: skip
    answers: dict[tuple[str, str], object] = {("account", lab.stack): None, ("instances", "us-east-2"): instances}
    answers["backstop", lab.stack] = {}
    outlook = _make_outlook(context.paths, lab, answers)
    assert [(health.healthy, health.detail) for health in outlook.nodes] == [
        (True, "running (spot)"),
        (False, "has another address now, 203.0.113.8: gpucourse start 3"),
        (False, "the instance no longer exists"),
    ]
    assert (outlook.backstop, outlook.stopped, len(outlook.ended)) == ("none: its schedules are gone", False, 1)
    outlook = _make_outlook(context.paths, lab, {**answers, ("account", lab.stack): CredentialsError("they have expired")})
    assert [(health.healthy, health.known) for health in outlook.nodes] == [(False, False)] * 3
    assert (outlook.unknown, outlook.ended, outlook.backstop) == ("they have expired", [], "")
