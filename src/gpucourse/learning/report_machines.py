"""The machines of a report: the hardware and software of the nodes on which its runs were measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from gpucourse.errors import GpucourseError
from gpucourse.learning.pages.run_content import read_nodes
from gpucourse.model.record import RunRecord
from gpucourse.model.report import MACHINES, Chapter
from gpucourse.report.grids import NOTHING, make_grid, number
from gpucourse.units import format_bytes
from gpucourse.workspace.files import read_json
from gpucourse.workspace.paths import WorkspacePaths

_TITLES = ("device", "processor", "cores", "memory", "operating system", "Python", "PyTorch", "CUDA")


def describe_machines(paths: WorkspacePaths, runs: Iterable[tuple[RunRecord, Mapping[str, Any]]]) -> Chapter:
    """Return a chapter with one row for each different machine of these runs, each with its metrics. What a run did not record
    is missing in its row."""
    rows = dict.fromkeys(row for record, metrics in runs for row in _describe_nodes(paths, record, metrics))
    grid = make_grid("Hardware and software of the nodes", _TITLES, list(rows), [title == "cores" for title in _TITLES])
    grid = replace(grid, note="")
    return Chapter(id=MACHINES, title="Machines", text="The runs of this report used these machines.", grids=(grid,))


def _describe_nodes(paths: WorkspacePaths, record: RunRecord, metrics: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    try:
        environment = read_json(paths.run(record.folder, record.id).environment)
    except GpucourseError:  # the table has what the metrics say
        environment = None
    for node in read_nodes(environment).values() or [{}]:
        memory = node.get("memory_bytes")
        yield (
            number(metrics.get("device"), None),
            number(node.get("cpu"), None),
            number(node.get("cores") or metrics.get("cores"), None),
            format_bytes(memory) if isinstance(memory, int) else NOTHING,
            number(node.get("os"), None),
            number(metrics.get("python"), None),
            number(metrics.get("torch"), None),
            number(metrics.get("cuda"), None),
        )
