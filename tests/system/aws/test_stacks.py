"""Two stacks of a kind, side by side, each for another GPU: built, planned again without a change, taken down.

The stack of module 2 is in test_slurm.py, that of module 3 in test_deploy.py, a spot lab in test_live_hour.py. That of tracing
is the module of the lab with other values, as this one is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.system.aws.courses import write_course
from tests.system.aws.learner import CloudLearner, cloud_learner

pytestmark = [pytest.mark.system, pytest.mark.slow]

WORDS = ("deploy", "4", "--gpu", "t4,l4", "--target", "aws")


@pytest.fixture(scope="module")
def labs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[CloudLearner, list[Any]]]:
    """Both labs, up, as the document of `deploy` tells of them."""
    folder = tmp_path_factory.mktemp("stacks")
    with cloud_learner(folder) as learner:
        learner.environ["GPUCOURSE_COURSE"] = str(write_course(folder / "course"))
        learner.account.throttle("ec2:RunInstances", 2)
        yield learner, learner.types(*WORDS, "--yes", "--json", timeout=400).document["labs"]
        destroyed = learner.types("destroy", "--all", "--yes", "--discard", timeout=400)
        assert "Terraform could not" not in destroyed.err
        assert learner.list_resources() == []


def test_they_stand_and_a_second_plan_changes_nothing(labs: tuple[CloudLearner, list[Any]]) -> None:
    learner, built = labs
    assert {lab["deployment"]["template"] for lab in built} == {"benchmark"}
    assert all(lab["deployment"]["phase"] == "ready" for lab in built)
    again = learner.types(*WORDS, "--dry-run", "--json", timeout=240).document
    assert [quote["changes"] for quote in again["quotes"]] == [[], []]


def test_several_gpus_stand_side_by_side(labs: tuple[CloudLearner, list[Any]]) -> None:
    learner, built = labs
    assert {lab["deployment"]["stack"]: lab["deployment"]["cloud"]["instance_type"] for lab in built} == {
        "04-aws-l4": "g6.xlarge",
        "04-aws-t4": "g4dn.xlarge",
    }
    assert len({resource.tags["Stack"] for resource in learner.list_resources("vpc")}) == 2
    assert learner.account.calls("RunInstances")
