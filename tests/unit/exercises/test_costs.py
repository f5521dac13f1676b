"""What tokens cost: the formulas against known values, the prices against the table that the program itself uses."""

from __future__ import annotations

import json

import pytest

from gpucourse.aws.tables import table
from gpucourse.course.locate import find_course
from tests.unit.exercises.scripts import beside_the_script

costs = beside_the_script("04-benchmarking", "costs")
completions = beside_the_script("shared", "completions")


def test_golden_values() -> None:
    assert costs.usd_per_million(0.526, 200) == pytest.approx(0.7306, abs=5e-5)
    assert costs.usd_per_million(0.526, 5000) == pytest.approx(0.0292, abs=5e-5)
    assert costs.break_even(0.8048, 0.526) == pytest.approx(1.53, abs=0.005)
    assert costs.break_even(0.9776, 0.526) == pytest.approx(1.86, abs=0.005)
    assert completions.tpot(2.05, 0.05, 101) == pytest.approx(0.020)


def test_idle_hours_are_paid() -> None:
    assert costs.usd_per_million(1.0, 100, 40) == pytest.approx(2.5 * costs.usd_per_million(1.0, 100))


def test_energy() -> None:
    assert costs.kwh_per_million(70, 1000) == pytest.approx(70 * 1000 / 3.6e6)


def test_one_token_has_no_time_per_token() -> None:
    assert completions.tpot(1.0, 0.5, 1) is None


def test_prices_are_those_of_the_program() -> None:
    ours, program = costs.prices(), table("prices")
    listed, sources = ours
    assert sources["on_demand"] == {key: program["on_demand"][key] for key in ("source", "date", "region")}
    zones = program["spot"]["regions"][sources["spot"]["region"]]
    assert (sources["spot"]["source"], sources["spot"]["date"]) == (program["spot"]["source"], program["spot"]["date"])
    for price in listed:
        assert price.usd_per_hour == float(program["on_demand"]["usd_per_hour"][price.instance]), price.instance
        assert price.spot == (tuple(map(float, zones[price.instance])) if price.instance in zones else None)
        known = table("instance_types")["types"][price.instance]
        assert (known["gpu"], known["gpus"]) == (price.gpu, 1)


def test_every_price_is_of_a_gpu_in_the_table() -> None:
    data = json.loads((find_course({}).exercises / "04-benchmarking" / "prices.json").read_text(encoding="utf-8"))
    gpus = beside_the_script("shared", "gpus")
    assert {row["gpu"] for row in data["instances"]} <= {gpu.gpu for gpu in gpus.table()}
