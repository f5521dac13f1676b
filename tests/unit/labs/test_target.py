"""Targets through their registry: which one is meant, what each can do, and labs on a target that is not installed."""

from __future__ import annotations

import pytest

from gpucourse.context import Context
from gpucourse.errors import MissingError
from gpucourse.labs.destroy import DestroyRequest, destroy, survey
from gpucourse.labs.status import status
from gpucourse.labs.target import (
    TARGETS,
    HasAccount,
    HasClock,
    HasLogin,
    Searchable,
    find_target,
    list_targets,
    load_targets,
)
from gpucourse.model.deployment import Deployment
from gpucourse.workspace import deployments
from tests.unit.labs.records import record


def test_list_targets_says_what_each_can_do() -> None:
    assert [target.name for target in load_targets()] == list(list_targets()) == list(TARGETS)
    for target in load_targets():
        can = [isinstance(target, ability) for ability in (HasClock, Searchable, HasAccount)]
        assert can == [target.name == "aws"] * 3
        assert target.forgettable == (target.name in {"hosts", "slurm"})
        assert isinstance(target, HasLogin) == (target.name == "slurm")
        assert bool(target.no_clock) != can[0]


def test_find_target_keeps_the_lab_of_one_that_is_not_installed(context: Context) -> None:
    record(context, Deployment, "moon")
    [lab] = status(context).stacks
    assert [(node.healthy, node.known, node.detail) for node in lab.nodes] == [
        (False, False, "there is no target moon in this installation")
    ]
    result = destroy(context, survey(context, DestroyRequest(module="3", target="moon")), discard=False)
    assert [type(error) for error in result.errors] == [MissingError]
    assert deployments.load(context.paths, "03-moon") is not None
    with pytest.raises(MissingError, match="there is no target moon in this installation"):
        find_target("moon")
