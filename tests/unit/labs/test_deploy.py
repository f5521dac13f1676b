from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.context import Context
from gpucourse.errors import UsageError
from gpucourse.labs.deploy import choose_target
from gpucourse.labs.request import DeployRequest


@pytest.mark.parametrize(
    ("request_", "name"),
    [
        (DeployRequest(module="3"), "local"),
        (DeployRequest(module="3", target="aws", gpu=("t4",)), "aws"),
        (DeployRequest(module="3", hosts=("me@gpu1",)), "hosts"),
        (DeployRequest(module="3", login="me@uni", gpu=("a100",), key=Path("key")), "slurm"),
        (DeployRequest(module="3", cluster="uni"), "slurm"),
    ],
)
def test_choose_target_returns_the_one_that_the_request_means(context: Context, request_: DeployRequest, name: str) -> None:
    assert choose_target(context.settings, request_).name == name


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (DeployRequest(module="3", gpu=("t4",), spot=False), "--gpu, --spot: only for labs on AWS"),
        (DeployRequest(module="3", hosts=("me@gpu1",), gpu=("t4",)), "--gpu: only for labs on AWS"),
        (DeployRequest(module="3", login="uni", trust=("SHA256:x",)), "--trust: only for machines that exist already"),
        (DeployRequest(module="3", target="aws", partition="gpu", gpu=("t4",)), "--partition: only for a Slurm cluster"),
        (DeployRequest(module="3", target="aws", link="1gbit"), "--link: only for simulated nodes"),
        (DeployRequest(module="3", target="hosts", unpack_slurm=True), "--unpack-slurm: only for simulated nodes"),
        (DeployRequest(module="3", target="local", hosts=("a",), trust=("SHA256:x",)), "--hosts, --trust: only for machines"),
    ],
)
def test_choose_target_refuses_a_flag_of_another_target(context: Context, request_: DeployRequest, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        choose_target(context.settings, request_)
    assert str(caught.value.hint).startswith("gpucourse deploy 3 --target ")
