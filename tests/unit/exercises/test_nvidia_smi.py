"""What nvidia-smi answers, read."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.exercises.scripts import beside_the_script

smi = beside_the_script("shared", "nvidia_smi")
CAPTURED = Path(__file__).parents[2] / "data" / "nvidia-smi"
MIB = 1 << 20


def read_captured(name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = smi.read((CAPTURED / f"{name}.csv").read_text(encoding="utf-8"))
    return rows


def test_read_captured_output_of_an_h100() -> None:
    (row,) = read_captured("h100")
    assert row["name"] == "NVIDIA H100 80GB HBM3"
    assert row["driver_version"] == "595.71.05", "three numbers with dots are a word"
    assert (row["temperature.gpu"], row["utilization.gpu"], row["pcie.link.gen.current"]) == (29, 0, 5)
    assert (row["memory.total"], row["memory.used"]) == (81559 * MIB, 0)


def test_read_units_of_the_heading_old_names_and_unknown_values() -> None:
    known_row, unknown = read_captured("t4-unknown")
    assert (known_row["memory.used"], known_row["power.draw"], known_row["power.limit"]) == (14321 * MIB, 69.84, 70.0)
    assert smi.limiters(known_row[smi.REASONS]) == "power limit"
    assert [unknown[key] for key in ("utilization.gpu", "temperature.gpu", "power.draw", "power.limit", smi.REASONS)] == 5 * [
        None
    ]
    assert unknown["clocks.current.sm"] is None
    assert unknown["memory.used"] == 0, "0 is known"


def test_query_asks_an_old_driver_by_the_old_name(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[str] = []

    def answer(words: list[str], **_: object) -> SimpleNamespace:
        requests.append(words[1])
        old = "throttle" in words[1]
        return SimpleNamespace(
            returncode=0 if old else 2, stdout="index, clocks_throttle_reasons.active\n0, 0x4\n" if old else ""
        )

    monkeypatch.setattr(smi.shutil, "which", lambda _: "nvidia-smi")
    monkeypatch.setattr(subprocess, "run", answer)
    assert smi.query() == [{"index": 0, "clocks_event_reasons.active": 4}]
    assert len(requests) == 2


def test_query_is_none_if_the_driver_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(words: list[str], **_: object) -> SimpleNamespace:
        raise subprocess.TimeoutExpired(words, 10)

    monkeypatch.setattr(smi.shutil, "which", lambda _: "nvidia-smi")
    monkeypatch.setattr(subprocess, "run", hang)
    assert smi.query() is None
