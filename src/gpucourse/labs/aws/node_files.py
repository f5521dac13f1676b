"""The small files on a node that decide when it ends: the deadline, the hold, and the idle agent's last report."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpucourse.errors import InfrastructureError
from gpucourse.model.cloud import Idle
from gpucourse.outside import OutsideError
from gpucourse.outside.documents import parse_typed
from gpucourse.outside.names import printable

if TYPE_CHECKING:
    from gpucourse.ports import Link

FOLDER = '"${GPUCOURSE_NODE_ROOT:-}/var/lib/gpucourse"'
_MAX_BYTES = 1 << 16
# Root owns the folder on a node. A new file is renamed into place, so that the watcher never reads half a number.
_WRITE = "cd {folder} && if [ -w . ]; then sh -c {script}; else sudo -n sh -c {script}; fi"


def write(link: Link, name: str, text: str) -> None:
    """Write one of the files. Raises InfrastructureError with the node's message, UnreachableError."""
    _change(link, name, f"printf '%s\\n' {shlex.quote(text)} >{name}.new && mv {name}.new {name}", "written")


def remove(link: Link, name: str) -> None:
    """Remove one of the files, if it exists. Raises the errors of `write`."""
    _change(link, name, f"rm -f {name}", "removed")


def _change(link: Link, name: str, script: str, verb: str) -> None:
    result = link.run(_WRITE.format(folder=FOLDER, script=shlex.quote(script)), timeout_s=20.0)
    if not result.ok:
        message = printable(result.stderr.decode("utf-8", "replace").strip().split("\n")[-1])
        raise InfrastructureError(f"{link.node.name}: its {name} could not be {verb}: {message}", hint="gpucourse status")


def idle(link: Link) -> Idle | None:
    """Return the last report of the idle agent, or None if there is none yet."""
    result = link.run(f"cat {FOLDER}/idle.json", timeout_s=5.0)
    try:
        report = parse_typed(result.stdout, _IdleReport, max_bytes=_MAX_BYTES)
    except OutsideError:
        return None
    busy = tuple(printable(reason) for reason in report.busy)
    return Idle(node=link.node.name, seen_at=report.now, busy=busy, ends_at=report.ends_at)


@dataclass(frozen=True, kw_only=True)
class _IdleReport:
    """The content of `idle.json`, which the idle agent writes."""

    now: float
    busy: list[str] = field(default_factory=list)
    ends_at: float | None = None
