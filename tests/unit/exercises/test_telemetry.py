"""Watching a device: what nvidia-smi and NVML answer, read; and a recorder that keeps its rate and its phases."""

from __future__ import annotations

import subprocess
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

smi = beside_the_script("shared", "nvidia_smi")
CAPTURED = Path(__file__).parents[2] / "data" / "nvidia-smi"
MIB = 1 << 20


def read_captured(name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = smi.read((CAPTURED / f"{name}.csv").read_text(encoding="utf-8"))
    return rows


def test_captured_output_of_an_h100() -> None:
    (row,) = read_captured("h100")
    assert row["name"] == "NVIDIA H100 80GB HBM3"
    assert row["driver_version"] == "595.71.05", "three numbers with dots are a word"
    assert (row["temperature.gpu"], row["utilization.gpu"], row["pcie.link.gen.current"]) == (29, 0, 5)
    assert (row["memory.total"], row["memory.used"]) == (81559 * MIB, 0)


def test_captured_output_over_time() -> None:
    rows = read_captured("v100")
    assert [row["utilization.gpu"] for row in rows] == [99, 99, 100, 32]
    assert rows[0]["timestamp"] == "2020/11/12 13:48:11.412"
    assert {row["memory.used"] for row in rows} == {30994 * MIB}


def test_units_in_the_heading_old_names_and_what_is_not_known() -> None:
    known, unknown = read_captured("t4-unknown")
    assert (known["memory.used"], known["power.draw"], known["power.limit"]) == (14321 * MIB, 69.84, 70.0)
    assert smi.limiters(known[smi.REASONS]) == "power limit"
    assert [unknown[key] for key in ("utilization.gpu", "temperature.gpu", "power.draw", "power.limit", smi.REASONS)] == 5 * [
        None
    ]
    assert unknown["clocks.current.sm"] is None
    assert unknown["memory.used"] == 0, "0 is known"


@pytest.mark.parametrize(
    ("mask", "words"),
    [(None, None), (0x0, ""), (0x1, ""), (0x4, "power limit"), (0x44, "power limit, temperature (hardware)")],
)
def test_limiters(mask: int | None, words: str | None) -> None:
    assert smi.limiters(mask) == words


def test_no_output_is_no_gpu() -> None:
    assert smi.read("") == []


def test_an_old_driver_is_asked_by_the_old_name(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def answer(words: list[str], **_: object) -> SimpleNamespace:
        asked.append(words[1])
        old = "throttle" in words[1]
        return SimpleNamespace(
            returncode=0 if old else 2, stdout="index, clocks_throttle_reasons.active\n0, 0x4\n" if old else ""
        )

    monkeypatch.setattr(smi.shutil, "which", lambda _: "nvidia-smi")
    monkeypatch.setattr(subprocess, "run", answer)
    assert smi.query() == [{"index": 0, "clocks_event_reasons.active": 4}]
    assert len(asked) == 2


def test_a_driver_that_hangs_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(words: list[str], **_: object) -> SimpleNamespace:
        raise subprocess.TimeoutExpired(words, 10)

    monkeypatch.setattr(smi.shutil, "which", lambda _: "nvidia-smi")
    monkeypatch.setattr(subprocess, "run", hang)
    assert smi.query() is None


# --- sources and recorder; they need torch, through bench ------------------------------------------------------------------


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


def test_nvml_gives_what_it_knows_and_none_for_the_rest(telemetry: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml())
    sample = telemetry.nvml()()
    assert (sample.source, sample.device, sample.utilisation_percent) == ("nvml", "Tesla T4", 100)
    assert (sample.power_w, sample.power_limit_w, sample.limiter) == (69.84, 70.0, "power limit")
    assert sample.temperature_c is None


def test_no_driver_is_no_source(telemetry: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeNvml()

    def no_library() -> None:
        raise fake.NVMLError("library not found")

    fake.nvmlInit = no_library
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    assert telemetry.nvml() is None
    monkeypatch.setenv("PATH", "")
    assert telemetry.smi() is None


def test_the_recorder_names_phases_and_counts_what_it_missed(telemetry: ModuleType) -> None:
    enough, taken = threading.Event(), []

    def read() -> Any:
        taken.append(1)
        if len(taken) == 3:
            enough.set()
        nothing = dict.fromkeys(telemetry.Sample.__dataclass_fields__)
        return telemetry.Sample(**{**nothing, "source": "test", "device": "none"})

    with telemetry.Recorder(read, 50) as recorder, recorder.during("work"):
        assert enough.wait(STUCK_S)
    assert len(recorder.samples) == len(taken)
    assert {sample["phase"] for sample in recorder.samples} <= {"work", ""}
    assert recorder.samples[0]["source"] == "test"
    assert [sample["at_s"] for sample in recorder.samples] == sorted(sample["at_s"] for sample in recorder.samples)


def test_the_recorder_goes_on_after_a_silent_driver_and_says_so(
    telemetry: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = iter([[{"name": "NVIDIA L4"}], None, None, [{"name": "NVIDIA L4"}]])
    later = threading.Event()

    def query() -> list[dict[str, object]] | None:
        answer = next(answers, later)
        if answer is later:
            later.set()
            return [{"name": "NVIDIA L4"}]
        return answer  # type: ignore[return-value]

    monkeypatch.setattr(telemetry.nvidia_smi, "query", query)
    read = telemetry.smi()
    with telemetry.Recorder(read, 50) as recorder:
        assert later.wait(STUCK_S)
    assert (recorder.silent, {sample["device"] for sample in recorder.samples}) == (2, {"NVIDIA L4"})
    assert recorder.missed >= 2
    assert capsys.readouterr().out.count("the GPU gave no answer") == 1
