from __future__ import annotations

import pytest

from gpucourse.context import Context
from gpucourse.errors import UsageError
from gpucourse.labs.aws.change import allow_ip, lock_lab
from gpucourse.workspace import deployments
from gpucourse.workspace.lock import try_lock
from tests.unit.labs.aws.fakes import deployment_of


def test_lock_lab_keeps_other_commands_out(context: Context) -> None:
    deployments.save(context.paths, deployment_of())
    with lock_lab(context, "3", gpu=None, verb="stop") as lab, try_lock(context.paths.lock(lab.stack), "extend 3") as free:
        assert not free


def test_allow_ip_refuses_more_than_one_address(context: Context) -> None:
    deployments.save(context.paths, deployment_of())
    with pytest.raises(UsageError, match=r"0\.0\.0\.0/0"):
        allow_ip(context, "3", cidr="0.0.0.0/0")
