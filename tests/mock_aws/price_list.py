"""The Price List: products and their terms, as strings of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tests.mock_aws import prices
from tests.mock_aws.call import Call
from tests.mock_aws.refusal_error import RefusalError

if TYPE_CHECKING:
    from tests.mock_aws.state import State

_SERVED = {"us-east-1", "eu-central-1", "ap-south-1"}


def get_products(_state: State, call: Call) -> Mapping[str, Any]:
    """Return the products that pass every filter, on one page."""
    if call.region not in _SERVED:  # elsewhere the name does not even resolve
        raise RefusalError("InvalidParameterException", f"the price list is not served in {call.region}")
    filters = [(item["Field"], item["Value"]) for item in call.params.get("Filters", [])]

    def fits(product: Mapping[str, Any]) -> bool:
        attributes = {**product["product"]["attributes"], "productFamily": product["product"]["productFamily"]}
        return all(attributes.get(name) == value for name, value in filters)

    return {"FormatVersion": "aws_v1", "PriceList": [json.dumps(product) for product in _list_products() if fits(product)]}


def _list_products() -> Iterator[dict[str, Any]]:
    for region, factor in prices.REGIONS.items():
        for instance_type in prices.ON_DEMAND:
            attributes = {
                "instanceType": instance_type,
                "regionCode": region,
                "operatingSystem": "Linux",
                "tenancy": "Shared",
                "preInstalledSw": "NA",
                "capacitystatus": "Used",
                "marketoption": "OnDemand",
                "licenseModel": "No License required",
                "operation": "RunInstances",
            }
            yield _product("Compute Instance", attributes, "Hrs", prices.on_demand(instance_type, region) or 0)
        volume = {"regionCode": region, "volumeApiName": "gp3", "volumeType": "General Purpose"}
        yield _product("Storage", volume, "GB-Mo", prices.GP3_GB_MONTH * factor)


def _product(family: str, attributes: Mapping[str, str], unit: str, price: float) -> dict[str, Any]:
    rate = {"unit": unit, "pricePerUnit": {"USD": f"{price:.10f}"}, "beginRange": "0", "endRange": "Inf"}
    return {
        "product": {"sku": "SKU", "productFamily": family, "attributes": dict(attributes)},
        "serviceCode": "AmazonEC2",
        "terms": {"OnDemand": {"SKU.TERM": {"priceDimensions": {"SKU.TERM.RATE": rate}}}},
    }
