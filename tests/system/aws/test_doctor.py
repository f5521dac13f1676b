"""`doctor --target aws` and its requests for quota, against a mock account: the command as it is typed."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gpucourse.aws.policy import policy_text, setup_text
from tests.mock_aws.account import Account, mock_account
from tests.mock_aws.shared import GRAPHICS as G_ON_DEMAND
from tests.mock_aws.shared import GRAPHICS_SPOT as G_SPOT
from tests.system.cli import COMMAND, Learner
from tests.waiting import STUCK_S

pytestmark = pytest.mark.system

CIDR = "203.0.113.7/32"


@pytest.fixture
def learner(account: Account, tmp_path: Path) -> Learner:
    learner = Learner(tmp_path / "work space", dict(account.environment))
    learner.workspace.mkdir()
    (learner.workspace / "gpucourse.yaml").write_text(f"ssh_cidr: {CIDR}\n")
    return learner


def index_findings(document: Any) -> dict[str, dict[str, str]]:
    return {finding["what"]: finding for finding in document["findings"]}


def test_a_good_account_gets_the_whole_course_and_its_price(learner: Learner, account: Account) -> None:
    before = len(account.calls())
    document = learner.documents("doctor", "--target", "aws")
    findings = index_findings(document)
    bad = {what: finding["detail"] for what, finding in findings.items() if finding["state"] in {"missing", "unknown"}}
    assert not bad
    assert {module["module"] for module in document["prices"]} >= {"1", "3"}
    total = sum(float(module["usd_per_hour"]) * float(module["hours"]) for module in document["prices"])
    assert float(document["usd"]) == pytest.approx(total)
    for call in account.calls()[before:]:
        looks = call.action.startswith(("Describe", "Get", "List"))
        assert looks or call.code == "DryRunOperation", call.action
    assert account.resources() == []


def test_one_module_is_asked_about_alone(learner: Learner) -> None:
    document = learner.documents("doctor", "--target", "aws", "--module", "1")
    assert [module["module"] for module in document["prices"]] == ["1"]
    assert "zones for module 3" not in index_findings(document)
    none = learner.types("doctor", "--target", "aws", "--module", "0", code=2)
    assert "gpucourse deploy 0 --target local" in none.err


def test_everything_that_is_missing_is_told_at_once_with_what_mends_it(learner: Learner, account: Account) -> None:
    account.plan("FREE")
    account.quota(G_ON_DEMAND, 0)
    account.deny("ec2:RunInstances")
    typed = learner.types("doctor", "--target", "aws", code=3)
    for words in (
        "Free plan",
        "billing/home#/account",
        f"quota {G_ON_DEMAND} (on-demand)",
        "--request-quota",
        "refused: ec2:RunInstances",
        "gpucourse doctor --policy prints it",
    ):
        assert words in typed.out, words
    assert "are missing" in typed.out


def test_what_may_not_be_seen_is_unknown_and_never_well(learner: Learner, account: Account) -> None:
    account.deny("servicequotas:*", "freetier:*", "ec2:DescribeVolumes", "iam:GetRole")
    typed = learner.types("doctor", "--target", "aws", "--json")
    findings = index_findings(typed.document)
    for what in ("account plan", f"quota {G_ON_DEMAND} (on-demand)", "leftovers", "room for a network"):
        assert findings[what]["state"] == "unknown", what
        assert findings[what]["mend"]
    shown = learner.types("doctor", "--target", "aws").out
    assert "could not be checked, and may be missing too" in shown
    assert "Ready." not in shown


def test_credentials_that_are_gone_or_have_expired(learner: Learner, account: Account) -> None:
    typed = learner.types("doctor", "--target", "aws", code=3, AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="")
    assert "there are no AWS credentials" in typed.out
    assert "aws sts get-caller-identity" in typed.out
    account.expire_credentials()
    assert "have expired" in learner.types("doctor", "--target", "aws", code=3).out


def test_a_region_that_is_not_written_like_one(learner: Learner) -> None:
    assert "is not written like a region" in learner.types("doctor", "--target", "aws", "--region", "ohio", code=2).err


def test_no_answer_from_aws_at_all(learner: Learner) -> None:
    typed = learner.types("doctor", "--target", "aws", code=3, AWS_ENDPOINT_URL="http://127.0.0.1:9")
    assert "does not answer" in typed.out
    assert "could not be checked" in typed.out


def test_a_quota_is_asked_for_once(learner: Learner, account: Account) -> None:
    account.quota(G_ON_DEMAND, 4)
    asked = learner.types("doctor", "--request-quota", "--yes")
    assert "ask for 16" in asked.out
    assert "people at aws decide" in asked.out.lower()
    made = account.calls("RequestServiceQuotaIncrease")
    assert [call.params["DesiredValue"] for call in made] == [16]
    again = learner.types("doctor", "--request-quota", "--yes")
    assert "a request for 16 is open" in again.out
    assert len(account.calls("RequestServiceQuotaIncrease")) == len(made)
    assert "a request for 16 is open" in learner.types("doctor", "--target", "aws", code=3).out
    document = learner.documents("doctor", "--request-quota", "--yes")
    assert document["requests"] == []
    assert document["quotas"][0]["open"]["wanted"] == 16


@pytest.mark.slow
def test_a_first_request_that_may_not_make_its_role_names_the_permission(learner: Learner, tmp_path: Path) -> None:
    with mock_account(tmp_path / "fresh", quotas={G_ON_DEMAND: 4}) as fresh:
        learner.environ.update(fresh.environment)
        fresh.deny("iam:CreateServiceLinkedRole")
        command = "aws iam create-service-linked-role --aws-service-name servicequotas.amazonaws.com"
        role = index_findings(learner.types("doctor", "--target", "aws", "--json", code=3).document)["quota role"]
        assert (role["state"], command in role["mend"]) == ("warning", True)
        refused = learner.types("doctor", "--request-quota", "--yes", code=3)
        assert "(iam:CreateServiceLinkedRole)" in refused.err
        assert command in refused.err
        fresh.calm()
        assert "ask for 16" in learner.types("doctor", "--request-quota", "--yes").out


@pytest.mark.slow
def test_spot_and_on_demand_have_quotas_of_their_own(learner: Learner, account: Account) -> None:
    account.quota(G_SPOT, 0)
    on_demand = index_findings(learner.documents("doctor", "--target", "aws"))
    assert on_demand[f"quota {G_ON_DEMAND} (on-demand)"]["state"] == "ok"
    assert on_demand[f"quota {G_SPOT} (spot)"]["state"] == "warning"
    spot = learner.types("doctor", "--target", "aws", "--spot", "--json", code=3).document
    assert index_findings(spot)[f"quota {G_SPOT} (spot)"]["state"] == "missing"
    assert "nothing to request" in learner.types("doctor", "--request-quota").out
    made = len(account.calls("RequestServiceQuotaIncrease"))
    learner.types("doctor", "--request-quota", "--spot", "--yes")
    assert account.calls("RequestServiceQuotaIncrease")[made].params["QuotaCode"] == G_SPOT


def test_nothing_is_asked_without_a_yes(learner: Learner, account: Account) -> None:
    account.quota(G_ON_DEMAND, 0)
    made = len(account.calls("RequestServiceQuotaIncrease"))
    nobody = learner.types("doctor", "--request-quota", code=2)
    assert "gpucourse doctor --target aws --request-quota --yes" in nobody.err
    assert "Nothing was asked" in _type_at_a_terminal(learner, "n\n", "doctor", "--request-quota")
    assert len(account.calls("RequestServiceQuotaIncrease")) == made
    assert "Requested from AWS" in _type_at_a_terminal(learner, "y\n", "doctor", "--request-quota")
    assert len(account.calls("RequestServiceQuotaIncrease")) == made + 1


@pytest.mark.slow
def test_the_quota_of_another_gpu_in_another_region_is_asked_for_there(learner: Learner, account: Account) -> None:
    words = ("--module", "4", "--region", "us-west-2", "--gpu", "h100")
    missing = index_findings(learner.types("doctor", "--target", "aws", *words, "--json", code=3).document)[
        "quota L-417A185B (on-demand)"
    ]
    assert missing["mend"].startswith(f"gpucourse doctor --target aws --request-quota {' '.join(words)} (people")
    assert f"{' '.join(words)} --yes" in learner.types("doctor", "--request-quota", *words, code=2).err
    learner.types("doctor", "--request-quota", *words, "--yes")
    made = account.calls("RequestServiceQuotaIncrease")[-1]
    assert (made.region, made.params["QuotaCode"], made.params["DesiredValue"]) == ("us-west-2", "L-417A185B", 16)
    account.close_requests("L-417A185B")
    assert "--nodes: of which module?" in learner.types("doctor", "--target", "aws", "--nodes", "4", code=2).err
    assert (
        "module 3 takes 1 to 8 nodes" in learner.types("doctor", "--target", "aws", "--module", "3", "--nodes", "9", code=2).err
    )


def test_leftovers_are_the_accounts_word_and_foreign_things_are_none(learner: Learner, account: Account) -> None:
    ec2 = account.client("ec2")
    ours = [{"Key": "Project", "Value": "gpucourse"}, {"Key": "Stack", "Value": "lost-1"}]
    made = [ec2.create_volume(AvailabilityZone="us-east-2a", Size=1)["VolumeId"]]
    try:
        assert index_findings(learner.documents("doctor", "--target", "aws"))["leftovers"]["state"] == "ok"
        tagged = {"TagSpecifications": [{"ResourceType": "volume", "Tags": ours}]}
        made.append(ec2.create_volume(AvailabilityZone="us-east-2a", Size=1, **tagged)["VolumeId"])
        left = index_findings(learner.documents("doctor", "--target", "aws"))["leftovers"]
        assert left["state"] == "warning"
        assert "1 things of 1 lab(s)" in left["detail"]
        assert "gpucourse leaks --clean" in left["mend"]
    finally:
        for volume in made:
            ec2.delete_volume(VolumeId=volume)


def test_what_is_for_an_administrator_is_printed_as_it_is(learner: Learner) -> None:
    assert learner.documents("doctor", "--setup")["setup"] == json.loads(setup_text())
    assert learner.types("doctor", "--policy").out == policy_text()
    assert learner.documents("doctor", "--policy")["policy"] == json.loads(policy_text())
    for region, partition in (("us-gov-west-1", "aws-us-gov"), ("cn-north-1", "aws-cn"), ("us-west-2", "aws")):
        printed = learner.types("doctor", "--setup", "--region", region).out
        assert set(re.findall(r"arn:(aws[a-z-]*):", printed)) == {partition}
        assert f"(partition {partition})" in printed
        assert learner.types("doctor", "--policy", "--region", region).out == policy_text(partition)
    assert "not written like a region" in learner.types("doctor", "--setup", "--region", "frankfurt", code=2).err


def _type_at_a_terminal(learner: Learner, answer: str, *words: str) -> str:
    """What the screen shows when a person answers."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *words], env=learner.environment, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    screen, answered = b"", False
    try:
        while True:
            try:
                heard = os.read(ours, 4096)
            except OSError:  # the other side of a terminal that was closed
                break
            if not heard:
                break
            screen += heard
            if b"[y/N]" in screen and not answered:
                answered = bool(os.write(ours, answer.encode()))
        assert process.wait(STUCK_S) == 0, screen.decode(errors="replace")
    finally:
        process.kill()
        process.wait(STUCK_S)
        os.close(ours)
    return screen.decode(errors="replace")
