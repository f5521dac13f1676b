from __future__ import annotations

import pytest

from gpucourse.context import Context
from gpucourse.labs.aws.target import AwsTarget
from tests.unit.labs.aws.fakes import deployment_of


@pytest.mark.parametrize(("is_stopped", "verb"), [(True, "start"), (False, "allow-ip")])
def test_advise_on_unreachable_names_the_command_and_the_cost(context: Context, is_stopped: bool, verb: str) -> None:
    meanwhile, mend = AwsTarget().advise_on_unreachable(context, deployment_of(stopped=is_stopped, usd_per_hour="1.54"))
    assert meanwhile == "; meanwhile 03-aws-t4 costs about $1.54 an hour"
    assert mend.startswith(f"gpucourse {verb} 3 ")
