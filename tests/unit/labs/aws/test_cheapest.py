"""`--gpu any` chooses the GPU and the market that cost least today among those that can be started."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from gpucourse.context import Context
from gpucourse.errors import MissingError, UsageError
from gpucourse.labs.aws.cheapest import replace_any_gpu
from gpucourse.labs.request import DeployRequest
from gpucourse.workspace.deployments import save
from tests.unit.aws.cloud import ScriptedAccount
from tests.unit.labs.aws.fakes import deployment_of

G_ON_DEMAND, G_SPOT = "L-DB2E81BA", "L-3819A6DF"
LISTED = {"g4dn.xlarge": "0.526", "g6.xlarge": "0.8048"}
SPOT = {"g4dn.xlarge": ("0.25", "0.31"), "g6.xlarge": ("0.21", "0.23")}


def an_account(quotas: dict[str, float], offered: tuple[str, ...] = tuple(LISTED)) -> ScriptedAccount:
    """Return an account with the prices of LISTED and SPOT, the latter in two zones. Quotas that are not named are 0 vCPUs."""

    def list_price(parameters: dict[str, Any]) -> dict[str, Any]:
        [name] = [item["Value"] for item in parameters["Filters"] if item["Field"] == "instanceType"]
        term = {"priceDimensions": {"d": {"unit": "Hrs", "pricePerUnit": {"USD": LISTED.get(name, "99")}}}}
        return {"PriceList": [json.dumps({"terms": {"OnDemand": {"t": term}}})]}

    spot = [
        {
            "InstanceType": name,
            "AvailabilityZone": f"us-east-2{zone}",
            "SpotPrice": usd,
            "Timestamp": datetime(2026, 11, 20, tzinfo=UTC),
        }
        for name, prices in SPOT.items()
        for zone, usd in zip("ab", prices, strict=True)
    ]
    zones = [{"ZoneName": "us-east-2a", "ZoneId": "use2-az1", "ZoneType": "availability-zone"}]
    return ScriptedAccount(
        {
            ("pricing", "get_products"): list_price,
            ("ec2", "describe_spot_price_history"): {"SpotPriceHistory": spot},
            ("ec2", "describe_availability_zones"): {"AvailabilityZones": zones},
            ("ec2", "describe_instance_type_offerings"): {
                "InstanceTypeOfferings": [{"InstanceType": name, "Location": "us-east-2a"} for name in offered]
            },
            ("ec2", "describe_instances"): {"Reservations": []},
            ("service-quotas", "get_service_quota"): lambda asked: {"Quota": {"Value": quotas.get(asked["QuotaCode"], 0.0)}},
        }
    )


@pytest.mark.parametrize(
    ("spot", "quotas", "choice"),
    [
        (None, {G_ON_DEMAND: 8, G_SPOT: 8}, ("l4", True)),
        (False, {G_ON_DEMAND: 8, G_SPOT: 8}, ("t4", False)),
        (True, {G_ON_DEMAND: 8, G_SPOT: 8}, ("l4", True)),
        (None, {G_ON_DEMAND: 8}, ("t4", False)),
    ],
)
def test_replace_any_gpu_takes_the_cheapest_within_the_quota(
    spot: bool | None, quotas: dict[str, float], choice: tuple[str, bool], context: Context
) -> None:
    request, _notes = replace_any_gpu(context, DeployRequest(module="1", gpu=("any",), spot=spot), an_account(quotas))
    assert (request.gpu, request.spot) == ((choice[0],), choice[1])
    assert f"--gpu {choice[0]} " in request.command


def test_replace_any_gpu_says_what_the_cheapest_beats(context: Context) -> None:
    account = an_account({G_ON_DEMAND: 8, G_SPOT: 8})
    _request, [note] = replace_any_gpu(context, DeployRequest(module="1", gpu=("ANY",)), account)
    assert note == (
        "--gpu any: the cheapest node today is L4 (g6.xlarge) on spot $0.230 an hour; then T4 (g4dn.xlarge) on spot $0.310, "
        "T4 (g4dn.xlarge) on demand $0.526, L4 (g6.xlarge) on demand $0.805"
    )


def test_replace_any_gpu_takes_only_what_can_be_started(context: Context) -> None:
    account = an_account({G_ON_DEMAND: 8, G_SPOT: 8}, offered=("g4dn.xlarge",))
    request, _notes = replace_any_gpu(context, DeployRequest(module="1", gpu=("any",)), account)
    assert request.gpu == ("t4",)
    with pytest.raises(MissingError, match="no GPU of the course can be started for module 1 in us-east-2") as caught:
        replace_any_gpu(context, DeployRequest(module="1", gpu=("any",)), an_account({}))
    assert "--target here" in caught.value.hint


def test_replace_any_gpu_leaves_named_gpus_and_refuses_both(context: Context) -> None:
    for gpus in ((), ("t4",), ("t4", "l4")):
        request = DeployRequest(module="1", gpu=gpus)
        assert replace_any_gpu(context, request, ScriptedAccount({})) == (request, [])
    with pytest.raises(UsageError, match="cannot be combined"):
        replace_any_gpu(context, DeployRequest(module="1", gpu=("any", "t4")), ScriptedAccount({}))


def test_replace_any_gpu_keeps_the_gpu_of_a_lab_that_exists(context: Context) -> None:
    save(context.paths, deployment_of("1", gpu="l4"))
    request, [note] = replace_any_gpu(context, DeployRequest(module="1", gpu=("any",)), ScriptedAccount({}))
    assert request.gpu == ("l4",)
    assert "keeps its GPU, L4" in note
