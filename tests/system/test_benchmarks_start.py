"""Every benchmark measures its rows, with as little data as possible.

mypy finds names of the program that have changed. These tests run the programs that benchmarks contain as text.
"""

from __future__ import annotations

import importlib
import random
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks import logs
from benchmarks.__main__ import NAMES

pytestmark = [pytest.mark.system, pytest.mark.slow]

SMALL: Mapping[str, Mapping[str, Any]] = {
    "startup": {"ROUNDS": 1},
    "running": {"ROUNDS": 1, "RUN": ("run", "--nodes", "2", "--launcher", "torchrun", "--script", "hello.py")},
    "trips": {"RTT_S": 0.0},
    "transfer": {
        "ROUNDS": 1, "KINDS": ("simulated",), "PUSHED": {"1 KB": [1000]}, "COLLECTED": {"10 outputs": ([1000] * 10, 1.5)},
    },
    "logs": {"ROUNDS": 1, "SIZE": 10_000, "KINDS": logs.KINDS[-1:]},
    "nodes": {"ROUNDS": 1, "NODES": 2},
    "streaming": {"SECONDS": 1, "LINES_PER_S": 1000},
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_measures_every_row(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hello.py").write_text("print('hello')\n")  # without torch, which 3.2 would import on each node
    module = importlib.import_module(f"benchmarks.{name}")
    for constant, value in SMALL[name].items():
        monkeypatch.setattr(module, constant, value)
    try:
        rows = list(module.measure())
    except subprocess.CalledProcessError as error:
        pytest.fail(f"{error}\n{error.stdout}\n{error.stderr}")
    assert rows
    assert [(row.what, row.failure) for row in rows if row.failure] == []


@pytest.mark.parametrize("kind", logs.KINDS)
def test_a_benchmark_has_logs_of_every_kind(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "SIZE", 10_000)
    assert sum(map(len, logs._make_log(kind, random.Random(0)))) > 9000


def test_the_ceiling_of_a_library_is_searched() -> None:
    library_ceiling = importlib.import_module("benchmarks.library_ceiling")  # above, torch would cost every worker seconds
    assert library_ceiling.search([8])["shape"] == (8, 8, 8)
