"""Single looks of the preflight, at accounts and wishes that are not the usual ones."""

from __future__ import annotations

from tests.unit.aws.test_preflight import a_good_account, looked


def test_the_command_that_asks_for_quota_is_the_one_for_these_labs() -> None:
    account = a_good_account(get_service_quota={"Quota": {"Value": 0.0}})
    ask = "gpucourse doctor --target aws --request-quota --module 3 --region us-west-2"
    found = looked(account, request=ask)
    assert found["quota L-DB2E81BA (on-demand)"].mend.startswith(f"{ask} (people")
    assert found["quota L-3819A6DF (spot)"].mend.startswith(f"{ask} --spot (people")


def test_a_region_that_does_not_exist_is_asked_of_one_that_does() -> None:
    account = a_good_account()
    account.region = "ap-southeast-9"
    found = looked(account)["region"]
    assert (found.state, found.detail) == ("missing", "AWS has no region ap-southeast-9")
