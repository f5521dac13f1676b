from __future__ import annotations

import pytest

from gpucourse.context import Context
from gpucourse.errors import MissingError
from gpucourse.labs.results import Health
from gpucourse.labs.status import status
from gpucourse.labs.target import TARGETS
from gpucourse.model.deployment import HostsDeployment, LocalDeployment
from tests.unit.labs.records import record


class Blind:
    """The part of a target that `status` uses."""

    def health(self, *_: object, **options: object) -> Health:
        raise MissingError("it is dark")


def test_status_shows_other_labs_when_a_target_cannot_look(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TARGETS, "hosts", f"{__name__}:Blind")  # the registry is what this test is about
    record(context, HostsDeployment, "hosts")
    record(context, LocalDeployment, "local")
    [blind, local] = status(context).stacks
    assert [node.detail for node in blind.nodes] == ["it is dark"]
    assert (local.deployment.stack, [node.node for node in local.nodes]) == ("03-local", ["node0"])
