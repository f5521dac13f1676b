"""Work on all nodes at the same time. Each node has its own outcome, so that an error names the nodes that failed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, Self, TypeVar

from gpucourse.errors import (
    ExerciseFailed,
    GpucourseError,
    InfrastructureError,
    MissingError,
    NoAnswer,
    StorageError,
    UnreachableError,
    UsageError,
)
from gpucourse.model.node import Node
from gpucourse.parallel import try_all
from gpucourse.ports import Link, Transport
from gpucourse.remote.patience import CONNECT_S

T = TypeVar("T")

AT_ONCE = 32
"""The maximum number of nodes to work on at the same time."""


@dataclass(frozen=True, kw_only=True)
class Outcome(Generic[T]):
    """The outcome on one node: a value or an error."""

    node: Node
    value: T | None = None
    error: GpucourseError | None = None

    @property
    def ok(self) -> bool:
        """Return whether there is no error."""
        return self.error is None

    def take(self) -> T:
        """Return the value, or raise the error."""
        if self.error is not None:
            raise self.error
        return self.value  # type: ignore[return-value]  # T itself may be None


class Fleet:
    """Links to some nodes, made when they are first needed and kept until `close`.

    `links`: links that are already open, by the node's name.
    `shared`: a folder that all nodes share, in which commands run. If it is empty, they run in the home folders.
    """

    def __init__(
        self,
        transport: Transport,
        nodes: Sequence[Node],
        *,
        timeout_s: float = CONNECT_S,
        links: Mapping[str, Link] | None = None,
        shared: str = "",
    ) -> None:
        self.nodes = tuple(nodes)
        self._transport, self._timeout_s, self._shared = transport, timeout_s, shared
        self._links: dict[str, Link] = dict(links or {})
        self._locks = {node.name: threading.Lock() for node in self.nodes}
        self._lent = False

    def part(self, nodes: Sequence[Node]) -> Fleet:
        """Return a fleet of some of the nodes. It uses the same links, and closing it leaves them open."""
        part = Fleet(self._transport, nodes, timeout_s=self._timeout_s, shared=self._shared)
        part._links, part._locks, part._lent = self._links, self._locks, True
        return part

    @property
    def is_connected(self) -> bool:
        """Return whether every node has a link that is still open, as far as this computer can tell."""
        links = [self._links.get(node.name) for node in self.nodes]
        return all(link is not None and link.alive for link in links)

    def describe_again(self, nodes: Sequence[Node]) -> None:
        """Replace the records of some nodes by more complete records of the same machines."""
        self.nodes = tuple(nodes)
        for node in self.nodes:
            if node.name in self._links:
                self._links[node.name].node = node

    def connect(self) -> list[Outcome[Link]]:
        """Connect to all nodes in parallel. Return one outcome for each node."""
        return self.do_on_each(lambda link: link)

    def do_on_each(self, task: Callable[[Link], T], nodes: Iterable[Node] | None = None) -> list[Outcome[T]]:
        """Call `task` for the link of every node (or of `nodes`) at the same time, and return one outcome per node. Connect to
        nodes that have no link yet."""
        return self.each_node(lambda node: task(self.link(node)), nodes)

    def each_node(self, task: Callable[[Node], T], nodes: Iterable[Node] | None = None) -> list[Outcome[T]]:
        """Call `task` for every node (or for `nodes`) at the same time, and return one outcome per node. The task requests its
        links itself, so it can replace one that is cut."""
        return do_on_each(self.nodes if nodes is None else tuple(nodes), task)

    def link(self, node: Node) -> Link:
        """Return the link to one node. If there is none or it is dead, make a new one. Raises UnreachableError."""
        with self._locks[node.name]:
            link = self._links.get(node.name)
            if link is None or not link.alive:
                if link is not None:
                    link.close()
                link = self._transport.connect(node, timeout_s=self._timeout_s, shared=self._shared)
                self._links[node.name] = link
            return link

    def drop(self, node: Node) -> None:
        """Close the link to one node, even if it seems alive. The next call of `link` makes a new one."""
        with self._locks[node.name]:
            if (link := self._links.pop(node.name, None)) is not None:
                link.close()

    def close(self) -> None:
        """Close every connection. Detached processes on the nodes keep running."""
        if self._lent:
            return
        for link in tuple(self._links.values()):
            link.close()
        self._links.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()


def do_on_each(nodes: Sequence[Node], task: Callable[[Node], T]) -> list[Outcome[T]]:
    """Call `task` for all nodes, at most AT_ONCE at the same time, and return one outcome per node. Ctrl-C ends this
    immediately.

    Errors that gpucourse expects become outcomes. Any other exception is a bug and is raised.
    """
    results = try_all([partial(task, node) for node in nodes], limit=AT_ONCE)
    return [
        Outcome(node=node, error=result) if isinstance(result, GpucourseError) else Outcome(node=node, value=result)
        for node, result in zip(nodes, results, strict=True)
    ]


def values(outcomes: Sequence[Outcome[T]]) -> list[T]:
    """Return the value of every node. If some nodes failed, raise one error that names each: "2 of 8 nodes failed: node3 ...,
    node7 ..."."""
    if failures := [outcome for outcome in outcomes if outcome.error is not None]:
        raise combine_errors(failures, of=len(outcomes))
    return [outcome.take() for outcome in outcomes]


def combine_errors(failures: Sequence[Outcome[T]], *, of: int) -> GpucourseError:
    """Return one error for the failed nodes, out of `of` nodes. Its class is the most serious class among their errors, and
    its hint comes from the first error of that class."""
    errors = [(outcome.node.label, outcome.error) for outcome in failures if outcome.error is not None]
    gravest = next((kind for kind in _GRAVITY if any(isinstance(error, kind) for _, error in errors)), GpucourseError)
    first = next(error for _, error in errors if isinstance(error, gravest))
    if len(errors) == 1 and of == 1:
        return first
    messages = "; ".join(error.with_subject(name) for name, error in errors[:8])
    remainder = f"; and {len(errors) - 8} more" if len(errors) > 8 else ""
    count = f"{len({name for name, _ in errors})} of {of} nodes failed: " if of > 1 else ""
    return gravest(f"{count}{messages}{remainder}", hint=first.hint, log=first.log)


_GRAVITY: tuple[type[GpucourseError], ...] = (
    NoAnswer,
    UnreachableError,
    InfrastructureError,
    StorageError,
    MissingError,
    ExerciseFailed,
    UsageError,
)
