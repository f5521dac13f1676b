"""`doctor --target aws` and its requests for quota, against a mock account: the command as it is typed.

Each finding has its tests in tests/unit/aws/test_preflight.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.mock_aws.account import Account
from tests.mock_aws.shared import GRAPHICS
from tests.system.aws.terminal import Terminal
from tests.system.cli import Learner

pytestmark = pytest.mark.system


@pytest.fixture
def learner(account: Account, tmp_path: Path) -> Learner:
    learner = Learner(tmp_path / "work space", dict(account.environment))
    learner.workspace.mkdir()
    (learner.workspace / "gpucourse.yaml").write_text("ssh_cidr: 203.0.113.7/32\n")
    return learner


def index_findings(document: Any) -> dict[str, dict[str, str]]:
    return {finding["what"]: finding for finding in document["findings"]}


def test_doctor_of_a_good_account_shows_the_price_of_the_course_and_changes_nothing(learner: Learner, account: Account) -> None:
    call_count = len(account.calls())
    document = learner.documents("doctor", "--target", "aws")
    findings = index_findings(document)
    assert {name: finding for name, finding in findings.items() if finding["state"] in {"missing", "unknown"}} == {}
    assert {module["module"] for module in document["prices"]} >= {"1", "3"}
    total = sum(float(module["usd_per_hour"]) * float(module["hours"]) for module in document["prices"])
    assert float(document["usd"]) == pytest.approx(total)
    for call in account.calls()[call_count:]:
        assert call.action.startswith(("Describe", "Get", "List")) or call.code == "DryRunOperation", call.action
    assert account.resources() == []


def test_doctor_lists_everything_that_is_missing_with_its_remedy(learner: Learner, account: Account) -> None:
    account.plan("FREE")
    account.quota(GRAPHICS, 0)
    account.deny("ec2:RunInstances")
    result = learner.types("doctor", "--target", "aws", "--module", "1", code=3)
    for words in (
        "Free plan",
        "billing/home#/account",
        f"quota {GRAPHICS} (on-demand)",
        "--request-quota",
        "refused: ec2:RunInstances",
        "gpucourse doctor --policy prints it",
        "are missing",
    ):
        assert words in result.out, words


def test_doctor_asks_for_quota_once_after_a_yes(learner: Learner, account: Account) -> None:
    account.quota(GRAPHICS, 4)
    result = learner.types("doctor", "--request-quota", code=2)
    assert "gpucourse doctor --target aws --request-quota --yes" in result.err
    terminal = Terminal(learner, "doctor", "--request-quota")
    terminal.shows("[y/N]")
    assert "ask for 16" in terminal.screen
    assert account.calls("RequestServiceQuotaIncrease") == []
    terminal.types("y")
    assert terminal.ends() == 0
    assert "Requested from AWS" in terminal.screen
    assert [call.params["DesiredValue"] for call in account.calls("RequestServiceQuotaIncrease")] == [16]
    assert "a request for 16 is open" in learner.types("doctor", "--request-quota", "--yes").out
    assert len(account.calls("RequestServiceQuotaIncrease")) == 1
