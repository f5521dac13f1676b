from __future__ import annotations

import pytest

from gpucourse.context import Context
from gpucourse.errors import UsageError
from gpucourse.labs.aws import stop_start
from gpucourse.workspace import deployments
from tests.unit.labs.aws.fakes import deployment_of


def test_start_refuses_an_expired_lab(context: Context) -> None:
    deployments.save(context.paths, deployment_of(hours=0.1, stopped=True))
    with pytest.raises(UsageError, match="would soon end itself") as error:
        stop_start.start(context, "3")
    assert "gpucourse extend 3 2h" in error.value.hint


def test_stop_refuses_spot_instances(context: Context) -> None:
    deployments.save(context.paths, deployment_of(market="spot"))
    with pytest.raises(UsageError, match="spot instances, which cannot be stopped"):
        stop_start.stop(context, "3")
