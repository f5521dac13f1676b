from __future__ import annotations

import json

import pytest

from gpucourse.hardware import hardware, parse_hardware


def test_hardware_offers_gpus_from_the_cheapest_on() -> None:
    prices = [rented.usd_per_hour for rented in hardware().choosable_gpus]
    assert prices == sorted(prices)
    assert hardware().choices[0] == "t4"
    assert "g4dn.xlarge" in hardware().startable_types


@pytest.mark.parametrize(
    ("name", "quota"),
    [("g4dn.xlarge", "L-DB2E81BA"), ("p5.48xlarge", "L-417A185B"), ("m9.large", "L-1216C47A"), ("trn1.2xlarge", None)],
)
def test_quota_of_a_type_follows_the_longest_beginning_of_its_family(name: str, quota: str | None) -> None:
    family = hardware().quota_of(name)
    assert (family and family.by_market["on-demand"][0]) == quota


def test_row_of_an_unknown_type_is_empty() -> None:
    assert hardware().row("g4dn.xlarge")
    assert hardware().row("x1.large") == {}


def test_parse_hardware_takes_rented_gpus_with_and_without_a_sheet() -> None:
    types = {"x1.large": {"usd_per_hour": "0.5"}, "x1.small": {"usd_per_hour": "0.2"}}
    rented = {"gpu": "L4", "quota": "g", "vram_mib": 1, "types": types, "family": "x1", "offered": ["small", "large"]}
    text = {
        "gpus": [{"name": "L4", "aws": rented}, {"name": "at home"}],
        "without_sheet": [{"gpu": "K80", "quota": "g", "vram_mib": 1, "types": {}, "retired": "AWS has none"}],
        "quotas": {"g": {"families": ["x"], "on-demand": ["L-1", "one"], "spot": ["L-2", "two"]}},
        "prices": {},
    }
    table = parse_hardware(json.dumps(text))
    assert [gpu.gpu for gpu in table.rented] == ["L4", "K80"]
    assert (table.choices, table.startable_types) == (("l4",), ("x1.small", "x1.large"))
    assert table.quotas["g"].by_market["spot"] == ("L-2", "two")
