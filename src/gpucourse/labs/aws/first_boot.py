"""Watch the first boot of a node over SSH: its current step, its result, and its log if it failed."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from gpucourse.context import Context
from gpucourse.errors import InfrastructureError, Interrupted, NodeUntrusted, OtherHostKey, UnreachableError
from gpucourse.model.event import NodeEvent, ResourceEvent, Watcher
from gpucourse.model.node import Node
from gpucourse.outside import OutsideError
from gpucourse.outside.documents import parse_typed
from gpucourse.outside.names import printable
from gpucourse.remote.patience import ANSWER_S

if TYPE_CHECKING:
    from gpucourse.ports import Link
    from gpucourse.remote.fleet import Fleet

PATIENCE_S, PAUSE_S = 1200.0, 3.0
_LOST_LOOKS = 5
_MAX_TEXT = 4000
_PROBLEMS = {"failed": "the set-up failed", "silent": "the set-up left no message"}
# One answer: a word, then its details. cloud-init is queried only if the course's set-up left no mark.
_LOOK = """
state="${GPUCOURSE_NODE_ROOT:-}/var/lib/gpucourse"
echo "${GPUCOURSE_NODE_ROOT:+simulated}"
if [ -s "$state/ready" ]; then echo ready; cat "$state/ready"
elif [ -e "$state/failed" ]; then echo failed; cat "$state/failed"
elif [ -s "$state/step" ]; then echo step; cat "$state/step"
elif [ -e /var/lib/cloud/instance/boot-finished ]; then
  echo silent; cloud-init status --long 2>&1; tail -n 20 /var/log/cloud-init-output.log 2>&1
else echo step; echo "cloud-init"
fi
"""


@dataclass(frozen=True, kw_only=True)
class BootMark:
    """The GPUs and the driver that a node reports once it is set up.

    `simulated`: the node is a stand-in without the hardware of its instance type.
    """

    gpus: list[str] = field(default_factory=list)
    driver: str | None = None
    simulated: bool = False


def wait(context: Context, fleet: Fleet, *, patience_s: float = PATIENCE_S, pause_s: float = PAUSE_S) -> dict[str, BootMark]:
    """Wait until every node has set itself up; return each node's report, by node name.

    Query each node every `pause_s` seconds, for at most `patience_s` seconds. Raises InfrastructureError with the end of the
    log if a node fails, or is not ready in time.
    """
    from gpucourse.remote.fleet import values

    marks = values(fleet.each_node(lambda node: _wait(context, fleet, node, patience_s, pause_s)))
    return {node.name: mark for node, mark in zip(fleet.nodes, marks, strict=True)}


def _wait(context: Context, fleet: Fleet, node: Node, patience_s: float, pause_s: float) -> BootMark:
    start_s = since = time.monotonic()
    at = ""
    while True:
        simulated, word, text = _look(context.stop, fleet, node, pause_s)
        now = time.monotonic()
        step = printable(text.strip(), 80) if word == "step" else ""
        if step != at:
            if at:
                _tell(context.watch, node, at, "done", now - since)
            if step:
                _tell(context.watch, node, step, "started", 0.0)
            at, since = step, now
        if word == "ready":
            mark = replace(_parse_mark(text), simulated=simulated)
            context.watch(NodeEvent(node=node.name, step="set up", ok=True, seconds=now - start_s, detail=_summary(mark)))
            return mark
        if word in {"failed", "silent"} or now - start_s > patience_s:
            detail = text.strip()[-_MAX_TEXT:] or f"still at the step '{at}' after {now - start_s:.0f} s"
            context.watch(
                NodeEvent(node=node.name, step="set up", ok=False, seconds=now - start_s, detail=detail.split("\n")[0])
            )
            problem = _PROBLEMS.get(word, "not set up in time")
            raise InfrastructureError(
                f"{node.name}: {problem}\n{detail}",
                hint=f"the whole log: gpucourse ssh MODULE --node {node.name} -- cat /var/log/gpucourse-setup.log",
            )
        if context.stop.wait(pause_s):
            raise Interrupted("stopped while the nodes set themselves up")


def _look(stop: threading.Event, fleet: Fleet, node: Node, pause_s: float) -> tuple[bool, str, str]:
    """Return a node's marks. If the connection is lost during a busy boot, reopen it, at most five times in a row."""
    for _attempt in range(_LOST_LOOKS):
        try:
            return _read_mark(fleet.link(node))
        except (OtherHostKey, NodeUntrusted):
            raise
        except (UnreachableError, InfrastructureError) as error:
            fleet.drop(node)
            if stop.wait(pause_s):
                raise Interrupted("stopped while the nodes set themselves up") from error
    return _read_mark(fleet.link(node))


def _read_mark(link: Link) -> tuple[bool, str, str]:
    """Return whether the node is simulated, the state of its set-up as a word, and the details."""
    result = link.run(_LOOK, timeout_s=ANSWER_S)
    simulated, _, body = result.stdout.decode(errors="replace").partition("\n")
    word, _, text = body.partition("\n")
    if not result.ok or not word:
        raise InfrastructureError(
            f"{link.node.name} does not report its set-up progress: {result.stderr.decode(errors='replace').strip()[-300:]}",
            hint="type gpucourse deploy again",
        )
    return simulated == "simulated", word, text[-_MAX_TEXT:]


def _parse_mark(text: str) -> BootMark:
    try:
        return parse_typed(text, BootMark, max_bytes=_MAX_TEXT)
    except OutsideError:
        return BootMark()


def _summary(mark: BootMark) -> str:
    parts = [f"{len(mark.gpus)} x {mark.gpus[0]}" if mark.gpus else "", f"driver {mark.driver}" if mark.driver else ""]
    return printable(", ".join(filter(None, parts)))


def _tell(watch: Watcher, node: Node, step: str, state: Literal["started", "done"], seconds: float) -> None:
    watch(ResourceEvent(address=f"{node.name}: {step}", action="set-up", state=state, seconds=seconds))
