"""The record of a sweep: runs of one exercise with different values of one parameter."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from gpucourse.model.node import Mode


@dataclass(frozen=True, kw_only=True)
class Point:
    """One value and its run. `error` says why there is no run, or how the run was lost.

    `state`: the state of the run. A run of a job array is `running` until its outputs are collected.
    """

    value: object
    run: str | None = None
    state: str
    verdict: str | None = None
    seconds: float | None = None
    error: str = ""


@dataclass(kw_only=True)
class Sweep:
    """`sweep.json`. The table contains the text that was shown.

    `state`: running, done, or stopped before the last value. If the runs are a job array, a sweep whose command was stopped is
    still running.
    `place`: the folder below `runs/` of a learner's own script, as in a run's record.
    """

    version: int = 1
    id: str
    exercise: str
    place: str | None = None
    parameter: str
    unit: str = ""
    mode: Mode | None = None
    device: str = ""
    state: Literal["running", "done", "stopped"] = "running"
    created: str
    ended: str | None = None
    settings: dict[str, str] = field(default_factory=dict)
    values: list[object] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    title: str = ""
    columns: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    numeric: list[bool] = field(default_factory=list)
    pictures: list[str] = field(default_factory=list)

    @property
    def folder(self) -> str:
        """Return the path, below `runs/`, of the folder for the sweep and for its runs."""
        return self.place or self.exercise
