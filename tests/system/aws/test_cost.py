"""`cost` of labs on AWS: shares of exercises, the budget, what was billed."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from gpucourse.workspace import deployments, runs
from gpucourse.workspace.paths import WorkspacePaths
from tests.system.aws import hand_made
from tests.system.aws.learner import CloudLearner
from tests.unit.ui.examples import record

pytestmark = pytest.mark.system


def test_cost_tells_shares_of_exercises_the_budget_and_what_was_billed(lab_owner: CloudLearner) -> None:
    lab = hand_made.read_record(lab_owner)
    at = datetime.fromisoformat(hand_made.utc(0))
    times = {"started": (at - timedelta(hours=2)).isoformat(), "ended": (at + timedelta(hours=1)).isoformat()}
    kept = record(id="20261121-101500-cost", stack=lab.stack, mode="aws", nodes=["node0"], **times)
    kept.created = lab.created = times["started"]
    deployments.save(WorkspacePaths(lab_owner.workspace), lab)
    runs.save(WorkspacePaths(lab_owner.workspace), kept)
    lab_owner.sets(budget_usd=2)
    typed = lab_owner.types("cost")
    assert "not enough until the end" in typed.out
    assert "3.1" in typed.out
    assert "karpenter-provider-aws, 2026-07-20" in typed.out
    assert "gpucourse cost --billed" in typed.out
    document = lab_owner.documents("cost", "--billed")
    assert document["exercises"][0]["name"] == "3.1"
    assert document["billed"]["requests"] == 1
    assert len(lab_owner.account.calls("GetCostAndUsage")) == 1
