from __future__ import annotations

import pytest

from gpucourse.context import Context
from gpucourse.errors import MissingError, UsageError
from gpucourse.labs import change
from gpucourse.model.deployment import HostsDeployment, LocalDeployment
from tests.unit.labs.records import record


def test_change_says_why_a_lab_has_no_clock(context: Context) -> None:
    with pytest.raises(MissingError, match="module 3 has no lab on AWS") as caught:
        change.stop(context, "3")
    assert caught.value.hint == "gpucourse deploy 3 --target aws"
    record(context, LocalDeployment, "local")
    for verb in (change.stop, change.start, change.allow_ip):
        with pytest.raises(UsageError, match="03-local is not a lab on AWS: simulated nodes cost nothing"):
            verb(context, "3")
    for longer in (change.more_time, change.keep):
        with pytest.raises(UsageError, match="03-local is not a lab on AWS: simulated nodes cost nothing"):
            longer(context, "3", 3600)
    record(context, HostsDeployment, "hosts")
    with pytest.raises(UsageError, match="it neither starts nor ends them"):
        change.stop(context, "3")
