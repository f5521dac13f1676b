"""Judge a repaired copy: it must list each operation with its self time, which excludes the operations that it calls."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import torch

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way("aten::linear has a self time of {own:g} ms (aten::addmm takes the rest), but is listed with {shown:g} ms"),
    "missing": Way("the profile has {count} rows for two operations on the {side}"),
}
REPAIRS = (
    (
        'key = "device_time_total" if on_device else "cpu_time_total"',
        "key = f\"self_{'device' if on_device else 'cpu'}_time_total\"",
    ),
)


@dataclass(frozen=True)
class Event:
    """An operation as the profiler counts it, in microseconds."""

    key: str
    self_cpu_time_total: float
    cpu_time_total: float
    self_device_time_total: float = 0.0
    device_time_total: float = 0.0
    count: int = 1


CPU = [Event("aten::linear", 1000.0, 10_000.0), Event("aten::addmm", 9000.0, 9000.0)]
GPU = [
    replace(CPU[0], self_device_time_total=500.0, device_time_total=20_500.0),
    replace(CPU[1], self_device_time_total=20_000.0, device_time_total=20_000.0),
]


class Events(list[Event]):
    """The result of the profiler."""

    def table(self, **_: object) -> str:
        """Return an empty text: the judge ignores the table."""
        return ""


class Recording:
    """A profiler that has recorded the given events."""

    def __init__(self, events: list[Event]) -> None:
        self.events = Events(events)

    def __call__(self, **_: object) -> Self:
        """Return this recording."""
        return self

    def __enter__(self) -> Self:
        """Begin to record."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop recording."""

    def key_averages(self, **_: object) -> Events:
        """Return the events by name."""
        return self.events


def judge(part: Part) -> None:
    """Check that a layer that only calls another operation has little self time, on the processor and on a GPU."""
    take_profile, module = part.function("take_profile"), part.module
    for side, events, own_ms in (("processor", CPU, 1.0), ("GPU", GPU, 0.5)):
        recording: Any = Recording(events)
        module.profile = recording
        profile = part.call(take_profile, lambda: None, torch.device("cpu"), top=5)
        ms = {row["operation"]: row["self_ms"] for row in profile.rows}
        if len(ms) != len(events):
            raise part.wrong("missing", side=side, count=len(ms))
        if ms["aten::linear"] != own_ms:
            raise part.wrong("still", own=own_ms, shown=ms["aten::linear"])
    part.note("an operation that only calls another is listed with its self time, on the processor and on a GPU")
