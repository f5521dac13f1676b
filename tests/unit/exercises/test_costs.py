"""What tokens cost: the formulas against known values, the prices against the table that the program itself uses."""

from __future__ import annotations

import pytest

from gpucourse.aws.money import PriceBook
from gpucourse.aws.offerings import instance_type
from gpucourse.hardware import hardware
from tests.unit.exercises.scripts import beside_the_script

costs = beside_the_script("04-benchmarking", "costs")


def test_formulas_give_the_golden_values() -> None:
    assert costs.usd_per_million(0.526, 200) == pytest.approx(0.7306, abs=5e-5)
    assert costs.usd_per_million(0.526, 5000) == pytest.approx(0.0292, abs=5e-5)
    assert costs.break_even(0.8048, 0.526) == pytest.approx(1.53, abs=0.005)
    assert costs.break_even(0.9776, 0.526) == pytest.approx(1.86, abs=0.005)


def test_usd_per_million_counts_idle_hours() -> None:
    assert costs.usd_per_million(1.0, 100, 40) == pytest.approx(2.5 * costs.usd_per_million(1.0, 100))


def test_prices_are_those_of_the_program() -> None:
    listing, sources = costs.prices()
    book = PriceBook(region=sources["on_demand"]["region"])
    offered = [price for price in listing if price.gpus == 1]
    assert {price.instance for price in offered} == set(hardware().startable_types)
    for price in offered:
        on_demand, spot = book.instance(price.instance), book.instance(price.instance, "spot")
        assert (price.usd_per_hour, sources["on_demand"]["date"]) == (float(on_demand.usd_per_hour), on_demand.date)
        if price.spot:
            assert (price.spot[1], sources["spot"]["source"]) == (float(spot.usd_per_hour), spot.source)
        assert instance_type(price.instance).gpus == 1


def test_prices_of_a_gpu_that_comes_in_eights_are_an_eighth() -> None:
    listing, _ = costs.prices()
    shares = {price.gpu: price for price in listing if price.gpus > 1}
    assert {"A100 40 GB SXM", "A100 80 GB SXM"} <= shares.keys()
    assert shares["A100 40 GB SXM"].usd_per_hour == pytest.approx(21.957642 / 8)
    assert "H100 SXM" in {price.gpu for price in listing}
