from __future__ import annotations

import pytest

from gpucourse.context import Context
from gpucourse.errors import MissingError, UsageError
from gpucourse.labs.target import find_clocked_target
from gpucourse.model.deployment import HostsDeployment, LocalDeployment
from tests.unit.labs.records import record


def test_find_clocked_target_refuses_a_lab_without_a_clock(context: Context) -> None:
    with pytest.raises(MissingError, match="module 3 has no lab on AWS") as caught:
        find_clocked_target(context, "3", None).stop(context, "3", gpu=None)
    assert caught.value.hint == "gpucourse status shows every lab", "it suggests nothing that costs"
    record(context, LocalDeployment, "local")
    with pytest.raises(UsageError, match="03-local is not a lab on AWS: simulated nodes cost nothing"):
        find_clocked_target(context, "3", None)
    record(context, HostsDeployment, "hosts")
    with pytest.raises(UsageError, match="the course neither starts nor ends these machines"):
        find_clocked_target(context, "3", None)
