"""Watch the messages of a rank: the arguments of isend, irecv, send and recv, in the order of the calls, without a clock.

A message is sent as a copy. It is put into the receiver's tensor only when the receiver waits for it; until then that tensor
contains NOT_YET. So code that changes or reads a tensor too early is always caught. A wait for a send returns immediately.
`find_stuck` uses the order of all ranks' calls to find out whether that wait could have ended. Each rank writes its calls to a
file, so that they can be read even if the rank never ended.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d

NOT_YET = -(2**40)


class Event(NamedTuple):
    """`kind` is isend, irecv, or a wait for one of them; the message of `size` bytes is the `number`-th from or to `peer`.

    `first` is the first number in the message.
    """

    kind: str
    peer: int
    number: int
    size: int
    first: float = 0.0


@dataclass
class Messages:
    """The record of one rank: its calls in order, and its requests. `on_event` is called for each call, and `file` gets a line
    for each call."""

    file: IO[str] | None = None
    events: list[Event] = field(default_factory=list)
    changed_early: bool = False
    requests: list[Request] = field(default_factory=list)
    on_event: Callable[[Event], None] | None = None
    numbers: Counter[tuple[str, int]] = field(default_factory=Counter)
    earlier: list[Request] = field(default_factory=list)

    def restart(self, file: Path) -> None:
        """Clear the recorded calls before the next tensor. Keep the requests, because they may not have finished."""
        if self.file:
            self.file.close()
        self.file = file.open("w", encoding="utf-8", buffering=1)  # so that each line is there if the rank is ended
        self.events, self.changed_early, self.numbers = [], False, Counter()
        self.earlier += self.requests
        self.requests = []

    def begin(self, kind: str, peer: int, tensor: torch.Tensor, start: Callable[[torch.Tensor], Any]) -> Request:
        """Send or receive a tensor by calling `start` with it, and return the request."""
        first = tensor.flatten()[0].item() if kind == "isend" and tensor.numel() else 0.0
        event = Event(kind, peer, self.numbers[kind, peer], tensor.nbytes, first)
        self.numbers[kind, peer] += 1
        self.add(event)
        if self.on_event:
            self.on_event(event)
        carried = tensor.detach().clone()
        if kind == "irecv":
            limits = torch.finfo(tensor.dtype) if tensor.is_floating_point() else torch.iinfo(tensor.dtype)
            tensor.detach().fill_(max(NOT_YET, limits.min))
        request = Request(self, event, tensor, carried, start(carried))
        self.requests.append(request)
        return request

    def add(self, event: Event) -> None:
        """Record an event in memory and in the file."""
        self.events.append(event)
        if self.file:
            self.file.write(json.dumps(event) + "\n")

    @property
    def sent_to(self) -> set[int]:
        """Return the ranks to which this rank sent messages."""
        return {event.peer for event in self.events if event.kind == "isend"}

    @property
    def never_waited(self) -> list[str]:
        """Return the kind of each request that was never waited for."""
        return [request.event.kind for request in self.requests if not request.waited]


class Request:
    """The result of isend and irecv."""

    def __init__(self, messages: Messages, event: Event, tensor: torch.Tensor, carried: torch.Tensor, work: Any) -> None:
        self.messages, self.event, self.tensor, self.carried, self.work = messages, event, tensor, carried, work
        self.waited = False

    def wait(self, *_: Any, **__: Any) -> bool:
        """Wait for the message. Afterwards, a received message is in its tensor."""
        if self.waited:
            return True
        self.waited = True
        self.messages.add(self.event._replace(kind=f"wait {self.event.kind}"))
        if self.event.kind == "irecv":
            self.work.wait()
            self.tensor.detach().copy_(self.carried)
        elif not torch.equal(self.tensor, self.carried):
            self.messages.changed_early = True
        return True

    def is_completed(self) -> bool:
        """Return whether the message has been transferred. If so, a received message is in its tensor."""
        return self.waited or bool(self.work.is_completed() and self.wait())


def watch(messages: Messages) -> None:
    """Record this process's messages from now on. Call this before the learner's file is imported."""
    isend, irecv = c10d.isend, c10d.irecv

    def watched_isend(tensor: torch.Tensor, dst: int | None = None, *arguments: Any, **kwargs: Any) -> Request:
        peer = kwargs.get("group_dst") if dst is None else dst
        return messages.begin("isend", peer, tensor, lambda copy: isend(copy, dst, *arguments, **kwargs))

    def watched_irecv(tensor: torch.Tensor, src: int | None = None, *arguments: Any, **kwargs: Any) -> Request:
        peer = kwargs.get("group_src") if src is None else src
        return messages.begin("irecv", peer, tensor, lambda copy: irecv(copy, src, *arguments, **kwargs))

    def watched_send(*arguments: Any, **kwargs: Any) -> None:
        watched_isend(*arguments, **kwargs).wait()

    def watched_recv(tensor: torch.Tensor, src: int | None = None, *arguments: Any, **kwargs: Any) -> int | None:
        watched_irecv(tensor, src, *arguments, **kwargs).wait()
        return src

    for name, function in {
        "isend": watched_isend, "irecv": watched_irecv, "send": watched_send, "recv": watched_recv,
    }.items():  # fmt: skip
        setattr(dist, name, function)
        setattr(c10d, name, function)


def find_stuck(logs: Sequence[Sequence[Event]]) -> dict[int, Event]:
    """Return the ranks that would wait for ever, each with the wait that never ends. A send is assumed to end only when the
    receive for it has begun."""
    places, posted = [0] * len(logs), Counter[tuple[str, int, int]]()
    has_moved = True
    while has_moved:
        has_moved = False
        for rank, log in enumerate(logs):
            while places[rank] < len(log) and _can_pass(rank, log[places[rank]], posted):
                places[rank] += 1
                has_moved = True
    return {rank: log[place] for rank, (log, place) in enumerate(zip(logs, places, strict=True)) if place < len(log)}


def find_other_size(logs: Sequence[Sequence[Event]]) -> tuple[Event, Event] | None:
    """Return a message whose receiver expects a different size, as its isend and its irecv, or None if there is no such
    message."""
    for rank, log in enumerate(logs):
        for event in log:
            if event.kind == "isend":
                expectation = Event("irecv", rank, event.number, event.size)
                for candidate in logs[event.peer]:
                    if candidate[:3] == expectation[:3] and candidate.size != event.size:
                        return event, candidate
    return None


def read_events(file: Path) -> list[Event]:
    """Return the events that a rank wrote before it ended or was stopped."""
    return [Event(*json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def _can_pass(rank: int, event: Event, posted: Counter[tuple[str, int, int]]) -> bool:
    if not event.kind.startswith("wait"):
        posted[event.kind, rank, event.peer] += 1
        return True
    counterpart = "irecv" if event.kind == "wait isend" else "isend"
    return posted[counterpart, event.peer, rank] > event.number
