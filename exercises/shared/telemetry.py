"""Sample a device while another process or thread computes: one format, three sources.

The source is NVML if NVIDIA's Python package is installed, nvidia-smi if there is only the driver, and otherwise the processor,
through psutil. Each sample names its source. Values that the source does not know are None.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import bench
import nvidia_smi


@dataclass(frozen=True)
class Sample:
    """One device at one moment. Utilisation is the share of the time in which anything at all ran on it."""

    source: str
    device: str
    utilisation_percent: float | None
    memory_utilisation_percent: float | None
    memory_used_bytes: int | None
    memory_total_bytes: int | None
    temperature_c: float | None
    power_w: float | None
    power_limit_w: float | None
    clock_mhz: float | None
    limiter: str | None


Source = Callable[[], Sample]


def nvml(index: int = 0) -> Source | None:
    """Return a reader of NVIDIA's management library, or None without the library or its Python package (pip install
    nvidia-ml-py)."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    except pynvml.NVMLError:
        return None
    reasons = (
        getattr(pynvml, "nvmlDeviceGetCurrentClocksEventReasons", None) or pynvml.nvmlDeviceGetCurrentClocksThrottleReasons
    )

    def ask(call: Callable[..., object], *argument: object) -> object:
        try:
            return call(handle, *argument)
        except pynvml.NVMLError:  # this GPU, or this driver, does not have it
            return None

    def watts(call: Callable[..., object]) -> float | None:
        reading = ask(call)
        return float(reading) / 1e3 if isinstance(reading, (int, float)) else None

    def read() -> Sample:
        busy, memory = ask(pynvml.nvmlDeviceGetUtilizationRates), ask(pynvml.nvmlDeviceGetMemoryInfo)
        name = ask(pynvml.nvmlDeviceGetName)
        return Sample(
            source="nvml",
            device=name.decode() if isinstance(name, bytes) else str(name),
            utilisation_percent=getattr(busy, "gpu", None),
            memory_utilisation_percent=getattr(busy, "memory", None),
            memory_used_bytes=getattr(memory, "used", None),
            memory_total_bytes=getattr(memory, "total", None),
            temperature_c=ask(pynvml.nvmlDeviceGetTemperature, pynvml.NVML_TEMPERATURE_GPU),
            power_w=watts(pynvml.nvmlDeviceGetPowerUsage),
            power_limit_w=watts(pynvml.nvmlDeviceGetEnforcedPowerLimit),
            clock_mhz=ask(pynvml.nvmlDeviceGetClockInfo, pynvml.NVML_CLOCK_SM),
            limiter=nvidia_smi.limiters(ask(reasons)),
        )

    return read


def smi() -> Source | None:
    """Return a reader of nvidia-smi, which comes with every driver. A call takes some 30 to 100 ms, so call it only a few times
    a second."""
    if not nvidia_smi.query():
        return None

    def read() -> Sample:
        row = (nvidia_smi.query() or [{}])[0]
        return Sample(
            source="nvidia-smi",
            device=str(row.get("name") or ""),
            utilisation_percent=row.get("utilization.gpu"),
            memory_utilisation_percent=row.get("utilization.memory"),
            memory_used_bytes=row.get("memory.used"),
            memory_total_bytes=row.get("memory.total"),
            temperature_c=row.get("temperature.gpu"),
            power_w=row.get("power.draw"),
            power_limit_w=row.get("power.limit"),
            clock_mhz=row.get("clocks.current.sm"),
            limiter=nvidia_smi.limiters(row.get(nvidia_smi.REASONS)),
        )

    return read


def read_battery(folder: Path = Path("/sys/class/power_supply")) -> float | None:
    """Return the watts that this computer draws from its battery, display included, or None if it draws none or Linux does not
    report them."""

    def read_micro(file: Path) -> float:
        return int(file.read_text(encoding="ascii")) / 1e6

    for supply in sorted(folder.glob("*")):
        with contextlib.suppress(OSError, ValueError):
            if (supply / "status").read_text(encoding="ascii").strip() != "Discharging":
                continue
            if (supply / "power_now").is_file():
                return abs(read_micro(supply / "power_now"))
            return abs(read_micro(supply / "current_now") * read_micro(supply / "voltage_now"))
    return None


def processor() -> Source:
    """Return a reader of this computer's CPU and memory, for computers without a GPU.

    End the script with a message if psutil is missing.
    """
    try:
        import psutil
    except ImportError:
        sys.exit("without a GPU this watches the CPU, through psutil: pip install psutil")
    psutil.cpu_percent()  # the first reading is about the time before

    def read() -> Sample:
        memory, clock = psutil.virtual_memory(), psutil.cpu_freq()
        heat = next(iter(getattr(psutil, "sensors_temperatures", dict)().values()), None)
        return Sample(
            source="cpu",
            device=f"{psutil.cpu_count()} processor cores (no GPU)",
            utilisation_percent=psutil.cpu_percent(),
            memory_utilisation_percent=None,
            memory_used_bytes=memory.total - memory.available,
            memory_total_bytes=memory.total,
            temperature_c=heat[0].current if heat else None,
            power_w=read_battery(),
            power_limit_w=None,
            clock_mhz=clock.current if clock else None,
            limiter=None,
        )

    return read


def source() -> Source:
    """Return the best source for the device that `bench.here` computes on."""
    return (nvml() or smi() or processor()) if bench.here().type == "cuda" else processor()


@dataclass
class Recorder:
    """Take samples at a fixed rate in its own thread, for as long as the block lasts. Each sample names its phase.

    `missed` counts missing samples. Some were late; for `silent` of them, the device did not answer.
    """

    read: Source
    hz: float
    samples: list[dict] = field(default_factory=list)
    phase: str = ""
    missed: int = 0
    silent: int = 0

    def __enter__(self) -> Recorder:  # noqa: PYI034 (Self is newer than Python 3.10)
        self._stop, self._begun = threading.Event(), time.monotonic()
        self._thread = threading.Thread(target=self._loop)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    @contextlib.contextmanager
    def during(self, phase: str):
        """Give this name to the phase that is sampled from now on."""
        self.phase = phase
        yield self
        self.phase = ""

    @property
    def seconds(self) -> float:
        """Return the seconds since the recording began."""
        return time.monotonic() - self._begun

    def _loop(self) -> None:
        tick = 0
        while not self._stop.wait(max(0.0, self._begun + (tick + 1) / self.hz - time.monotonic())):
            due_tick = int(self.seconds * self.hz)  # samples that fell due during a late one are counted as missed
            self.missed += max(0, due_tick - tick - 1)
            tick = max(tick + 1, due_tick)
            phase, at = self.phase, self.seconds
            sample = self.read()
            if sample.device:
                self.samples.append({"at_s": round(at, 4), "phase": phase, **asdict(sample)})
                continue
            if not self.silent:
                bench.say(f"the GPU gave no answer {at:.0f} s after the recording began: samples are missing from here on")
            self.missed, self.silent = self.missed + 1, self.silent + 1
