"""`cost` and the quota of labs on AWS: the ledger through every loss, shares of exercises, the budget."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from gpucourse.labs.aws import ledger
from gpucourse.labs.aws.cost import Cost, cost
from gpucourse.workspace import deployments, runs
from gpucourse.workspace.paths import WorkspacePaths
from tests.mock_aws.asking import launch
from tests.mock_aws.shared import GRAPHICS
from tests.system.aws import hand_made
from tests.system.aws.learner import CloudLearner
from tests.unit.ui.examples import record

pytestmark = pytest.mark.system


def compute_cost(learner: CloudLearner) -> Cost:
    return cost(hand_made.context(learner))


@pytest.mark.slow
def test_cost_counts_nodes_that_ended_and_a_lab_without_a_record(learner: CloudLearner) -> None:
    lab = hand_made.lab(learner, nodes=2)
    first, second = hand_made.ids(learner)
    learner.account.shut_down(second)
    now = compute_cost(learner)
    spans = {span.charge.item: span for span in ledger.read(WorkspacePaths(learner.workspace).ledger).spans}
    assert spans[second].ended is not None
    assert spans[f"{second}:ipv4"].ended is not None
    assert spans[first].ended is None
    assert sum(span.ended is not None for span in spans.values() if span.charge.kind == "disk") == 1
    assert now.usd_per_hour == pytest.approx(Decimal("0.77"), abs=Decimal("0.01"))
    assert [running.stack for running in now.running] == ["03-aws-t4"]
    assert now.running[0].usd_to_end == pytest.approx(Decimal("3.06"), abs=Decimal("0.2"))
    deployments.drop(WorkspacePaths(learner.workspace), lab.stack)
    learner.account.shut_down(first)
    lost = compute_cost(learner)
    assert lost.running == []
    assert lost.usd_per_hour == 0
    assert lost.usd > 0


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


def test_cost_of_an_account_that_does_not_answer_is_that_of_the_ledger(lab_owner: CloudLearner) -> None:
    lab_owner.account.expire_credentials()
    now = compute_cost(lab_owner)
    assert now.usd > 0
    assert "the figure recorded last" in now.warnings[0]


@pytest.mark.slow
def test_quota_for_more_nodes_counts_those_that_run(lab_owner: CloudLearner) -> None:
    stranger = launch(lab_owner.account)  # in the same family
    lab_owner.account.quota(GRAPHICS, 20)
    refused = lab_owner.types("deploy", "3", "--target", "aws", "--nodes", "3", "--yes", code=3)
    assert "needed 8 vCPU, limit 20, in use 20" in refused.err
    assert "--module 3" in next(line for line in refused.err.splitlines() if "--request-quota" in line)
    lab_owner.types("doctor", "--request-quota", "--module", "3", "--nodes", "3", "--yes")
    assert [call.params["DesiredValue"] for call in lab_owner.account.calls("RequestServiceQuotaIncrease")] == [28]
    document = lab_owner.types("doctor", "--target", "aws", "--module", "3", "--json").document
    [family] = [finding for finding in document["findings"] if finding["what"] == f"quota {GRAPHICS} (on-demand)"]
    assert (family["state"], "needed 0 vCPU" in family["detail"]) == ("ok", True)
    lab_owner.account.client("ec2").terminate_instances(InstanceIds=[stranger])
