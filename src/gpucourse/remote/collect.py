"""Collect the outputs of a run from all nodes at the same time."""

from __future__ import annotations

import json
import stat
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from gpucourse.errors import NodeUntrusted, StorageError, UnreachableError
from gpucourse.model.event import NodeEvent, Watcher
from gpucourse.model.node import Node
from gpucourse.remote import jobs
from gpucourse.remote.exchange import Silent
from gpucourse.remote.execute import make_thread_safe, max_files_of
from gpucourse.remote.fleet import Fleet, combine_errors
from gpucourse.remote.patience import COLLECT_S, limit_time
from gpucourse.remote.unpack import OUTPUT_LIMIT, CollectedOutputs, MissingOutputs, OutputLimits, unpack
from gpucourse.storage import DiskSpace
from gpucourse.units import format_bytes
from gpucourse.workspace.files import refuse_links
from gpucourse.workspace.paths import RunPaths

_TRIES = 3


def collect(
    fleet: Fleet,
    run_id: str,
    globs: Sequence[str],
    paths: RunPaths,
    max_bytes: int,
    watcher: Watcher,
    *,
    output_limit: int = OUTPUT_LIMIT,
    until: float | None = None,
) -> CollectedOutputs:
    """Fetch the run's `outputs/`, and the files in its work folder that match `globs`, from all nodes at the same time, and
    return them.

    Unchanged files that are already here are not sent again. A file gets its final name only when it is complete, so even a
    power cut leaves no incomplete file under that name.

    `max_bytes`: the limit for one file.
    `output_limit`: the limit for all files of a node, in bytes. Their number is also limited (`max_files_of`).
    `until`: the time on the monotonic clock at which collecting ends in any case.

    The result names each file that exceeds a limit, and each node that cannot be reached, sends too slowly (see `patience`) or
    sends invalid data. Raises StorageError before the disk here is full.
    """
    tell, disk = make_thread_safe(watcher), DiskSpace()
    limits = OutputLimits(max_bytes=max_bytes, output_limit=output_limit, max_files=max_files_of(len(fleet.nodes)))

    def fetch_once(node: Node) -> CollectedOutputs:
        refuse_links(paths.node_outputs(node.name), paths.folder)
        have = _list_files(paths.node_outputs(node.name))
        request = json.dumps({"globs": list(globs), "have": have, **asdict(limits)}).encode()
        subject = f"{node.label}: collecting its outputs"
        with jobs.stream_verb(fleet.link(node), "pack", run_id, stdin=request) as pieces:
            timely_pieces = limit_time(subject, pieces, COLLECT_S, until=until)
            return unpack(node.name, timely_pieces, paths, limits, have=have, disk=disk)

    def fetch(node: Node) -> CollectedOutputs:
        start_s = time.monotonic()
        for tries_left in reversed(range(_TRIES)):
            try:
                collected = fetch_once(node)
                break
            except (NodeUntrusted, Silent):
                raise
            except UnreachableError:
                if not tries_left or (until is not None and time.monotonic() >= until):
                    raise
        size = format_bytes(sum(output.bytes for output in collected.outputs))
        detail = f"{len(collected.outputs)} file{'' if len(collected.outputs) == 1 else 's'}, {size}"
        tell(NodeEvent(node=node.name, step="collect", ok=True, seconds=time.monotonic() - start_s, detail=detail))
        return collected

    whole = CollectedOutputs()
    outcomes = fleet.each_node(fetch)
    if full := [outcome for outcome in outcomes if isinstance(outcome.error, StorageError)]:
        raise combine_errors(full, of=len(outcomes))
    for outcome in outcomes:
        if outcome.error is not None:
            whole.unreachable.append(MissingOutputs(node=outcome.node.name, error=outcome.error))
            tell(NodeEvent(node=outcome.node.name, step="collect", ok=False, seconds=0.0, detail=outcome.error.what))
            continue
        collected = outcome.take()
        whole.outputs += collected.outputs
        whole.refused += collected.refused
        whole.environments |= collected.environments
    return whole


def _list_files(root: Path) -> dict[str, list[int]]:
    """Return the size and the modification time of every file that is already here."""
    sizes: dict[str, list[int]] = {}
    for path in root.rglob("*") if root.is_dir() else ():
        info = path.lstat()
        if stat.S_ISREG(info.st_mode):
            sizes[path.relative_to(root).as_posix()] = [info.st_size, info.st_mtime_ns]
    return sizes
