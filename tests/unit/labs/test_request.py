"""The command in hints is the one that was typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.labs.request import DeployRequest


@pytest.mark.parametrize(
    ("request_", "command"),
    [
        (
            DeployRequest(target="aws", module="4", gpu=("t4", "l4"), spot=True),
            "gpucourse deploy 4 --target aws --gpu t4,l4 --spot",
        ),
        (
            DeployRequest(target="aws", module="3", nodes=3, spot=False, region="us-west-2", ttl_s=7200.0, over_budget=True),
            "gpucourse deploy 3 --target aws --nodes 3 --region us-west-2 --ttl 2h --no-spot --yes-over-budget",
        ),
        (
            DeployRequest(target="local", module="2", nodes=1, link="1gbit", unpack_slurm=True),
            "gpucourse deploy 2 --target local --nodes 1 --link 1gbit --unpack-slurm",
        ),
        (
            DeployRequest(target="hosts", module="3", hosts=("me@a", "me@b:22"), key=Path("my key"), trust=("SHA256:x",)),
            "gpucourse deploy 3 --target hosts --hosts me@a,me@b:22 --key 'my key' --trust SHA256:x",
        ),
        (
            DeployRequest(
                target="slurm",
                module="3",
                login="me@uni",
                partition="gpu",
                account="abc",
                qos="long",
                gpu=("a100",),
                slurm=("constraint=ib", "mem=32G"),
                install=True,
            ),
            "gpucourse deploy 3 --target slurm --gpu a100 --login me@uni --partition gpu --account abc --qos long "
            "--slurm constraint=ib --slurm mem=32G --install",
        ),
    ],
)
def test_command_is_the_one_that_was_typed(request_: DeployRequest, command: str) -> None:
    assert request_.command == command
