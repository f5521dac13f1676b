"""The events that commands report to a watcher while they work. `cli` and `ui` show them; nothing below these prints."""

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
    """A stage of the work began or ended (`seconds` is None until it ends). `name` is unique within one command. `silence`
    describes what happens before the first line of a log, if that takes a while."""

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
    """A piece of a rank's log, unchanged and already on disk. `rank` is None for the launcher's own output. `scheduled`: the
    run uses Slurm; output without a rank then comes from a job, or reports on the jobs."""

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
    """The watcher follows a run from now on. `ranks` lists, for each node, the ranks that have printed nothing yet."""

    ranks: Mapping[str, Sequence[int]]


Event = Note | Stage | ResourceEvent | NodeEvent | LogBytes | RankEvent | SilentRanks
Watcher = Callable[[Event], None]


def ignore_event(_event: Event) -> None:
    """Ignore the event."""


def label_events(watch: Watcher, label: str, *, stages: bool = True) -> Watcher:
    """Return a watcher that adds a label to every event and passes it to `watch`, because tasks that run side by side have
    nodes and resources with the same names. `stages` says whether stages get the label, too."""

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
    """Report the block to the watcher: its start, its end with the seconds, and whether it failed. If the user interrupts the
    block, no end is reported, because its work may continue."""
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
