"""Connections that begin before they are needed, and the probe that follows: meanwhile the command imports the rest of the
program."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpucourse.model.node import Node
from gpucourse.ports import Link, Transport
from gpucourse.remote.patience import CONNECT_S

_FRESH_S = 5.0  # an older answer is requested again: other programs take ports, and a person may have fixed the network
PORTS = (29500, 29599)
"""The ports where ranks meet, unless the learner's settings name others."""


@dataclass(frozen=True, kw_only=True)
class ProbeRequest:
    """The request to a node: modules, programs, and free ports of a range."""

    modules: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    ports: tuple[int, int] = PORTS


@dataclass(frozen=True, kw_only=True)
class NodeFindings:
    """What one node has. `missing`: the modules that its Python does not find, `missing_programs`: the programs that are not
    on its PATH; `interfaces`: name to IPv4 address;
    `clock_skew_s`: how far its clock is ahead of this computer's, to within half the time that the probe took."""

    python_version: str
    missing: tuple[str, ...]
    missing_programs: tuple[str, ...]
    cores: int
    disk_free_bytes: int
    free_ports: tuple[int, ...]
    hostname: str
    interfaces: dict[str, str]
    clock_skew_s: float
    seconds: float


class EarlyTransport:
    """Makes links with another transport, and starts those to some `nodes` at once. Implements ports.Transport. Its owner
    closes it, which drops the links that were never requested.

    `modules`: the modules to probe for once connected, besides what every launch depends on.
    """

    def __init__(
        self,
        transport: Transport,
        nodes: Iterable[Node],
        *,
        modules: Sequence[str] | None = None,
        timeout_s: float = CONNECT_S,
        fresh_s: float = _FRESH_S,
    ) -> None:
        self._transport = transport
        self._attempts = {node: _Attempt(transport, node, modules, timeout_s, fresh_s) for node in nodes}

    def connect(self, node: Node, *, timeout_s: float = CONNECT_S) -> Link:
        """Return the link that was begun early, else a new one. Raises what the transport raises."""
        attempt = self._attempts.get(node)
        link = attempt.take() if attempt else None
        if link is not None and link.alive:
            return link
        if link is not None:
            link.close()
        return self._transport.connect(node, timeout_s=timeout_s)

    def find(self, node: Node, request: ProbeRequest) -> NodeFindings | None:
        """Return what the node answered early; None if the early request was another one. Raises its error."""
        attempt = self._attempts.get(node)
        return attempt.answer(request) if attempt else None

    def close(self) -> None:
        """Drop the links that were never requested; one that is still being made is dropped as soon as it is there."""
        for attempt in self._attempts.values():
            attempt.abandon()


class _Attempt:
    """A link that is being made."""

    def __init__(
        self, transport: Transport, node: Node, modules: Sequence[str] | None, timeout_s: float, fresh_s: float
    ) -> None:
        self._link: Link | None = None
        self._error: BaseException | None = None
        self._request = ProbeRequest(modules=tuple(modules)) if modules is not None else None
        self._answer: NodeFindings | Exception | None = None
        self._taken, self._abandoned = False, False
        self._fresh_s, self._failed, self._asked = fresh_s, 0.0, 0.0
        self._connected, self._answered = threading.Event(), threading.Event()
        threading.Thread(
            target=self._begin, args=(transport, node, timeout_s), name=f"connect-{node.name}", daemon=True
        ).start()

    def take(self) -> Link | None:
        """Return the link, as soon as it is there; None on any further call, and if the transport raised an error long ago.
        Raises an error that the transport raised just now."""
        if self._taken:
            return None
        self._connected.wait()
        self._taken = True
        if self._error is not None:
            if time.monotonic() - self._failed >= self._fresh_s:
                return None
            raise self._error
        return self._link

    def answer(self, request: ProbeRequest) -> NodeFindings | None:
        """Return what the node answered, as soon as it is there; None if the request was another one, if the answer is old, if
        its link was lost, and on any further call. Raises the error of a node that could not be probed."""
        if request != self._request:
            return None
        self._answered.wait()
        self._request = None  # a further caller wants the state at that time
        if isinstance(self._answer, Exception):
            if self._link is None or not self._link.alive:  # the link that replaced it may answer
                return None
            raise self._answer
        return self._answer if time.monotonic() - self._asked < self._fresh_s else None

    def abandon(self) -> None:
        """Drop the link if it was not requested, now or once it is there."""
        self._abandoned = True
        if self._link is not None and not self._taken:
            self._link.close()

    def _begin(self, transport: Transport, node: Node, timeout_s: float) -> None:
        try:
            self._link = transport.connect(node, timeout_s=timeout_s)
        except BaseException as error:  # noqa: BLE001  raised again in the thread that requests the link
            self._error, self._failed = error, time.monotonic()
        self._connected.set()
        try:
            if self._link is not None and self._abandoned and not self._taken:
                self._link.close()
            elif self._link is not None and self._request is not None:
                self._asked = time.monotonic()
                self._answer = look_at(self._link, self._request)
        except Exception as error:  # noqa: BLE001  raised again in the thread that requests the answer
            self._answer = error
        finally:
            self._answered.set()


def look_at(link: Link, request: ProbeRequest) -> NodeFindings:
    """Return what one node has. Raises the error of a node that cannot be probed."""
    from gpucourse.remote import jobs  # imported here: until a node is connected, other things can be imported

    began, asked = time.monotonic(), time.time()
    answer = jobs.probe(link, request.modules, request.ports, programs=request.programs)
    answered = time.time()
    return NodeFindings(
        python_version=answer.python,
        missing=tuple(name for name, module in answer.modules.items() if not module.found),
        missing_programs=tuple(answer.missing_programs),
        cores=answer.cores,
        disk_free_bytes=answer.disk_free_bytes,
        free_ports=tuple(answer.ports),
        hostname=answer.hostname,
        interfaces=answer.interfaces,
        clock_skew_s=_skew(asked, answer.clock, answered),
        seconds=time.monotonic() - began,
    )


def _skew(asked: float, told: float, answered: float) -> float:
    """Return how far a clock is ahead, at least: a time between question and answer counts as no difference."""
    return round(max(told - answered, min(0.0, told - asked)), 3)
