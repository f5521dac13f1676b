"""Pages about several runs: runs side by side, sweeps, costs with receipts, and the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from gpucourse.context import Context
from gpucourse.course.report_plan import read_report_plan
from gpucourse.errors import GpucourseError
from gpucourse.figures.rows import drawable
from gpucourse.learning.pages.open_ import PageContent, SweepContent
from gpucourse.learning.pages.run_content import RunContent
from gpucourse.learning.pages.side_by_side import MAX_RUNS, Values, list_values, put_side_by_side
from gpucourse.learning.report import gather
from gpucourse.model.manifest import Exercise, Plot
from gpucourse.model.node import is_simulated
from gpucourse.model.report import LOCAL, Picture, Report
from gpucourse.ui.page.chart import draw_chart
from gpucourse.ui.page.frame import Frame
from gpucourse.ui.page.markup import File, format_moment, trust
from gpucourse.ui.page.overlay import ShownRun, draw_together
from gpucourse.ui.page.run_pages import describe_run, place_of
from gpucourse.ui.tables import Paragraph, View
from gpucourse.ui.views.cost import cost
from gpucourse.ui.views.lab import destroy_result
from gpucourse.ui.views.many import EVERY_VALUE, sweep_table
from gpucourse.ui.views.measured import grid_blocks

if TYPE_CHECKING:
    from gpucourse.labs.aws.cost import Cost


@dataclass
class ComparedRuns:
    """The newest runs of one exercise that measured something, the newest first. Older runs are only counted."""

    exercise: Exercise
    runs: list[tuple[ShownRun, Values]] = field(default_factory=list)
    left_out: int = 0

    def add(self, run: RunContent) -> None:
        """Add the next older run, or only count it if the maximum number of runs is reached."""
        if len(self.runs) < MAX_RUNS:
            plots = {plot.file: data for plot, data in replace(run, recorded={}).list_plots()}
            self.runs.append((ShownRun(record=run.record, plots=plots), list_values(run)))
        else:
            self.left_out += 1


def build_side_by_side(frame: Frame, compared: ComparedRuns) -> File:
    """Return the page that shows the runs of one exercise side by side, the oldest first."""
    runs = [replace(run, number=number) for number, (run, _) in enumerate(reversed(compared.runs))]
    return frame.render(
        "compare.html",
        f"compare/{compared.exercise.id}.html",
        current="runs.html",
        title=f"{compared.exercise.id} side by side",
        exercise=compared.exercise,
        in_exercise=compared.exercise.id,
        runs=[describe_run(run.record) for run in runs],
        left_out=compared.left_out,
        charts=list(draw_together(compared.exercise.plots, runs)),
        groups=put_side_by_side([values for _, values in reversed(compared.runs)]),
        simulated=LOCAL if any(is_simulated(run.record.mode) for run in runs) else "",
    )


def build_sweeps(frame: Frame, content: PageContent) -> File:
    """Return the page of all sweeps, each with its values, its table and its chart."""
    pages = {record.id: place_of(record) for record in content.records}
    return frame.render(
        "sweeps.html",
        "sweeps.html",
        title="Sweeps",
        sweeps=[_describe_sweep(item) for item in content.sweeps],
        pages=pages,
        damaged=content.damaged_sweeps,
    )


def build_costs(frame: Frame, content: PageContent, costs: Cost | None) -> File:
    """Return the page of costs, with the receipt of each destroy, the newest first."""
    nothing = View(blocks=[Paragraph("Nothing has cost money: no lab on AWS was ever deployed from here.")])
    views = [cost(costs) if costs else nothing]
    receipts = [
        {
            "stack": receipt.stack,
            "destroyed": format_moment(receipt.destroyed),
            "blocks": destroy_result([receipt], whole=True).blocks,
        }
        for receipt in reversed(content.receipts)
    ]
    return frame.render(
        "costs.html",
        "costs.html",
        title="Costs",
        crumbs=[],
        mode="",
        views=views,
        footer=(),
        receipts=receipts,
        damaged=content.damaged_receipts,
    )


def build_report(frame: Frame, context: Context) -> File:
    """Return the page of the final report, made from the runs that exist now, with charts in the page's style."""
    report, reason = _gather_report(context)
    chapters = report.chapters if report else ()
    return frame.render(
        "report.html",
        "report.html",
        title="Report",
        report=report,
        reason=reason,
        simulated=LOCAL if report and is_simulated(report.mode) else "",
        tables={chapter.id: [block for grid in chapter.grids for block in grid_blocks(grid)] for chapter in chapters},
        charts={
            chapter.id: [{"title": picture.title, "svg": trust(picture.svg), "notes": ""} for picture in chapter.pictures]
            for chapter in chapters
        },
    )


def _gather_report(context: Context) -> tuple[Report | None, str]:
    """Return the report, or the reason why there is none."""
    try:
        plan = read_report_plan(context.folders.modules)
        if plan is None:
            return None, "This course has no report."
        return gather(context, plan, context.settings.owner, _draw_picture), ""
    except GpucourseError as error:
        return None, error.what


def _draw_picture(plot: Plot, metrics: Mapping[str, Any], _subtitle: str) -> Picture:
    return Picture(title=plot.title, png=b"", svg=str(draw_chart(plot, drawable(plot, metrics))).encode())


def _describe_sweep(item: SweepContent) -> dict[str, object]:
    sweep = item.sweep
    title = f"{sweep.exercise}{f' {item.exercise.title}' if item.exercise else ''}, by {sweep.parameter}"
    chart = None
    if item.chart:
        plot, data = item.chart
        chart = {"title": "", "svg": draw_chart(plot, data), "notes": "; ".join(data.notes)}
    has_table = sweep.title != EVERY_VALUE and all(len(row) == len(sweep.columns) == len(sweep.numeric) for row in sweep.rows)
    return {
        "title": title,
        "about": f"{sweep.id} · {sweep.state} · {sweep.device} · mode: {sweep.mode}",
        "parameter": f"{sweep.parameter}{f' ({sweep.unit})' if sweep.unit else ''}",
        "points": sweep.points,
        "chart": chart,
        "tables": [sweep_table(sweep)] if has_table else [],
    }
