"""Single looks of the preflight, at accounts and wishes that are not the usual ones."""

from __future__ import annotations

from dataclasses import replace

from gpucourse.aws.preflight import preflight
from tests.unit.aws.cloud import error, make_refusal
from tests.unit.aws.test_preflight import LABS, a_good_account, make_environment, run_preflight


def test_the_command_that_asks_for_quota_is_the_one_for_these_labs() -> None:
    account = a_good_account(get_service_quota={"Quota": {"Value": 0.0}})
    ask = "gpucourse doctor --target aws --request-quota --module 3 --region us-west-2"
    findings = run_preflight(account, request=ask)
    assert findings["quota L-DB2E81BA (on-demand)"].mend.startswith(f"{ask} (people")
    assert findings["quota L-3819A6DF (spot)"].mend.startswith(f"{ask} --spot (people")


def test_a_region_that_does_not_exist_is_asked_of_one_that_does() -> None:
    account = a_good_account()
    account.region = "ap-southeast-9"
    finding = run_preflight(account)["region"]
    assert (finding.state, finding.detail) == ("missing", "AWS has no region ap-southeast-9")


def test_shared_storage_asks_for_its_own_role() -> None:
    labs = [replace(LABS[0], storage_gib=5)]
    account = a_good_account()
    there = {finding.what: finding for finding in preflight(account, labs, make_environment())}
    assert there["storage role"].state == "ok"
    assert "storage role" not in run_preflight(a_good_account())
    fresh = a_good_account(get_role=error("NoSuchEntity"))
    absent = {finding.what: finding for finding in preflight(fresh, labs, make_environment())}["storage role"]
    assert absent.state == "warning"
    assert "AWSServiceRoleForAmazonElasticFileSystem" in absent.detail
    assert absent.mend.endswith("aws iam create-service-linked-role --aws-service-name elasticfilesystem.amazonaws.com")


def test_where_a_quota_is_too_small_the_role_for_asking_is_looked_for() -> None:
    small = {"get_service_quota": {"Quota": {"Value": 0.0}}}
    assert run_preflight(a_good_account(**small))["quota role"].state == "ok"
    absent = run_preflight(a_good_account(**small, get_role=error("NoSuchEntity")))["quota role"]
    assert (absent.state, "AWSServiceRoleForServiceQuotas" in absent.detail) == ("warning", True)
    assert absent.mend.endswith("aws iam create-service-linked-role --aws-service-name servicequotas.amazonaws.com")
    unseen = run_preflight(a_good_account(**small, get_role=make_refusal("iam:GetRole")))
    assert unseen["quota role"].state == "unknown"
    assert unseen["quota L-DB2E81BA (on-demand)"].state == "missing"
