"""Read Terraform's output while Terraform works, and turn its `-json` lines into events."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from gpucourse.model.event import Event, Note, ResourceEvent

_UNCHANGED = {"noop", "read"}
_PROVISIONER_OUTPUT = b'"type":"provision_progress"'
_EVERY_S = 0.02  # a provisioner may print a million lines; at most fifty a second are shown

_MAX_TEXT = 1000


@dataclass(frozen=True, kw_only=True)
class Diagnostic:
    """An error in Terraform's words. `address`: the resource that it is about; empty if there is none."""

    summary: str
    detail: str = ""
    address: str = ""
    place: str = ""


@dataclass
class Transcript:
    """Read the output of one command line by line.

    `planned`: the planned changes, as (action, address).
    `finished`: the completed changes, as (action, address).
    `outputs`: the outputs as in `terraform output -json`; None until they are known.
    `changing`: whether a resource has been touched.
    `text`: the last forty lines that are not Terraform's JSON.
    """

    planned: list[tuple[str, str]] = field(default_factory=list)
    finished: list[tuple[str, str]] = field(default_factory=list)
    errors: list[Diagnostic] = field(default_factory=list)
    outputs: dict[str, Any] | None = None
    changing: bool = False
    text: deque[str] = field(default_factory=lambda: deque(maxlen=40))
    clock: Callable[[], float] = time.monotonic
    _began: dict[str, tuple[str, float]] = field(default_factory=dict)
    _last_output: float = float("-inf")

    def read(self, line: bytes) -> Iterator[Event]:
        """Read one line of output; yield the events for a watcher."""
        if _PROVISIONER_OUTPUT in line and self.clock() - self._last_output < _EVERY_S:
            return
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict) or "@message" not in message:
            if text := line.decode("utf-8", "replace").strip():
                self.text.append(text[:_MAX_TEXT])
            return
        try:
            yield from self._understand(message)
        except (KeyError, TypeError, AttributeError, ValueError):  # a line in the form of another version: keep its text
            self.text.append(str(message["@message"])[:_MAX_TEXT])

    def _understand(self, message: dict[str, Any]) -> Iterator[Event]:
        kind = message.get("type", "log")
        if kind == "diagnostic":
            if message["diagnostic"]["severity"] == "error":
                self.errors.append(_parse_error(message["diagnostic"]))
        elif kind == "planned_change":
            yield from self._read_planned_change(message["change"])
        elif kind == "outputs":
            self.outputs = message["outputs"]
        elif kind == "state_lock_acquire":
            yield Note(text="another Terraform process holds the state of this stack; waiting for it", level="warning")
        elif kind in _HOOKS and message["hook"].get("action") != "read":
            yield from self._hook(kind, message["hook"], _moment(message.get("@timestamp", "")))

    def _read_planned_change(self, change: dict[str, Any]) -> Iterator[Event]:
        action, address = change["action"], change["resource"]["addr"]
        if action not in _UNCHANGED:
            self.planned.append((action, address))
            yield ResourceEvent(address=address, action=action, state="planned")

    def _hook(self, kind: str, hook: dict[str, Any], now: float) -> Iterator[Event]:
        address = hook["resource"]["addr"]
        if kind == "apply_start":
            self.changing = True  # decides what a second Ctrl-C does
            self._began[address] = (hook["action"], now)
        action, since = self._began.get(address, (hook.get("action", "create"), now))
        seconds = max(0.0, now - since)
        if kind == "apply_complete":
            self.finished.append((action, address))
        detail = ""
        if kind == "provision_progress":
            detail = _printable(hook["output"])
            if detail.startswith("Executing: ["):
                return
            self._last_output = self.clock()
        yield ResourceEvent(address=address, action=action, state=_HOOKS[kind], seconds=seconds, detail=detail)


_HOOKS: dict[str, Literal["started", "progress", "done", "failed"]] = {
    "apply_start": "started",
    "apply_progress": "progress",
    "provision_progress": "progress",
    "apply_complete": "done",
    "apply_errored": "failed",
}


def _parse_error(message: dict[str, Any]) -> Diagnostic:
    place = message.get("range") or {}
    location = f"{place['filename']} line {place['start']['line']}" if place.get("filename") else ""
    return Diagnostic(
        summary=_printable(message["summary"]),
        detail="\n".join(_printable(line) for line in str(message.get("detail", "")).splitlines()),
        address=message.get("address", ""),
        place=location,
    )


def _moment(stamp: str) -> float:
    """Return a time as seconds since the epoch. Return 0 if its form is unknown, so that no duration is invented."""
    try:
        return datetime.fromisoformat(stamp).timestamp()
    except ValueError:
        return 0.0


def _printable(text: str) -> str:
    """Return the text without control characters: a node's output may be shown, but must not control the terminal."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text.rstrip().replace("\t", " "))
