"""Judge my_timer.py of 1.1 on a simulated device with a queue. Its clock advances only with the device."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gpucourse.judge import Case, Part, Way

US = 1e-6
LAUNCH, WAIT, LOOK = 5 * US, 15 * US, 0.05 * US  # CPU seconds for a call, for a synchronize, for reading the clock
WORK, SLOW = 40 * US, 4000 * US  # device seconds for a call, and for one that is disturbed
TOLERANCE = 0.04

WAYS = {
    "launch-only": Way(
        "{given_us:.1f} microseconds is the time to put a call into the queue; the device works {right_us:.1f} on it. You "
        "read the clock before the device had finished: synchronize before you stop the clock",
        ("        synchronize()\n        seconds.append(", "        seconds.append("),
    ),
    "busy-at-the-start": Way(
        "the device still had other work in its queue when you started the clock, and your figure includes that work: "
        "synchronize before you start the clock, too",
        ("    for _ in range(samples):\n        synchronize()\n", "    for _ in range(samples):\n"),
    ),
    "synchronize-in-the-loop": Way(
        "you waited after every call. {given_us:.1f} microseconds are launch, work and wait; the work alone takes "
        "{right_us:.1f}. Queue all calls of a sample and wait once, so that the device never runs out of work",
        ("            call()\n        synchronize()\n", "            call()\n            synchronize()\n"),
    ),
    "cold-call": Way(
        "the first call is in your figure, and it was {factor:,.0f} times as slow as a warm one: make one call before you "
        "start the clock, and leave it out",
        ("    call()\n    seconds", "    seconds"),
    ),
    "cold-queue": Way(
        "you made a first call to warm up, but started the clock while the device was still busy with it: synchronize "
        "between the two",
        (
            "    call()\n    seconds = []\n    for _ in range(samples):\n        synchronize()\n",
            "    synchronize()\n    call()\n    seconds = []\n    for _ in range(samples):\n",
        ),
    ),
    "mean": Way(
        "one sample of {samples} was disturbed, and it pulled your mean up to {given_us:.0f} microseconds. Which figure "
        "of several samples can one of them not shift?",
        ("statistics.median", "statistics.mean"),
    ),
    "fastest": Way(
        "you took the fastest sample, in which the device was faster than usual for a moment: no other sample is like it",
        ("statistics.median", "min"),
    ),
    "middle-of-an-even-number": Way(
        "{samples} is an even number, so two samples are in the middle, and you took one of them: take their mean",
        ("statistics.median(", "statistics.median_low("),
    ),
    "whole-sample": Way(
        "this is the time of a whole sample: it has {calls} calls, so divide by their number",
        ("(clock() - start) / calls", "clock() - start"),
    ),
    "milliseconds": Way(
        "your figure is {times:,.0f} times the right one: the clock returns seconds, and the result has to be in seconds",
        ("return statistics.median(seconds)", "return 1000 * statistics.median(seconds)"),
    ),
    "too-few-calls": Way(
        "the device got {count} calls, but {samples} samples of {calls} calls were asked for",
        ("        for _ in range(calls):\n", "        for _ in range(1):\n"),
    ),
    "another-clock": Way(
        "you did not read the clock that was passed to you: your figure is from this computer's clock, not the device's",
        ("    seconds = []\n", "    import time\n\n    clock = time.perf_counter\n    seconds = []\n"),
    ),
}


@dataclass(frozen=True)
class Setting:
    """One case: the number of samples, the calls in each sample, and the state of the device."""

    name: str
    samples: int
    calls: int
    cold: bool = False
    queued: float = 0.0  # seconds of other work in the queue at the start
    slow_from: int = 0  # from this call on, some are disturbed
    fast_from: int = 0  # from this call on, some are faster
    turns: bool = False  # the calls of every other sample are faster
    work: float = WORK  # device seconds of a call in the median sample


SETTINGS = (
    Setting("a warm, idle device", 3, 200),
    Setting("a device with other work in its queue", 1, 100, queued=0.05),
    Setting("a cold device, one sample", 1, 150, cold=True),
    Setting("a cold device, other work in its queue", 2, 120, cold=True, queued=0.02),
    Setting("a sample that is disturbed", 5, 100, slow_from=260),
    Setting("a sample that is faster than usual", 7, 80, fast_from=200),
    Setting("two of four samples that are faster than usual", 4, 80, turns=True, work=0.75 * WORK),
)


class Device:
    """A device with a queue. All times are on its own clock, which only its functions advance."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.now = 1000.0
        self.idle_at = self.now + setting.queued
        self.calls = self.looks = 0

    def call(self) -> None:
        """Put work into the queue."""
        self.calls += 1
        cold = self.setting.cold and self.calls == 1
        self.now += 0.3 if cold else LAUNCH
        self.idle_at = max(self.idle_at, self.now) + (0.2 if cold else self._work())

    def _work(self) -> float:
        jitter = 1 + 0.004 * (self.calls % 5 - 2)
        if 0 <= self.calls - self.setting.slow_from < 3 and self.setting.slow_from:
            return SLOW
        if 0 <= self.calls - self.setting.fast_from < 2 * self.setting.calls and self.setting.fast_from:
            return 0.5 * WORK
        if self.setting.turns and self.calls // self.setting.calls % 2:  # however many calls came before the first sample
            return 0.5 * WORK
        return WORK * jitter

    def synchronize(self) -> None:
        """Wait until the queue is empty."""
        self.now = max(self.now, self.idle_at) + WAIT

    def clock(self) -> float:
        """Return the time in seconds."""
        self.looks += 1
        self.now += LOOK
        return self.now


