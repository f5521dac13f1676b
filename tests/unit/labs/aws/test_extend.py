from __future__ import annotations

import pytest

from gpucourse.context import Context
from gpucourse.errors import UsageError
from gpucourse.labs.aws.extend import more_time
from gpucourse.workspace import deployments
from tests.unit.labs.aws.fakes import deployment_of


def test_more_time_names_the_gpu_of_several_labs_in_its_command(context: Context) -> None:
    for gpu in ("t4", "l4"):
        deployments.save(context.paths, deployment_of("4", gpu=gpu))
    assert more_time(context, "4", 3600, gpu="l4").command == "gpucourse extend 4 60m --gpu l4"


@pytest.mark.parametrize(
    ("hours", "words", "hint"),
    [
        (0.01, "at least one minute", "gpucourse extend 3 2h"),
        (69, "more than 72 hours after it was built", "at most: gpucourse extend 3 68h"),
        (1e9, "more than 72 hours after it was built", "at most: gpucourse extend 3 68h"),
    ],
)
def test_more_time_has_limits(context: Context, hours: float, words: str, hint: str) -> None:
    deployments.save(context.paths, deployment_of(hours=4))
    with pytest.raises(UsageError, match=words) as caught:
        more_time(context, "3", hours * 3600)
    assert caught.value.hint == hint
