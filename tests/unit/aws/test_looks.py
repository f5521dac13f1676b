"""Single looks of the preflight, at accounts and wishes that are not the usual ones."""

from __future__ import annotations

from dataclasses import replace

from gpucourse.aws import look_lab
from gpucourse.aws.failure_table import QUOTA
from gpucourse.aws.preflight import preflight
from gpucourse.model.cloud import LabNeed, Machines, Market
from tests.unit.aws.cloud import error, make_refusal
from tests.unit.aws.test_preflight import LABS, a_good_account, make_environment, run_preflight


def test_the_command_that_asks_for_quota_is_the_one_for_these_labs() -> None:
    account = a_good_account(get_service_quota={"Quota": {"Value": 0.0}})
    ask = "gpucourse doctor --target aws --request-quota --module 3 --region us-west-2"
    findings = run_preflight(account, request=ask)
    assert findings["quota L-DB2E81BA (on-demand)"].mend.startswith(f"{ask} (people")
    assert findings["quota L-3819A6DF (spot)"].mend.startswith(f"{ask} --spot (people")


def test_a_quota_that_is_too_small_names_the_targets_that_cost_nothing() -> None:
    account = a_good_account(get_service_quota={"Quota": {"Value": 0.0}})
    findings = run_preflight(account)
    mends = [item.mend for item in findings.values() if item.what.startswith("quota L-") and item.state != "ok"]
    assert len(mends) >= 2, "on demand and on spot"
    for mend in [*mends, QUOTA]:
        assert "--target here" in mend
        assert "--target hosts" in mend


def test_smaller_nodes_that_the_quota_holds_are_offered_with_the_command() -> None:
    machines = (Machines(instance_type="g4dn.2xlarge", count=2),)
    usual = LabNeed(module="3", title="", machines=machines, smaller="g4dn.xlarge")

    def mend(vcpus: float, lab: LabNeed = usual, market: Market = "on-demand") -> str:
        account = a_good_account(get_service_quota={"Quota": {"Value": vcpus}})
        [finding] = look_lab.quotas(account, [lab], market, "ask for more")
        return finding.mend

    command = "gpucourse deploy 3 --target aws --nodes 2 --gpu t4 --size xlarge"
    assert mend(8.0).startswith(f"{command} fits: 2 x g4dn.xlarge, 8 vCPU; ask for more (people")
    assert mend(8.0, market="spot").startswith(f"{command} --spot fits")
    assert mend(16.0) == "", "the usual size fits"
    assert mend(7.0).startswith("ask for more (people"), "neither fits"
    assert mend(8.0, replace(usual, smaller="")).startswith("ask for more (people"), "there is no smaller size"


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
