"""Measurements on a GPU in `exercises/recorded/`, which `python -m benchmarks gpu` writes. Only the data for plots is read
here.

The records are part of the course, and anyone may write a course. So files are limited in size, their types are checked, and an
invalid file is not used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpucourse.model.manifest import Exercise, Plot
from gpucourse.outside.documents import convert, parse_json
from gpucourse.outside.files import file_inside, read_bounded
from gpucourse.outside.names import OutsideError, is_shown, printable

FORMAT = 2
FOLDER = "recorded"
MAX_ROWS = 500
"""The maximum number of rows of one plot in a record."""

_MAX_RECORDS, _MAX_BYTES, _MAX_VERSIONS, _MAX_NAME = 16, 2 << 20, 8, 80
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, kw_only=True)
class _PlotRecord:
    """One plot of an exercise: its rows, and its axes and keys when it was recorded."""

    axes: dict[str, str | None]
    keys: list[str]
    rows: list[dict[str, int | float | str | bool | None]]


@dataclass(frozen=True, kw_only=True)
class _ExerciseRecord:
    """The plots in the record of an exercise, by file."""

    plots: dict[str, _PlotRecord]


@dataclass(frozen=True, kw_only=True)
class _GpuRecord:
    """The data of a record that plots need.

    `gpu`: the GPU's name according to its driver.
    `date`: in UTC.
    `versions`: by the name of the program.
    `exercises`: by number.
    """

    gpu: str
    date: str
    versions: dict[str, str | None]
    exercises: dict[str, _ExerciseRecord]

    @property
    def caption(self) -> str:
        """Return one line with the date of the measurement and the versions used."""
        return f"recorded {self.date}: " + ", ".join(f"{name} {text}" for name, text in self.versions.items() if text)


def describe_axes(plot: Plot) -> dict[str, str | None]:
    """Return the properties in which two plots must agree to share axes: the kind, the keys of x and of the lines, and the
    titles."""
    return {"kind": plot.kind, "x": plot.x, "by": plot.by, "x_title": plot.x_title, "y_title": plot.y_title}


def list_keys(plot: Plot) -> list[str]:
    """Return the keys of a plot's values, in the order of its series."""
    return [series.key for series in plot.series]


def name_file(gpu: str) -> str:
    """Return the name of the file with the record of a GPU."""
    return re.sub(r"[^a-z0-9]+", "-", gpu.lower()).strip("-") + ".json"


def list_files(exercises: Path) -> list[str]:
    """Return the names of the files in `exercises/recorded/` that should be records."""
    return sorted(path.name for path in (exercises / FOLDER).glob("*.json"))


def find_recorded_plots(
    exercises: Path, exercise: Exercise, warn: Callable[[str], None]
) -> dict[str, tuple[_GpuRecord, _PlotRecord]]:
    """Return the recorded plots of an exercise, by the plot's file. Each comes from the newest record with the same axes and
    keys. `exercises` is the course's folder of that name. `warn` is called for each unusable record.
    """
    plots: dict[str, tuple[_GpuRecord, _PlotRecord]] = {}
    for record in sorted(_read_records(exercises, warn), key=lambda record: record.date):
        entry = record.exercises.get(exercise.id)
        for plot in exercise.plots if entry else ():
            plot_record = entry.plots.get(plot.file) if entry else None
            if plot_record and (plot_record.axes, plot_record.keys) == (describe_axes(plot), list_keys(plot)):
                plots[plot.file] = (record, plot_record)
    return plots


def _read_record(exercises: Path, name: str) -> _GpuRecord:
    """Read a record from `exercises/recorded/`. Raises OutsideError if `benchmarks` cannot have written the record, and
    OSError if the file cannot be read."""
    document = parse_json(read_bounded(file_inside(exercises, f"{FOLDER}/{name}"), _MAX_BYTES))
    version = document.get("format") if isinstance(document, dict) else None
    if version != FORMAT:
        raise OutsideError(f"its format is {version!r}, and this program reads {FORMAT}")
    record = convert(document, _GpuRecord)
    _check(record, name)
    return record


def _read_records(exercises: Path, warn: Callable[[str], None]) -> Iterator[_GpuRecord]:
    """Yield every usable record of the course. For every other record, call `warn` with `file: reason`."""
    names = list_files(exercises)
    if len(names) > _MAX_RECORDS:
        warn(f"{FOLDER}/: of {len(names)} records only the first {_MAX_RECORDS} are read")
    for name in names[:_MAX_RECORDS]:
        try:
            yield _read_record(exercises, name)
        except (OutsideError, OSError) as error:
            warn(f"{FOLDER}/{printable(name, 80)}: cannot be used: {error}")


def find_faulty_records(exercises: Path) -> list[str]:
    """Return one message, `file: reason`, for each unusable record of the course."""
    complaints: list[str] = []
    list(_read_records(exercises, complaints.append))
    return complaints


def _check(record: _GpuRecord, name: str) -> None:
    """Check the names, the date and the numbers of rows. Raises OutsideError if `benchmarks` cannot have written the record."""
    texts = [record.gpu, *record.versions, *(version for version in record.versions.values() if version)]
    if not record.gpu.strip() or any(len(text) > _MAX_NAME or not is_shown(text) for text in texts):
        raise OutsideError("the name of its GPU or of a version is empty, too long or unprintable")
    if name != name_file(record.gpu):
        raise OutsideError(f"it is about {record.gpu}, whose file is {name_file(record.gpu)}")
    if not _DATE.fullmatch(record.date):
        raise OutsideError(f"{record.date!r} is not a date")
    if len(record.versions) > _MAX_VERSIONS:
        raise OutsideError(f"it has more than {_MAX_VERSIONS} versions")
    rows: list[list[Any]] = [plot.rows for entry in record.exercises.values() for plot in entry.plots.values()]
    if any(len(plot_rows) > MAX_ROWS for plot_rows in rows):
        raise OutsideError(f"a plot has more than {MAX_ROWS} rows")
