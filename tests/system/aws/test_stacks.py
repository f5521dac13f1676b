"""Every stack that the other files do not stand up, side by side: built, planned again without a change, taken down."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.system.aws.courses import write_course
from tests.system.aws.learner import CloudLearner, cloud_learner

pytestmark = [pytest.mark.system, pytest.mark.slow]

LABS = {  # that of tracing is the lab's module with other values, as benchmark's is; a spot lab is stood up by the live hour
    "slurm-cluster": ("2",),
    "benchmark": ("4", "--gpu", "t4,l4"),  # two stacks of the same kind, side by side
}


@pytest.fixture(scope="module")
def labs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[CloudLearner, dict[str, Any]]]:
    """All of them, up; and the document of each `deploy`."""
    folder = tmp_path_factory.mktemp("stacks")
    with cloud_learner(folder) as learner:
        learner.environ["GPUCOURSE_COURSE"] = str(write_course(folder / "course"))
        learner.account.throttle("ec2:RunInstances", 2)
        with ThreadPoolExecutor(len(LABS)) as pool:
            typed = {
                name: pool.submit(learner.types, "deploy", *words, "--target", "aws", "--yes", "--json", timeout=400)
                for name, words in LABS.items()
            }
        yield learner, {name: done.result().document for name, done in typed.items()}
        destroyed = learner.types("destroy", "--all", "--yes", "--discard", timeout=400)
        assert "Terraform could not" not in destroyed.err
        assert learner.list_resources() == []


@pytest.mark.parametrize("template", LABS)
def test_it_stands_and_a_second_plan_changes_nothing(template: str, labs: tuple[CloudLearner, dict[str, Any]]) -> None:
    learner, documents = labs
    built = documents[template]["labs"]
    assert {lab["deployment"]["template"] for lab in built} == {template}
    assert all(lab["deployment"]["phase"] == "ready" for lab in built)
    again = learner.types("deploy", *LABS[template], "--target", "aws", "--dry-run", "--json", timeout=240).document
    assert [quote["changes"] for quote in again["quotes"]] == [[]] * len(built)


def test_several_gpus_stand_side_by_side(labs: tuple[CloudLearner, dict[str, Any]]) -> None:
    learner, documents = labs
    built = {lab["deployment"]["stack"]: lab["deployment"]["cloud"] for lab in documents["benchmark"]["labs"]}
    assert {stack: cloud["instance_type"] for stack, cloud in built.items()} == {
        "04-aws-l4": "g6.xlarge",
        "04-aws-t4": "g4dn.xlarge",
    }
    assert len({resource.tags["Stack"] for resource in learner.list_resources("vpc")}) == 3
    assert learner.account.calls("RunInstances")


def test_the_cluster_has_a_head_without_a_gpu(labs: tuple[CloudLearner, dict[str, Any]]) -> None:
    learner, _documents = labs
    nodes = learner.inventory("02-aws-t4")
    kinds = [node["instance_type"] for node in nodes]
    assert (nodes[0]["role"], kinds) == ("head", ["t3.medium", "g4dn.xlarge", "g4dn.xlarge", "g4dn.xlarge"])
