"""Every benchmark starts: what is quick is measured with as little data as it takes, the others get to their first command.

mypy finds a name of the program that has changed; programs that benchmarks have as text are run here.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks import growth, growth_files, library_ceiling, screen
from benchmarks.__main__ import NAMES
from benchmarks.lab import Lab
from tests import trips
from tests.system.aws.learner import CloudLearner

pytestmark = [pytest.mark.system, pytest.mark.slow]


def write_sources(folder: Path) -> tuple[Path, Path]:
    """Write what `transfer` sends: two folders with a small file in the place of 200 MB and of 500 files."""
    sources = folder / "big", folder / "small"
    for source in sources:
        source.mkdir()
        (source / "0.bin").write_bytes(b"x")
    return sources


MEASURED: Mapping[str, Mapping[str, Any]] = {
    "startup": {"ROUNDS": 1},
    "deploying": {"ROUNDS": 1, "PROMISES": {2: 1.5}},
    "transfer": {"ROUNDS": 1, "KINDS": ("simulated",), "_sources": write_sources},
    "fanout": {"ROUNDS": 1, "NODES": 2},
}


FIRST_COMMAND = "the first command"


class Typed(Exception):
    """A benchmark typed a command."""


@pytest.fixture
def no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command of a benchmark ends with Typed."""

    def type_command(*_: object, **__: object) -> str:
        raise Typed(FIRST_COMMAND)

    for typed, name in ((Lab, "type"), (CloudLearner, "begins"), (CloudLearner, "types")):
        monkeypatch.setattr(typed, name, type_command)


@pytest.mark.parametrize("name", MEASURED)
def test_a_quick_benchmark_measures_every_row(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module(f"benchmarks.{name}")
    for constant, value in MEASURED[name].items():
        monkeypatch.setattr(module, constant, value)
    rows = list(module.measure())
    assert rows
    assert [(row.what, row.failure) for row in rows if row.failure] == []


@pytest.mark.usefixtures("no_command")
@pytest.mark.parametrize("name", [name for name in NAMES if name not in MEASURED])
def test_a_long_benchmark_gets_to_its_first_command(name: str) -> None:
    try:
        failures = {row.failure for row in importlib.import_module(f"benchmarks.{name}").measure()}
    except Typed:
        return
    assert failures == {FIRST_COMMAND}, "each row has its reason"


@pytest.mark.usefixtures("no_command")
def test_growth_gets_to_its_first_command() -> None:
    with pytest.raises(Typed):
        growth.main(["runs"])


def test_the_growth_of_files_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    small = {"ROUNDS": 1, "COUNTS": (1, 2), "MEGABYTES": (1, 2), "RUNS": (1, 2), "KINDS": ("simulated",)}
    for constant, value in small.items():
        monkeypatch.setattr(growth_files, constant, value)
    assert len(list(growth_files.grow_files())) == 5


def test_round_trips_are_rows_of_growth(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """tests/system/test_trips.py counts them."""
    for name in ("count_on_simulated_nodes", "count_on_hosts"):
        count = lambda _folder, rtt_s: [trips.Counted("run", 11, 1, 1 + 11 * rtt_s)]  # noqa: E731
        count.__name__ = name
        monkeypatch.setattr(trips, name, count)
    rows = [str(row) for row in growth.count_trips(Lab(tmp_path / "workspace"), tmp_path)]
    assert ["11 round trips, by time 11.0, 1 connections per node  promise 16: held" in row for row in rows] == [True, True]


def test_the_screen_is_measured(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(screen, "SECONDS", 0.1)
    assert screen.main() in {0, 1}
    assert "pipe, flat out, escapes" in capsys.readouterr().out


def test_the_ceiling_of_a_library_is_searched() -> None:
    assert library_ceiling.search([8])["shape"] == (8, 8, 8)
