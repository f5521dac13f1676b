"""Which labs `destroy --forget-unreachable` may forget: those that cannot cost anything and may be out of reach."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.errors import LeftoverError, UsageError
from gpucourse.labs.destroy import DestroyRequest, destroy, survey
from gpucourse.labs.target import Forgettable, load_targets
from gpucourse.model.deployment import HostsDeployment
from gpucourse.model.event import Note
from gpucourse.model.node import Inventory, Node
from gpucourse.units import now_utc
from gpucourse.workspace import deployments
from tests.unit.labs.aws.fakes import context_in, deployment_of

GONE = Node(
    name="node0", role="head", address="127.0.0.1", port=1, private_address="", user="me", gpus=0, instance_type="",
    python="/usr/bin/python3", mode="hosts", host_key="ssh-ed25519 AAAA", typed="me@gpu1",
)  # fmt: skip


def make_hosts_lab() -> HostsDeployment:
    now = now_utc()
    return HostsDeployment(
        stack="01-hosts", uid="c0ffee-2", module="1", template="hosts", phase="ready", created=now, updated=now,
        nodes_wanted=1, inventory=Inventory(stack="01-hosts", nodes=(GONE,)),
    )  # fmt: skip


def test_only_labs_on_machines_of_ones_own_can_be_forgotten() -> None:
    assert [target.name for target in load_targets() if isinstance(target, Forgettable)] == ["hosts"]


def test_a_lab_that_may_be_billed_is_refused(tmp_path: Path) -> None:
    context, _ = context_in(tmp_path)
    deployments.save(context.paths, deployment_of("3"))
    with pytest.raises(UsageError, match="03-aws-t4 is never forgotten: it may be billed") as caught:
        survey(context, DestroyRequest(module="3", target="aws", forget_unreachable=True))
    assert caught.value.hint == "gpucourse destroy 3 --target aws"


def test_among_others_it_is_named_and_taken_down_as_usual(tmp_path: Path) -> None:
    context, events = context_in(tmp_path)
    deployments.save(context.paths, make_hosts_lab())
    deployments.save(context.paths, deployment_of("1"))
    labs = survey(context, DestroyRequest(module="1", forget_unreachable=True)).labs
    assert {lab.stack for lab in labs} == {"01-hosts", "01-aws-t4"}
    notes = [event.text for event in events if isinstance(event, Note)]
    assert notes == ["01-aws-t4 is never forgotten: it may be billed. It is taken down as usual"]


def test_what_may_be_left_is_named_and_the_record_goes(tmp_path: Path) -> None:
    context, _ = context_in(tmp_path)
    deployments.save(context.paths, make_hosts_lab())
    looked = survey(context, DestroyRequest(module="1"))
    [refused] = destroy(context, looked, discard=False).errors
    assert refused.exit_code == 3, "the workspace has no key"
    assert refused.hint.endswith("gpucourse destroy 1 --forget-unreachable")
    result = destroy(context, looked, discard=False, forget_unreachable=True)
    [error] = result.errors
    assert isinstance(error, LeftoverError)
    assert error.what.startswith(
        "01-hosts is forgotten, and this may be left where nobody could look: me@gpu1: the folder ~/.gpucourse (the private key"
    )
    assert error.hint == "once a machine can be reached again: ssh -p 1 me@127.0.0.1 'cd && rm -rf .gpucourse/labs/c0ffee-2'"
    [receipt] = result.receipts
    assert [item.kind for item in receipt.forgotten] == ["host"]
    assert deployments.readable(context.paths)[0] == []
