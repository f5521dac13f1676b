"""Two stacks of a kind, side by side, each for another GPU.

The stack of module 3 is in test_deploy.py, those of modules 1 and 2, one of them on spot instances, in test_live_hour.py. That
of tracing is the module of the lab with other values, as this one is.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.system.aws.courses import write_course
from tests.system.aws.learner import CloudLearner

pytestmark = [pytest.mark.system, pytest.mark.slow]

WORDS = ("deploy", "4", "--gpu", "t4,l4", "--target", "aws")


def test_deploy_of_two_gpus_makes_a_lab_of_each_and_a_second_plan_changes_nothing(
    learner: CloudLearner, tmp_path: Path
) -> None:
    learner.environ["GPUCOURSE_COURSE"] = str(write_course(tmp_path / "course"))
    learner.account.fail("ec2:RunInstances", "RequestLimitExceeded", times=2)
    built = learner.types(*WORDS, "--yes", "--json", timeout=400).document["labs"]
    assert {lab["deployment"]["template"] for lab in built} == {"benchmark"}
    assert all(lab["deployment"]["phase"] == "ready" for lab in built)
    types = {lab["deployment"]["stack"]: lab["deployment"]["cloud"]["instance_type"] for lab in built}
    assert types == {"04-aws-l4": "g6.xlarge", "04-aws-t4": "g4dn.xlarge"}
    assert len({resource.tags["Stack"] for resource in learner.list_resources("vpc")}) == 2

    again = learner.types(*WORDS, "--dry-run", "--json", timeout=240).document
    assert [quote["changes"] for quote in again["quotes"]] == [[], []]

    destroyed = learner.types("destroy", "--all", "--yes", "--discard", timeout=400)
    assert "Terraform could not" not in destroyed.err
    assert learner.list_resources() == []