def judge(part: Part) -> None:
    """Judge the time measured in each state of the device."""
    time_call = part.function("time_call")
    cases: list[Case] = []
    for setting in SETTINGS:
        device = Device(setting)
        answer = part.call(
            time_call, device.call, device.synchronize, device.clock, setting.samples, setting.calls, case=setting.name
        )
        if answer is not None and device.calls < setting.samples * setting.calls:
            raise part.wrong("too-few-calls", setting.name, count=device.calls, samples=setting.samples, calls=setting.calls)
        if answer is not None and not device.looks:
            raise part.wrong("another-clock", setting.name)
        ways = {name: _measure(Device(setting), **variant) for name, variant in VARIANTS.items()}
        number = answer if isinstance(answer, (int, float)) else 0.0
        values: Mapping[str, object] = {
            "given_us": number / US, "right_us": setting.work / US, "factor": 0.5 / WORK, "times": number / WORK,
            "samples": setting.samples, "calls": setting.calls,
        }  # fmt: skip
        cases.append(Case(setting.name, answer, setting.work, ways, values))
        part.compare(cases, tolerance=TOLERANCE)  # a way has to explain the settings before this one, too
    part.note(f"within {100 * TOLERANCE:.0f}% of the device's own time in {len(SETTINGS)} states of the device")


def _measure(
    device: Device,
    *,
    warm: bool = True,
    sync_before: bool = True,
    settled: bool = False,
    inside: bool = False,
    sync_after: bool = True,
    pick: Callable[[list[float]], float] = statistics.median,
    divide: bool = True,
    factor: float = 1.0,
) -> float:
    """Return the seconds of a right measurement, or of one with the mistake that the keyword arguments describe. `settled`
    means that it synchronizes only before the warm-up."""
    if settled:
        device.synchronize()
    if warm:
        device.call()
    seconds = []
    for _ in range(device.setting.samples):
        if sync_before:
            device.synchronize()
        start = device.clock()
        for _ in range(device.setting.calls):
            device.call()
            if inside:
                device.synchronize()
        if sync_after and not inside:
            device.synchronize()
        seconds.append((device.clock() - start) / (device.setting.calls if divide else 1))
    return factor * pick(seconds)


VARIANTS: dict[str | tuple[str, str], dict[str, object]] = {
    "launch-only": {"sync_after": False},
    "synchronize-in-the-loop": {"inside": True},
    "whole-sample": {"divide": False},
    "milliseconds": {"factor": 1000.0},
    "cold-call": {"warm": False},
    "cold-queue": {"sync_before": False, "settled": True},
    "busy-at-the-start": {"sync_before": False},
    "mean": {"pick": statistics.mean},
    "fastest": {"pick": min},
    ("middle-of-an-even-number", "lower"): {"pick": statistics.median_low},
    ("middle-of-an-even-number", "upper"): {"pick": statistics.median_high},
}
