from __future__ import annotations

import pytest

from gpucourse.context import Context
from gpucourse.errors import Interrupted, UsageError
from gpucourse.labs.deploy import choose_target, make_record, record_outcome
from gpucourse.labs.request import DeployRequest
from gpucourse.model.deployment import LocalDeployment
from gpucourse.workspace import deployments
from tests.unit.labs.records import record


@pytest.mark.parametrize(
    ("request_", "name"),
    [
        (DeployRequest(module="3"), "local"),
        (DeployRequest(module="3", target="aws", gpu=("t4",)), "aws"),
        (DeployRequest(module="3", hosts=("me@gpu1",)), "hosts"),
    ],
)
def test_choose_target_returns_the_one_that_the_request_means(context: Context, request_: DeployRequest, name: str) -> None:
    assert choose_target(context.settings, request_).name == name


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (DeployRequest(module="3", gpu=("t4",), spot=False), "--gpu, --spot: only for labs on AWS"),
        (DeployRequest(module="3", hosts=("me@gpu1",), gpu=("t4",)), "--gpu: only for labs on AWS"),
        (DeployRequest(module="3", target="aws", link="1gbit"), "--link: only for simulated nodes"),
        (DeployRequest(module="3", target="hosts", unpack_slurm=True), "--unpack-slurm: only for simulated nodes"),
        (DeployRequest(module="3", target="local", hosts=("a",), trust=("SHA256:x",)), "--hosts, --trust: only for machines"),
    ],
)
def test_choose_target_refuses_a_flag_of_another_target(context: Context, request_: DeployRequest, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        choose_target(context.settings, request_)
    assert str(caught.value.hint).startswith("gpucourse deploy 3 --target ")


def test_record_outcome_keeps_a_lab_that_was_interrupted(context: Context) -> None:
    lab = record(context, LocalDeployment, "local")

    def build() -> None:
        with record_outcome(context.paths, lab):
            assert lab.phase == "creating"
            raise KeyboardInterrupt

    with pytest.raises(Interrupted, match="deploying 03-local was interrupted"):
        build()
    assert deployments.load(context.paths, "03-local") == lab
    assert (lab.phase, lab.error) == ("failed", "KeyboardInterrupt")


def test_make_record_describes_a_lab_before_it_is_built(context: Context) -> None:
    module = context.catalog.module("3")
    record, second_record = (
        make_record(context.workspace, LocalDeployment, module, "03-local", template="t", nodes=2) for _ in "12"
    )
    assert (record.stack, record.module, record.title, record.phase) == ("03-local", "3", module.title, "creating")
    assert record.uid.startswith(f"{context.workspace.id}-")
    assert record.uid != second_record.uid
