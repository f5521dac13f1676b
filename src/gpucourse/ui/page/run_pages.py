"""The pages of runs: the list, and one page for each run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from gpucourse.grading.edits import FileEdit
from gpucourse.learning.pages.run_content import LogExcerpt, RunContent
from gpucourse.limits import MAX_NODES
from gpucourse.model.node import is_simulated
from gpucourse.model.record import RunRecord
from gpucourse.model.report import LOCAL
from gpucourse.model.verdict import ExerciseVerdict
from gpucourse.outside.names import printable
from gpucourse.ui.fold import fold
from gpucourse.ui.page.frame import Frame, Link
from gpucourse.ui.page.logs import describe_process, merge_logs
from gpucourse.ui.page.markup import File, format_moment
from gpucourse.ui.page.overlay import ShownRun, draw_over
from gpucourse.ui.tables import Block, Cell, Content, Table, facts, number_column, table
from gpucourse.ui.text import clean_line, format_count
from gpucourse.ui.views.answers import prediction_result
from gpucourse.ui.views.checks import checks
from gpucourse.ui.views.measured import grid_blocks
from gpucourse.ui.views.parts import list_run_parts
from gpucourse.ui.views.plan import parameters
from gpucourse.ui.views.result import format_duration
from gpucourse.ui.views.run import diagnoses, failure, note, summary
from gpucourse.ui.views.words import checks_cell, describe_drill, state_cell, verdict_cell
from gpucourse.units import format_bytes, format_seconds, seconds_since

MAX_FOLDED_BYTES = 256 << 10
"""If all logs together have at most this many bytes, they are also shown folded: a line that several ranks wrote appears once.
Incomplete logs are not folded.
"""

PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_DIFF_STYLES = {"+": "good", "-": "bad", "@": "dim"}
MAX_FACTS, MAX_FACT_LENGTH = 200, 300


def place_of(record: RunRecord) -> str:
    """Return the file of a run's page."""
    return f"runs/{_make_safe(record.subject)}/{_make_safe(record.id)}.html"


def _make_safe(name: str) -> str:
    """Return the name if it is plain, otherwise its digest, because a name from outside may contain characters that have a
    meaning in a URL."""
    return name if PLAIN_NAME.fullmatch(name) else sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


def list_runs(records: Sequence[RunRecord]) -> list[dict[str, object]]:
    """Return the rows of a table of runs, the newest first."""
    return [describe_run(record) for record in reversed(records)]


def build_run_list(frame: Frame, records: Sequence[RunRecord], damaged: Sequence[str]) -> File:
    """Return the page with all runs. `damaged`: a sentence for each record that cannot be read."""
    return frame.render("runs.html", "runs.html", title="Runs", runs=list_runs(records), damaged=damaged)


def build_run(
    content: RunContent,
    frame: Frame,
    *,
    around: tuple[Link | None, Link | None] = (None, None),
    others: Sequence[ShownRun] = (),
) -> File:
    """Return the page of one run. `around` has the previous and the next run, `others` the runs that its charts can also
    show."""
    record, exercise = content.record, content.exercise
    plots = list(content.list_plots())
    return frame.render(
        "run.html",
        place_of(record),
        current="runs.html",
        title=f"{record.subject} {exercise.title if exercise else ''}".strip(),
        record=record,
        exercise=exercise,
        in_exercise=exercise.id if exercise else "",
        around=around,
        others=[run for run in others if any(plot.file in run.plots for plot, _ in plots)],
        simulated=LOCAL if is_simulated(record.mode) else "",
        trouble=content.trouble,
        progress="" if record.has_ended else f"{describe_run_state(record)}, {format_seconds(seconds_since(record.created))}",
        summary=_summarize(record),
        prediction=prediction_result(content.prediction) if content.prediction else [],
        charts=[
            {
                "title": plot.title,
                "svg": draw_over(plot, data, others),
                "notes": "; ".join([*data.notes, *([data.caption] if data.caption else [])]),
            }
            for plot, data in plots
        ],
        tables=[block for grid in content.list_tables() for block in grid_blocks(grid)],
        checks=_list_checks(content.verdict) if content.verdict else [],
        parts=list_run_parts(exercise, content.verdict.parts, {}, content.changed_files)
        if exercise and content.verdict
        else [],
        edits=[_describe_edit(edit) for edit in content.edits],
        processes=[describe_process((log.node, log.rank)) for log in content.logs],
        log_lines=merge_logs(record.id, content.logs),
        folded=_fold_logs(content.logs),
        logs_left_out=content.logs_left_out,
        environment=_describe_environment(content.environment),
        left=_list_files(content),
    )


def describe_run_state(record: RunRecord) -> str:
    """Return the state of a run that is under way, and where it runs: `running, 4 ranks on 2 nodes`."""
    nodes = "" if record.slurm else f" on {format_count(record.node_count, 'node')}"
    return f"{record.state}, {format_count(record.rank_count, 'rank')}{nodes}"


