from __future__ import annotations

import pytest

from gpucourse.context import Context
from gpucourse.errors import MissingError, UsageError
from gpucourse.labs.aws.account import find_lab
from gpucourse.workspace import deployments
from tests.unit.labs.aws.fakes import deployment_of


def test_find_lab_asks_which_of_several_labs_is_meant(context: Context) -> None:
    for gpu in ("t4", "l4"):
        deployments.save(context.paths, deployment_of(gpu=gpu))
    with pytest.raises(UsageError, match="module 3 has several labs on AWS"):
        find_lab(context, "3", verb="stop")
    assert find_lab(context, "3", gpu="l4", verb="stop").stack == "03-aws-l4"
    with pytest.raises(MissingError, match="module 3 has no lab on AWS with the GPU a10g"):
        find_lab(context, "3", gpu="a10g", verb="stop")
