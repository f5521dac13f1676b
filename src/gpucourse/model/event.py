"""The events that commands report to a watcher while they work. Only `cli` and `ui` show them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

from gpucourse.errors import Interrupted

Level = Literal["info", "warning"]


@dataclass(frozen=True, kw_only=True)
class Note:
    """A single sentence for the user."""

    text: str
    level: Level = "info"


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A stage of the work began or ended.

    `seconds`: None until the stage ends.
    `name`: unique within one command.
    `silence`: explains why the log may stay empty for a while.
    """

    name: str
    text: str
    seconds: float | None = None
    ok: bool = True
    silence: str = ""


@dataclass(frozen=True, kw_only=True)
class ResourceEvent:
    """Terraform is working on a resource. `action` is Terraform's word (create, delete, update, replace)."""

    address: str
    action: str
    state: Literal["planned", "started", "progress", "done", "failed"]
    seconds: float = 0.0
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class NodeEvent:
    """A node passed (or failed) a readiness check or a step: ssh, python, push, start, collect."""

    node: str
    step: str
    ok: bool
    seconds: float
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class LogBytes:
    """A piece of a rank's log, unchanged and already on disk.

    `rank`: None for the launcher's own output.
    `scheduled`: the run uses Slurm. Output without a rank then comes from a job, or is about the jobs.
    """

    node: str
    rank: int | None
    data: bytes
    scheduled: bool = False


@dataclass(frozen=True, kw_only=True)
class RankEvent:
    """A rank ended with this exit code, and will not be started again."""

    node: str
    rank: int
    code: int


@dataclass(frozen=True, kw_only=True)
class SilentRanks:
    """A watcher begins to follow a run. `ranks` lists the ranks of each node that have printed nothing yet."""

    ranks: Mapping[str, Sequence[int]]


Event = Note | Stage | ResourceEvent | NodeEvent | LogBytes | RankEvent | SilentRanks
Watcher = Callable[[Event], None]


def ignore_event(_event: Event) -> None:
    """Ignore the event."""


def label_events(watch: Watcher, label: str, *, stages: bool = True) -> Watcher:
    """Return a watcher that labels every event before passing it to `watch`. The labels distinguish tasks in parallel, whose
    nodes and resources have the same names. `stages` says whether stages are labelled too."""

    def tell(event: Event) -> None:
        if isinstance(event, ResourceEvent):
            watch(replace(event, address=f"{label} {event.address}"))
        elif isinstance(event, NodeEvent):
            watch(replace(event, node=f"{label} {event.node}"))
        elif isinstance(event, Stage) and stages:
            watch(replace(event, name=f"{label} {event.name}", text=f"{label}: {event.text}"))
        else:
            watch(event)

    return tell


@contextmanager
def stage(watch: Watcher, name: str, text: str, phases: dict[str, float] | None = None, *, silence: str = "") -> Iterator[None]:
    """Report the start of the block, and then its end, duration and success. For an interrupted block, no end is reported,
    because its work may go on."""
    watch(Stage(name=name, text=text, silence=silence))
    start_s, ok, is_left = time.monotonic(), False, False
    try:
        yield
        ok = True
    except (KeyboardInterrupt, Interrupted):
        is_left = True
        raise
    finally:
        seconds = time.monotonic() - start_s
        if phases is not None:
            phases[name] = round(seconds, 3)
        if not is_left:
            watch(Stage(name=name, text=text, seconds=seconds, ok=ok))
