"""Stages: what takes time says when it begins, when it ended and how long it took."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from gpucourse.model.event import Stage, Watcher


@contextmanager
def stage(watch: Watcher, name: str, text: str, phases: dict[str, float] | None = None) -> Iterator[None]:
    """Tell the watcher about the block: its start, its end with the seconds, and whether it failed."""
    watch(Stage(name=name, text=text))
    began, ok = time.monotonic(), False
    try:
        yield
        ok = True
    finally:
        seconds = time.monotonic() - began
        if phases is not None:
            phases[name] = round(seconds, 3)
        watch(Stage(name=name, text=text, seconds=seconds, ok=ok))
