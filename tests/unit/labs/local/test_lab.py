from __future__ import annotations

import pytest

from gpucourse.context import Context
from gpucourse.errors import UsageError
from gpucourse.labs.local.lab import choose, machine_names
from gpucourse.model.deployment import LocalDeployment
from tests.unit.labs.local.test_requirements_slurm import DEBIAN


def test_choose_refuses_to_unpack_slurm_for_a_lab_without_it(context: Context, deployment: LocalDeployment) -> None:
    with pytest.raises(UsageError, match="has no Slurm"):
        choose(context, deployment, None, None, unpack=True)


def test_machine_names_under_slurm_have_one_more_for_the_head(deployment: LocalDeployment) -> None:
    assert machine_names(deployment) == ["node0", "node1", "node2"]
    deployment.variables.scheduler = "slurm"
    assert machine_names(deployment)[-1] == "node3"


def test_choose_of_a_link_that_cannot_be_read_names_an_example(context: Context, deployment: LocalDeployment) -> None:
    with pytest.raises(UsageError, match="--link: ") as caught:
        choose(context, deployment, None, "fast", computer=DEBIAN)
    assert caught.value.hint == "gpucourse deploy 2 --link 1gbit"
