"""Every benchmark is started once, with as little data as it takes: a rename in the program cannot break one unseen."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import pytest

from benchmarks import growth, library_ceiling, screen
from benchmarks.__main__ import NAMES
from tests import trips
from tests.system import slurm

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(600)]

SMALL: Mapping[str, Mapping[str, Any]] = {
    "startup": {"ROUNDS": 1},
    "deploying": {"ROUNDS": 1, "PROMISES": {2: 1.5}},
    "running": {"ROUNDS": 1},
    "slurm": {"ROUNDS": 1},
    "cluster": {"NODES": "3"},
    "failing": {"ROUNDS": 1},
    "transfer": {"ROUNDS": 1},
    "fanout": {"ROUNDS": 1, "NODES": 2},
    "streaming": {},
    "cloud": {"ROUNDS": 1, "MODULES": ("1",)},
    "course": {"MODULES": ("0",)},
    "page": {"ROUNDS": 1, "RUNS": 2, "LOG_BYTES": 1_000_000},
}
GROWTH: Mapping[str, Mapping[str, Any]] = {
    "growth": {"ROUNDS": 1, "RUNS": (1, 2), "OUTPUTS": (0, 1), "RUNS_WITH_OUTPUTS": 1},
    "growth_files": {"ROUNDS": 1, "COUNTS": (1, 2), "MEGABYTES": (1, 2), "RUNS": (1, 2)},
    "growth_logs": {"ROUNDS": 1, "MEGABYTES": (1, 2), "HARD": 1000, "LINES": 100, "A_GIGABYTE": 1_000_000},
    "growth_nodes": {"ROUNDS": 1, "NODES": (1, 2)},
}
OF_SLURM = {"slurm", "cluster"}


def shrink(monkeypatch: pytest.MonkeyPatch, name: str, constants: Mapping[str, Any]) -> Any:
    module = importlib.import_module(f"benchmarks.{name}")
    for constant, value in constants.items():
        monkeypatch.setattr(module, constant, value)
    return module


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_measures_every_row(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name in OF_SLURM:
        slurm.need_slurm()
    rows = list(shrink(monkeypatch, name, SMALL[name]).measure())
    assert rows
    assert [(row.what, row.failure) for row in rows if row.failure] == []


@pytest.mark.parametrize("kind", [kind for kind in growth.KINDS if kind != "trips"])
def test_a_kind_of_growth_is_measured(kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name, constants in GROWTH.items():
        shrink(monkeypatch, name, constants)
    assert growth.main([kind]) in {0, 1}, "1: a promise is not kept"
    assert len(capsys.readouterr().out.splitlines()) > 2


def test_round_trips_are_rows_of_growth(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """tests/system/test_trips.py counts them."""
    for name in ("count_on_simulated_nodes", "count_on_hosts"):
        count = lambda _folder, rtt_s: [trips.Counted("run", 11, 1, 1 + 11 * rtt_s)]  # noqa: E731
        count.__name__ = name
        monkeypatch.setattr(trips, name, count)
    assert growth.main(["trips"]) == 0
    assert capsys.readouterr().out.count("11 round trips, by time 11.0, 1 connections per node  promise 16: held") == 2


def test_the_screen_is_measured(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(screen, "SECONDS", 0.1)
    assert screen.main() in {0, 1}
    assert "pipe, flat out, escapes" in capsys.readouterr().out


def test_the_ceiling_of_a_library_is_searched() -> None:
    assert library_ceiling.search([8])["shape"] == (8, 8, 8)
