from __future__ import annotations

import pytest

from gpucourse.hardware import hardware


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
