from __future__ import annotations

from typing import Any

import pytest

from gpucourse.aws import quota
from gpucourse.model.cloud import LabNeed, Machines, Quota
from tests.unit.aws.cloud import ScriptedAccount, error, make_refusal

G, G_SPOT, STANDARD, P5_SPOT = "L-DB2E81BA", "L-3819A6DF", "L-1216C47A", "L-C4BD4855"
LABS = [
    LabNeed(module="1", title="", machines=(Machines(instance_type="g4dn.xlarge"),)),
    LabNeed(
        module="2",
        title="",
        machines=(Machines(instance_type="t3.medium", spot=False), Machines(instance_type="g4dn.xlarge", count=3)),
    ),
    LabNeed(module="3", title="", machines=(Machines(instance_type="g4dn.2xlarge", count=2),)),
]


def limit(value: float) -> dict[str, Any]:
    return {"Quota": {"Value": value}}


def limits(**values: Any) -> Any:
    def answer(parameters: dict[str, Any]) -> Any:
        value = values[parameters["QuotaCode"].replace("-", "_")]
        return value if isinstance(value, Exception) else limit(value)

    return answer


def describe(*instances: tuple[str, int, bool]) -> dict[str, Any]:
    described = [
        {"InstanceType": name, "CpuOptions": {"CoreCount": vcpus // 2, "ThreadsPerCore": 2}}
        | ({"InstanceLifecycle": "spot"} if spot else {})
        for name, vcpus, spot in instances
    ]
    return {"Reservations": [{"Instances": described}]}


def account(quota_limit: Any, instances: Any = None) -> ScriptedAccount:
    return ScriptedAccount(
        {
            ("service-quotas", "get_service_quota"): quota_limit,
            ("ec2", "describe_instances"): instances if instances is not None else describe(),
        }
    )


def assess(account: ScriptedAccount, labs: list[LabNeed]) -> list[Quota]:
    return quota.Quotas(account).assess(labs)


def by_code(quotas: list[Quota]) -> dict[str, Quota]:
    return {item.code: item for item in quotas}


def test_needs_are_the_largest_lab_of_each_quota_not_the_sum() -> None:
    assert quota.needs(LABS, "on-demand") == {
        (G, "on-demand"): {"1": 4, "2": 12, "3": 16},
        (STANDARD, "on-demand"): {"2": 2},
    }
    assert set(quota.needs(LABS, "spot")) == {(G_SPOT, "spot"), (STANDARD, "on-demand")}, "a head stays on demand"
    running = describe(("g5.xlarge", 4, False), ("g6.xlarge", 4, True), ("m5.large", 2, False), ("inf2.xlarge", 4, False))
    quotas = by_code(assess(account(limits(L_DB2E81BA=16.0, L_1216C47A=5.0), running), LABS))
    assert (quotas[G].needed, quotas[G].limit, quotas[G].used, quotas[G].enough) == (16, 16, 4, False)
    assert quotas[G].modules == ("1", "2", "3")
    assert (quotas[STANDARD].used, quotas[STANDARD].enough) == (2, True)


@pytest.mark.parametrize(
    ("name", "spot", "code"),
    [
        ("g4dn.xlarge", False, G),
        ("g6e.xlarge", True, G_SPOT),
        ("p5.4xlarge", False, "L-417A185B"),
        ("p5en.48xlarge", True, P5_SPOT),
        ("t3.medium", False, STANDARD),
        ("trn1.2xlarge", False, None),
    ],
)
def test_count_used_vcpus_counts_a_type_against_the_quota_of_its_family(name: str, spot: bool, code: str | None) -> None:
    usage = quota.count_used_vcpus(account({}, describe((name, 8, spot))))
    assert usage == ({code: 8} if code else {})


def test_limit_is_the_default_of_aws_when_none_was_set() -> None:
    scripted = account(error("NoSuchResourceException"))
    scripted.answers["service-quotas", "get_aws_default_service_quota"] = limit(0.0)
    quotas = by_code(assess(scripted, LABS))
    assert (quotas[G].limit, quotas[G].enough) == (0, False)


def test_assess_is_unknown_when_limit_or_use_is_refused_unless_the_limit_is_too_low() -> None:
    quotas = by_code(assess(account(make_refusal("servicequotas:GetServiceQuota")), LABS))
    assert (quotas[G].limit, quotas[G].enough) == (None, None)
    assert "servicequotas:GetServiceQuota" in quotas[G].reason
    for value, enough in ((64.0, None), (8.0, False)):
        limited = account(limits(L_DB2E81BA=value, L_1216C47A=64.0), make_refusal("ec2:DescribeInstances"))
        assert by_code(assess(limited, LABS))[G].enough is enough


def make_quota(need: int, limit: int, usage: int | None) -> Quota:
    return Quota(code=G, name="", market="on-demand", region="us-east-2", needed=need, limit=limit, used=usage)


def request(status: str, number: float = 16.0) -> dict[str, Any]:
    return {"Id": "r-1", "CaseId": "c-1", "QuotaCode": G, "DesiredValue": number, "Status": status}


def test_request_increase_asks_for_what_is_needed_on_top_of_what_runs() -> None:
    scripted = ScriptedAccount(
        {("service-quotas", "request_service_quota_increase"): {"RequestedQuota": request("PENDING", 20.0)}}
    )
    increase = quota.request_increase(scripted, make_quota(16, 16, 4))
    assert (increase.wanted, increase.status, increase.case, increase.opened_before) == (20, "PENDING", "c-1", False)
    assert scripted.list_calls("request_service_quota_increase") == [
        {"ServiceCode": "ec2", "QuotaCode": G, "DesiredValue": 20.0}
    ]


def test_open_request_is_returned_by_request_increase() -> None:
    history = {"RequestedQuotas": [request("CASE_CLOSED"), request("CASE_OPENED")]}
    scripted = ScriptedAccount(
        {
            ("service-quotas", "request_service_quota_increase"): error("ResourceAlreadyExistsException"),
            ("service-quotas", "list_requested_service_quota_change_history_by_quota"): history,
        }
    )
    increase = quota.request_increase(scripted, make_quota(16, 0, 0))
    assert (increase.status, increase.opened_before) == ("CASE_OPENED", True)
    scripted.answers["service-quotas", "list_requested_service_quota_change_history_by_quota"] = {"RequestedQuotas": []}
    assert quota.open_request(scripted, G) is None
