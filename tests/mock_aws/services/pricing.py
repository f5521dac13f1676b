"""The Price List: products and their terms, as strings of JSON; with the rows that a careless reader trips over."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tests.mock_aws import prices
from tests.mock_aws.call import Call
from tests.mock_aws.refusal_error import RefusalError

if TYPE_CHECKING:
    from tests.mock_aws.state import State

_SERVED = {"us-east-1", "eu-central-1", "ap-south-1"}
_MOST = 100

# Each variant of a type is a row of its own; only the first is what a Linux machine on demand costs.
_VARIANTS: tuple[tuple[float, Mapping[str, str]], ...] = (
    (1.0, {}),
    (1.9, {"operatingSystem": "Windows", "operation": "RunInstances:0002"}),
    (1.06, {"operatingSystem": "RHEL", "operation": "RunInstances:0010"}),
    (1.1, {"tenancy": "Dedicated"}),
    (0.0, {"capacitystatus": "UnusedCapacityReservation"}),
    (0.0, {"marketoption": "CapacityBlock"}),
    (2.4, {"preInstalledSw": "SQL Std", "operation": "RunInstances:0004"}),
)


def _products(call: Call) -> Iterator[dict[str, Any]]:
    service = call.params.get("ServiceCode")
    if service == "AmazonEC2":
        yield from itertools.chain(_instances(), _volumes())


def _instances() -> Iterator[dict[str, Any]]:
    for region, (place, _factor) in prices.REGIONS.items():
        for instance_type in prices.ON_DEMAND:
            for factor, other in _VARIANTS:
                attributes = {
                    "servicecode": "AmazonEC2",
                    "instanceType": instance_type,
                    "regionCode": region,
                    "location": place,
                    "locationType": "AWS Region",
                    "operatingSystem": "Linux",
                    "tenancy": "Shared",
                    "preInstalledSw": "NA",
                    "capacitystatus": "Used",
                    "marketoption": "OnDemand",
                    "licenseModel": "No License required",
                    "operation": "RunInstances",
                    **other,
                }
                price = (prices.on_demand(instance_type, region) or 0) * factor
                yield _product("AmazonEC2", "Compute Instance", attributes, "Hrs", price)


def _volumes() -> Iterator[dict[str, Any]]:
    for region, (place, factor) in prices.REGIONS.items():
        attributes = {"regionCode": region, "location": place, "volumeApiName": "gp3", "volumeType": "General Purpose"}
        yield _product("AmazonEC2", "Storage", attributes, "GB-Mo", prices.GP3_GB_MONTH * factor)


def _product(service: str, family: str, attributes: Mapping[str, str], unit: str, price: float) -> dict[str, Any]:
    sku = hashlib.sha256(json.dumps([service, family, dict(attributes)]).encode()).hexdigest()[:16].upper()
    rate = {
        "unit": unit,
        "pricePerUnit": {"USD": f"{price:.10f}"},
        "description": f"${price:.6f} per {unit}",
        "beginRange": "0",
        "endRange": "Inf",
        "rateCode": f"{sku}.JRTCKXETXF.6YS6EN2CT7",
        "appliesTo": [],
    }
    term = {"sku": sku, "effectiveDate": "2026-11-01T00:00:00Z", "offerTermCode": "JRTCKXETXF", "termAttributes": {}}
    on_demand = {f"{sku}.JRTCKXETXF": {**term, "priceDimensions": {rate["rateCode"]: rate}}}
    reserved = {
        f"{sku}.4NA7Y494T4": {**term, "priceDimensions": {"x": {**rate, "pricePerUnit": {"USD": f"{price * 0.6:.10f}"}}}}
    }
    return {
        "product": {"sku": sku, "productFamily": family, "attributes": dict(attributes)},
        "serviceCode": service,
        "terms": {"OnDemand": on_demand, "Reserved": reserved},
        "version": "20261101000000",
        "publicationDate": "2026-11-01T00:00:00Z",
    }


def _get_products(_state: State, call: Call) -> Mapping[str, Any]:
    if call.region not in _SERVED:  # elsewhere the name does not even resolve
        raise RefusalError("InvalidParameterException", f"the price list is not served in {call.region}")
    wanted = [(item["Field"], item["Value"]) for item in call.params.get("Filters", [])]

    def fits(product: Mapping[str, Any]) -> bool:
        attributes = {**product["product"]["attributes"], "productFamily": product["product"]["productFamily"]}
        return all(attributes.get(name) == value for name, value in wanted)

    item = [json.dumps(product) for product in _products(call) if fits(product)]
    start = int(call.params.get("NextToken") or 0)
    page = min(int(call.params.get("MaxResults") or _MOST), _MOST)
    more = {"NextToken": str(start + page)} if start + page < len(item) else {}
    return {"FormatVersion": "aws_v1", "PriceList": item[start : start + page], **more}


ACTIONS: dict[str, Callable[[State, Call], Mapping[str, Any]]] = {"pricing:GetProducts": _get_products}
