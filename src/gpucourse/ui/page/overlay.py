"""Draw several runs of one exercise in one chart: choose the runs, and read their points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from gpucourse.figures.rows import Drawable
from gpucourse.learning.pages.run_content import RunReader
from gpucourse.model.record import RunRecord
from gpucourse.ui.page.chart import OtherRun, draw_chart
from gpucourse.ui.page.markup import format_moment
from gpucourse.ui.text import format_count
from gpucourse.ui.views.plan import parameters

if TYPE_CHECKING:
    from markupsafe import Markup

    from gpucourse.model.manifest import Plot

MAX_OTHERS = 4
"""The maximum number of runs that a reader can add to the charts of a run; the newest of the exercise are offered."""

MAX_READ = 20  # the maximum number of runs whose measurements are read to find them


@dataclass(frozen=True, kw_only=True)
class ShownRun:
    """A run with its points for each plot, by the plot's file. `number` selects its colour and its dashes."""

    record: RunRecord
    plots: Mapping[str, Drawable]
    number: int = 0

    @property
    def word(self) -> str:
        """Return the last word of the run's id, which stands for the run on the page."""
        return self.record.id.rpartition("-")[2]

    def describe(self, other: RunRecord) -> str:
        """Return when the run began, in UTC, then the number of its ranks and its parameters if they differ from the other
        run's."""
        start = format_moment(self.record.created)
        ranks = "" if self.record.rank_count == other.rank_count else format_count(self.record.rank_count, "rank")
        other_parameters = {
            name: value for name, value in self.record.parameters.items() if other.parameters.get(name) != value
        }
        return ", ".join(filter(None, (start, ranks, parameters(other_parameters))))


class NewestRuns:
    """For each exercise, the newest runs that have values for a plot, without drills. Each run is read only once."""

    def __init__(self, records: Sequence[RunRecord], reader: RunReader) -> None:
        self._reader = reader
        self._records: dict[str, list[RunRecord]] = {}
        for record in reversed(records):
            if not record.own_script and not record.drill:
                self._records.setdefault(record.exercise, []).append(record)
        self._newest: dict[str, list[ShownRun]] = {}

    def list_others(self, record: RunRecord) -> list[ShownRun]:
        """Return the runs that can be added to the charts of this run, the newest first."""
        if record.own_script:
            return []
        if record.exercise not in self._newest:
            self._newest[record.exercise] = list(islice(self._read(record.exercise), MAX_OTHERS + 1))
        other_runs = [run for run in self._newest[record.exercise] if run.record.id != record.id]
        return [replace(run, number=number) for number, run in enumerate(other_runs[:MAX_OTHERS], 1)]

    def _read(self, exercise: str) -> Iterator[ShownRun]:
        for record in self._records.get(exercise, [])[:MAX_READ]:
            if plots := self._reader.read_plots(record):
                yield ShownRun(record=record, plots=plots)


def draw_over(plot: Plot, data: Drawable, other_runs: Sequence[ShownRun], *, number: int = 0, together: bool = False) -> Markup:
    """Return the chart of a run with the points of the other runs over it, hidden unless `together`."""
    runs = [OtherRun(run.number, run.word, run.plots[plot.file]) for run in other_runs if plot.file in run.plots]
    return draw_chart(plot, data, runs, number=number, together=together)


def draw_together(plots: Sequence[Plot], runs: Sequence[ShownRun]) -> Iterator[dict[str, object]]:
    """Yield one chart with all runs for each plot for which at least two runs have points."""
    for plot in plots:
        runs_with_points = [run for run in runs if plot.file in run.plots]
        if len(runs_with_points) > 1:
            first, *other_runs = runs_with_points
            svg = draw_over(plot, first.plots[plot.file], other_runs, number=first.number, together=True)
            yield {"title": plot.title, "svg": svg, "notes": ""}
