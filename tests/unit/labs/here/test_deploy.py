from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpucourse.errors import MissingError, UsageError
from gpucourse.labs.here.deploy import propose
from gpucourse.labs.request import DeployRequest
from tests.unit.labs.here.computer import with_python


@pytest.mark.parametrize(
    ("request_", "error", "words"),
    [
        (DeployRequest(module="3"), MissingError, "over 2 GPUs or more, but this computer has 1"),
        (DeployRequest(module="2"), UsageError, "module 2 is about a cluster under Slurm, but this is one computer"),
        (DeployRequest(module="1", nodes=2), UsageError, "--nodes 2: this computer is one node"),
    ],
)
def test_propose_refuses_what_one_computer_cannot_be(
    tmp_path: Path, request_: DeployRequest, error: type[Exception], words: str
) -> None:
    context = with_python(tmp_path, "2.11.0", ["NVIDIA L4"])
    with pytest.raises(error, match=words), propose(context, replace(request_, dry_run=True)):
        pass


def test_propose_takes_every_gpu(tmp_path: Path) -> None:
    context = with_python(tmp_path, "2.11.0", ["NVIDIA L4"] * 2)
    with propose(context, DeployRequest(module="3", dry_run=True)) as proposal:
        assert (len(proposal.gpus), proposal.changes) == (2, [("create", "node0")])
