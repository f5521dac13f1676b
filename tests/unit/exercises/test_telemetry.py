"""Watching a device: what NVML answers; and a recorder that keeps its phases and counts what it missed."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from gpucourse.course.locate import find_course
from tests.parts import need_module
from tests.unit.exercises.scripts import beside_the_script
from tests.waiting import STUCK_S


@pytest.fixture
def telemetry(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    need_module("torch")
    monkeypatch.syspath_prepend(str(find_course({}).exercises / "shared"))
    for name in ("bench", "nvidia_smi"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return beside_the_script("shared", "telemetry")


class FakeNvml(ModuleType):
    """A T4 at its power limit, whose driver knows neither its temperature nor the new name of the reasons."""

    NVML_TEMPERATURE_GPU, NVML_CLOCK_SM = 0, 1

    class NVMLError(Exception):
        pass

    def __init__(self) -> None:
        super().__init__("pynvml")
        self.nvmlInit = lambda: None
        self.nvmlDeviceGetHandleByIndex = lambda index: f"gpu{index}"
        self.nvmlDeviceGetName = lambda _: b"Tesla T4"
        self.nvmlDeviceGetUtilizationRates = lambda _: SimpleNamespace(gpu=100, memory=31)
        self.nvmlDeviceGetMemoryInfo = lambda _: SimpleNamespace(used=3 << 30, total=15 << 30)
        self.nvmlDeviceGetPowerUsage = lambda _: 69_840
        self.nvmlDeviceGetEnforcedPowerLimit = lambda _: 70_000
        self.nvmlDeviceGetClockInfo = lambda _, kind: 885
        self.nvmlDeviceGetCurrentClocksThrottleReasons = lambda _: 4

        self.nvmlDeviceGetTemperature = self.not_supported

    def not_supported(self, *_: object) -> float:
        raise self.NVMLError("not supported")


@pytest.mark.parametrize(
    ("files", "watts"),
    [
        ({"status": "Discharging", "power_now": "12500000"}, 12.5),
        ({"status": "Discharging", "current_now": "-1500000", "voltage_now": "12000000"}, 18.0),
        ({"status": "Charging", "power_now": "12500000"}, None),
        ({"status": "Discharging"}, None),
        ({"status": "Discharging", "power_now": "unknown"}, None),
        ({"online": "1"}, None),
    ],
)
def test_read_battery_returns_watts_only_of_a_battery_in_use(
    telemetry: ModuleType, tmp_path: Path, files: dict[str, str], watts: float | None
) -> None:
    (tmp_path / "BAT0").mkdir()
    for name, text in files.items():
        (tmp_path / "BAT0" / name).write_text(text + "\n")
    assert telemetry.read_battery(tmp_path) == watts
    assert telemetry.read_battery(tmp_path / "no folder") is None


def test_nvml_returns_what_it_knows_and_none_for_the_rest(telemetry: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml())
    sample = telemetry.nvml()()
    assert (sample.source, sample.device, sample.utilisation_percent) == ("nvml", "Tesla T4", 100)
    assert (sample.power_w, sample.power_limit_w, sample.limiter) == (69.84, 70.0, "power limit")
    assert sample.temperature_c is None


def test_recorder_names_phases(telemetry: ModuleType) -> None:
    enough, readings = threading.Event(), []

    def read() -> Any:
        readings.append(1)
        if len(readings) == 3:
            enough.set()
        nothing = dict.fromkeys(telemetry.Sample.__dataclass_fields__)
        return telemetry.Sample(**{**nothing, "source": "test", "device": "none"})

    with telemetry.Recorder(read, 50) as recorder, recorder.during("work"):
        assert enough.wait(STUCK_S)
    assert len(recorder.samples) == len(readings)
    assert {sample["phase"] for sample in recorder.samples} <= {"work", ""}
    assert recorder.samples[0]["source"] == "test"
    assert [sample["at_s"] for sample in recorder.samples] == sorted(sample["at_s"] for sample in recorder.samples)


def test_recorder_goes_on_after_a_silent_driver_and_says_so(
    telemetry: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = iter([[{"name": "NVIDIA L4"}], None, None, [{"name": "NVIDIA L4"}]])
    recovery = threading.Event()

    def query() -> list[dict[str, object]] | None:
        answer = next(answers, recovery)
        if answer is recovery:
            recovery.set()
            return [{"name": "NVIDIA L4"}]
        return answer  # type: ignore[return-value]

    monkeypatch.setattr(telemetry.nvidia_smi, "query", query)
    read = telemetry.smi()
    with telemetry.Recorder(read, 50) as recorder:
        assert recovery.wait(STUCK_S)
    assert (recorder.silent, {sample["device"] for sample in recorder.samples}) == (2, {"NVIDIA L4"})
    assert recorder.missed >= 2
    assert capsys.readouterr().out.count("the GPU gave no answer") == 1