def describe_run(record: RunRecord) -> dict[str, object]:
    """Return a run as a row of a table: the path of its page, and the contents of the columns."""
    return {
        "place": place_of(record),
        "id": record.id,
        "word": record.id.rpartition("-")[2],
        "subject": record.subject,
        "state": state_cell(record),
        "checks": _show_checks(record),
        "ranks": record.rank_count,
        "took": format_duration(record),
        "began": format_moment(record.created),
        "parameters": parameters(record.parameters),
        "note": note(record),
    }


def _show_checks(record: RunRecord) -> Content:
    """Return the result of a run's checks or of its drill, or an empty string if it has neither."""
    return checks_cell(record) if record.shown_verdict or (record.drill and record.has_ended) else ""


def _summarize(record: RunRecord) -> list[Block]:
    """Return the summary of a run: its result, when and where it ran, and how long each phase took."""
    about = [
        ("warning", Cell(record.split_world or "", "warn")),
        *summary(record).pairs,
        ("fault" if record.drill else "checks", _show_checks(record)),
        ("began", f"{format_moment(record.created)} UTC"),
        ("lab", f"{record.stack} (mode: {record.mode})"),
        ("drill", describe_drill(record)),
        ("profiler", "it ran under the profiler, so it earns no points" if record.profiled else ""),
        ("phases", ", ".join(f"{name} {format_seconds(length)}" for name, length in record.phases_s.items())),
        ("gpucourse", record.gpucourse),
    ]
    return [facts(about), failure(record), *([] if record.drill else diagnoses(record.diagnoses))]


def _list_checks(verdict: ExerciseVerdict) -> list[Block]:
    """Return the checks as a screen shows them, with each verdict as a word next to its sign."""
    check_table, hints = checks(verdict)
    rows = [[verdict_cell(check.verdict), *row[1:]] for check, row in zip(verdict.checks, check_table.rows, strict=True)]
    return [table(["result", *check_table.columns[1:]], rows), hints]


def _describe_edit(edit: FileEdit) -> dict[str, object]:
    """Return a file that the learner changed: each line of the diff with its style."""
    counts = "" if edit.added is None else f"{edit.added} added, {edit.removed} removed"
    return {
        "file": edit.file,
        "about": ", ".join(word for word in ("your part" if edit.part else "the course's script", counts) if word),
        "lines": [
            (clean_line(line), _DIFF_STYLES.get(line[:1], "") if index > 1 else "dim") for index, line in enumerate(edit.lines)
        ],
        "note": edit.note,
    }


def _fold_logs(logs: Sequence[LogExcerpt]) -> str:
    ranks = {log.rank: log.begin for log in logs if log.rank is not None}
    if len(ranks) < 2 or any(log.end for log in logs) or sum(map(len, ranks.values())) > MAX_FOLDED_BYTES:
        return ""
    return "".join(fold({rank: [data] for rank, data in ranks.items()})).removesuffix("\n")


def _describe_environment(nodes: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return a table with one column per node and one row per fact."""
    first_nodes = dict(list(nodes.items())[:MAX_NODES])
    flat = {node: dict(_flatten(facts_of)) for node, facts_of in first_nodes.items()}
    names = list(dict.fromkeys(name for facts_of in flat.values() for name in facts_of))[:MAX_FACTS]
    columns = ["", *(printable(node, MAX_FACT_LENGTH) for node in flat)]
    return table(columns, [[name, *(facts_of.get(name, "") for facts_of in flat.values())] for name in names])


def _flatten(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        key = printable(f"{prefix}{name}".replace("_", " "), MAX_FACT_LENGTH)
        if isinstance(value, dict) and not prefix:
            yield from _flatten(value, f"{name} ")
        elif value not in (None, [], {}, ""):
            text = format_bytes(value) if key.endswith("bytes") and isinstance(value, int) else str(value)
            yield key.removesuffix(" bytes"), printable(text, MAX_FACT_LENGTH)


def _count_collected(record: RunRecord, row_count: int) -> str:
    """Return the title of the table of outputs. If not all files are shown, it says how many are."""
    count, _ = record.output_totals
    return "Collected" if count <= row_count else f"Collected: the first {row_count} of {count} files"


def _list_files(content: RunContent) -> list[Block]:
    record = content.record
    rows = [(item.node, item.path, format_bytes(item.bytes)) for item in record.outputs[:MAX_FACTS]]
    refusals = [(item.node, item.name, item.reason) for item in record.refused[:MAX_FACTS]]
    return [
        facts([("folder", str(content.files.folder))], title="Files"),
        table(["node", "file", number_column("size")], rows, title=_count_collected(record, len(rows))),
        table(["node", "file", "reason"], refusals, title="Not collected"),
    ]
