"""What the labs need of an account: the quota, asked for and offered as a command that can be typed."""

from __future__ import annotations

from dataclasses import replace

from gpucourse.aws import look_lab
from gpucourse.aws.failure_table import QUOTA
from gpucourse.model.cloud import LabNeed, Machines, Market
from tests.unit.aws.test_preflight import a_good_account, run_preflight


def test_quotas_that_are_too_small_come_with_the_command_and_with_targets_that_cost_nothing() -> None:
    account = a_good_account(get_service_quota={"Quota": {"Value": 0.0}})
    ask = "gpucourse doctor --target aws --request-quota --module 3 --region us-west-2"
    findings = run_preflight(account, request=ask)
    mends = [findings["quota L-DB2E81BA (on-demand)"].mend, findings["quota L-3819A6DF (spot)"].mend]
    assert mends[0].startswith(f"{ask} (people")
    assert mends[1].startswith(f"{ask} --spot (people")
    for mend in [*mends, QUOTA]:
        assert "--target here" in mend
        assert "--target hosts" in mend


def test_quotas_offers_smaller_nodes_that_fit_with_the_command() -> None:
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
