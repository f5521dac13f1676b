"""`destroy --forget-unreachable`, for labs that cannot cost money and may be unreachable."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.context import Context
from gpucourse.errors import LeftoverError, UsageError
from gpucourse.labs.destroy import DestroyRequest, destroy, survey
from gpucourse.model.event import Note
from gpucourse.workspace import deployments
from tests.unit.labs.aws.fakes import context_in, deployment_of
from tests.unit.labs.records import make_hosts_lab
from tests.unit.ui.examples import deployment


def test_survey_refuses_to_forget_a_lab_that_may_be_billed(tmp_path: Path) -> None:
    """Request several labs. The one that may be billed is taken down as usual."""
    context, events = context_in(tmp_path)
    deployments.save(context.paths, deployment_of("1"))
    with pytest.raises(UsageError, match="01-aws-t4 is never forgotten: it may be billed") as caught:
        survey(context, DestroyRequest(module="1", target="aws", forget_unreachable=True))
    assert caught.value.hint == "gpucourse destroy 1 --target aws"
    deployments.save(context.paths, make_hosts_lab())
    labs = survey(context, DestroyRequest(module="1", forget_unreachable=True)).labs
    assert {lab.stack for lab in labs} == {"01-hosts", "01-aws-t4"}
    notes = [event.text for event in events if isinstance(event, Note)]
    assert notes == ["01-aws-t4 is never forgotten: it may be billed. It is taken down as usual"]


def test_survey_refuses_to_forget_simulated_nodes(context: Context) -> None:
    deployments.save(context.paths, deployment())
    with pytest.raises(UsageError, match="m3-local is never forgotten: it is on this computer") as caught:
        survey(context, DestroyRequest(module="3", forget_unreachable=True))
    assert caught.value.hint == "gpucourse destroy 3"


def test_destroy_names_what_may_be_left_of_a_forgotten_lab(context: Context) -> None:
    deployments.save(context.paths, make_hosts_lab())
    looked = survey(context, DestroyRequest(module="1"))
    [refusal] = destroy(context, looked, discard=False).errors
    assert refusal.exit_code == 3, "the workspace has no key"
    assert refusal.hint.endswith("gpucourse destroy 1 --forget-unreachable")
    result = destroy(context, looked, discard=False, forget_unreachable=True)
    [error] = result.errors
    assert isinstance(error, LeftoverError)
    assert error.what.startswith(
        "01-hosts is forgotten; machines that could not be reached may still have these parts of it: "
        "me@gpu1: the folder ~/.gpucourse (the private key"
    )
    assert error.hint == "once a machine can be reached again: ssh -p 1 me@127.0.0.1 'cd && rm -rf .gpucourse/labs/c0ffee-2'"
    [receipt] = result.receipts
    assert [item.kind for item in receipt.forgotten] == ["host"]
    assert deployments.readable(context.paths)[0] == []
