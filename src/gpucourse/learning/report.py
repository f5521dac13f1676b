"""`report`: the final project, made from the learner's own runs and words. Missing items are named."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from gpucourse.context import Context
from gpucourse.course.answer_sheet import load_sheet
from gpucourse.course.report_plan import FILE, read_report_plan
from gpucourse.errors import GpucourseError, MissingError
from gpucourse.figures.fonts import font_files, fonts_for
from gpucourse.figures.several_runs import side_by_side
from gpucourse.grading import values
from gpucourse.grading.checks import is_gpu_evidence
from gpucourse.learning.calibration import DrawPicture, draw_calibration, draw_files, draw_or_warn
from gpucourse.learning.evidence import read_run_evidence
from gpucourse.learning.pages.run_content import read_nodes
from gpucourse.model.event import Note, Watcher
from gpucourse.model.manifest import Exercise, Plot
from gpucourse.model.node import SIMULATED, is_simulated
from gpucourse.model.record import RunRecord
from gpucourse.model.report import MACHINES, Chapter, Picture, Report, Saying
from gpucourse.model.report_plan import SUBJECTS, Figure, ReportChapter, ReportPlan
from gpucourse.report import grids, html, markdown
from gpucourse.storage import write_bytes
from gpucourse.units import format_bytes, now_utc
from gpucourse.workspace import runs
from gpucourse.workspace.files import read_json
from gpucourse.workspace.paths import WorkspacePaths

Format = Literal["html", "pdf", "md"]
GOOD = frozenset({"passed", "not_measured"})
MACHINE_TITLES = ("device", "processor", "cores", "memory", "operating system", "Python", "PyTorch", "CUDA")


@dataclass(frozen=True, kw_only=True)
class ReportResult:
    """The report, and the files that contain it."""

    report: Report
    files: tuple[Path, ...]


@dataclass(frozen=True)
class Subject:
    """A subject of the comparison: a GPU, or a GPU with a model. `record` is the run that represents it."""

    record: RunRecord
    metrics: Mapping[str, Any]
    device: str
    gpu: bool


def report(context: Context, formats: tuple[Format, ...], author: str) -> ReportResult:
    """Make the report, write it to `deliverables/final/` in these formats, and return it.

    Raises MissingError if no chapter has a run yet, ManifestError if the plan has errors, and StorageError if a file cannot be
    written.
    """
    plan = read_report_plan(context.folders.modules)
    if plan is None:
        place = context.folders.modules / FILE
        raise MissingError(f"this course has no report: there is no {place}", hint="docs/authoring.md says what it contains")
    content = gather(context, plan, author)
    if not content.subjects:  # predictions alone make no report of benchmarks
        exercises = ", ".join(dict.fromkeys(chapter.exercise for chapter in plan.chapters))
        first = plan.chapters[0].exercise
        raise MissingError(
            f"there is nothing to report yet: no good run of {exercises}",
            hint=f"gpucourse deploy {first.partition('.')[0]}, then gpucourse run {first}; "
            "about everything that you did: gpucourse report --of course",
        )
    return ReportResult(report=content, files=tuple(_write(context, content, formats)))


def gather(context: Context, plan: ReportPlan, author: str, draw: DrawPicture | None = None) -> Report:
    """Return the report from the current runs, without writing it. `draw` draws the pictures; the default uses matplotlib."""
    subjects = {chapter.id: _subjects(context, chapter) for chapter in plan.chapters}
    everyone = [subject for by_name in subjects.values() for subject in by_name.values()]
    answers = _answers(context, plan)
    with tempfile.TemporaryDirectory(prefix="gpucourse-report-") as folder:
        draw = draw or partial(draw_files, Path(folder))
        chapters = (
            *((_describe_machines(context.paths, everyone),) if everyone else ()),
            *(_chapter(context, chapter, subjects[chapter.id], answers, draw) for chapter in plan.chapters),
            *draw_calibration(context, draw),
        )
    return Report(
        title=plan.title,
        author=author,
        course=plan.course,
        abstract=_abstract(plan, subjects, chapters) if everyone else "",
        made=now_utc()[:10],
        mode=SIMULATED
        if any(is_simulated(subject.record.mode) for subject in everyone)
        else everyone[0].record.mode
        if everyone
        else "",
        subjects=tuple(dict.fromkeys(subject.device for subject in everyone)),
        chapters=chapters,
        missing=tuple(_find_shortages(plan, everyone)),
    )


def _subjects(context: Context, chapter: ReportChapter) -> dict[str, Subject]:
    """Return the newest good run of each subject of a chapter, by the subject's name."""
    subjects: dict[str, Subject] = {}
    records, errors = runs.readable(context.paths, chapter.exercise)
    for error in errors.values():
        context.watch(Note(text=f"left out: {error.what}", level="warning"))
    for record in records:
        if not record.is_evidence or record.drill or record.verdict not in GOOD:
            continue
        try:
            metrics = read_run_evidence(context.paths, record)[0]["metrics"]
        except GpucourseError as error:
            context.watch(Note(text=f"left out: run {record.id}: {error.what}", level="warning"))
            continue
        device = str(metrics.get("device") or "device unknown")
        name = f"{device}, {record.parameters.get(chapter.by)}" if chapter.by else device
        subjects.pop(name, None)  # the newest run comes last
        subjects[name] = Subject(record, metrics, device, is_gpu_evidence(metrics, record.mode))
    newest = max(subjects, key=lambda name: subjects[name].record.created, default=None)
    return {newest: subjects[newest]} if chapter.newest and newest else subjects


def _chapter(
    context: Context,
    chapter: ReportChapter,
    subjects: Mapping[str, Subject],
    answers: Mapping[str, str],
    draw: DrawPicture,
) -> Chapter:
    _module, exercise = context.catalog.exercise(chapter.exercise)
    sayings = tuple(
        Saying(title=prompt.title, question=prompt.question, text=answers.get(f"{exercise.id} {prompt.question}", ""))
        for prompt in chapter.words
    )
    missing = [f"your words on: {prompt.title}. `gpucourse answer {exercise.id}`" for prompt in sayings if not prompt.text]
    if not subjects:
        missing.insert(0, f"a good run of {exercise.id}, {exercise.title}. `gpucourse run {exercise.id}`")
        return Chapter(id=chapter.id, title=chapter.title, text=chapter.text, sayings=sayings, missing=tuple(missing))
    metrics = {name: subject.metrics for name, subject in subjects.items()}
    numbers = {name: {figure.id: _value(figure, subject) for figure in chapter.figures} for name, subject in subjects.items()}
    tables = [table for table in exercise.tables if table.title in chapter.tables]
    key_figures = grids.comparison(f"{exercise.title}: key figures", chapter.figures, numbers)
    compared_numbers = [{"subject": name, **figures} for name, figures in numbers.items()]
    return Chapter(
        id=chapter.id,
        title=chapter.title,
        text=chapter.text,
        grids=(
            *((key_figures,) if key_figures else ()),
            *(grid for table in tables if (grid := grids.merge_into_grid(table, metrics))),
        ),
        pictures=tuple(
            _pictures(context.watch, chapter.charts, metrics, compared_numbers, _name_devices(exercise, subjects), draw)
        ),
        sayings=sayings,
        missing=tuple(missing),
        sources=tuple(subject.record.id for subject in subjects.values()),
    )


def _describe_machines(paths: WorkspacePaths, everyone: Iterable[Subject]) -> Chapter:
    """Return a chapter with one row for each different machine of these runs. Facts that a run did not record are missing from
    its row.
    """
    rows = dict.fromkeys(row for subject in everyone for row in _describe_nodes(paths, subject.record, subject.metrics))
    numeric = [title == "cores" for title in MACHINE_TITLES]
    grid = grids.make_grid("Hardware and software of the nodes", MACHINE_TITLES, list(rows), numeric)
    grid = replace(grid, note="")
    return Chapter(id=MACHINES, title="Machines", text="The runs of this report used these machines.", grids=(grid,))


def _describe_nodes(paths: WorkspacePaths, record: RunRecord, metrics: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    try:
        environment = read_json(paths.run(record.folder, record.id).environment)
    except GpucourseError:  # the table then shows only what the metrics contain
        environment = None
    for node in read_nodes(environment).values() or [{}]:
        memory = node.get("memory_bytes")
        facts = (
            metrics.get("device"),
            node.get("cpu"),
            node.get("cores") or metrics.get("cores"),
            format_bytes(memory) if isinstance(memory, int) else None,
            node.get("os"),
            metrics.get("python"),
            metrics.get("torch"),
            metrics.get("cuda"),
        )
        yield tuple(grids.number(fact, None) for fact in facts)


def _abstract(plan: ReportPlan, subjects: Mapping[str, Mapping[str, Subject]], chapters: Sequence[Chapter]) -> str:
    """Return what was measured and when, in the runs of all chapters, and the first figure of each chapter that has one."""
    everyone = [subject for by_name in subjects.values() for subject in by_name.values()]
    devices = dict.fromkeys(subject.device for subject in everyone)
    sources = {source for chapter in chapters for source in chapter.sources}
    created = {subject.record.id: subject.record.created for subject in everyone}
    starts = [created.get(source) or runs.read_start(Path(source)) for source in sources | created.keys()]
    days = sorted({start[:10] for start in starts if start})
    period = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    run_count = len(sources)
    source = f"{run_count} run{'s' if run_count > 1 else ''} ({period})"
    results = [text for chapter in plan.chapters if (text := _name_result(chapter, subjects[chapter.id]))]
    verb = "compares" if len(devices) > 1 else "describes"
    text = f"This report {verb} {', '.join(devices)}. Its numbers come from {source}."
    return f"{text} Main results: {'; '.join(results)}." if results else text


def _name_result(chapter: ReportChapter, subjects: Mapping[str, Subject]) -> str:
    """Return the first figure of a chapter that was measured, with its value for each subject, or an empty string."""
    for figure in chapter.figures:
        values_by_name = {name: _value(figure, subject) for name, subject in subjects.items()}
        texts = [
            f"{grids.number(value, figure.digits)} on {name}" for name, value in values_by_name.items() if value is not None
        ]
        if texts:
            return f"{figure.title}: {', '.join(texts)}"
    return ""


def _value(figure: Figure, subject: Subject) -> object:
    """Return the figure's value for one run, or None if it cannot be read there. Text is returned as it is."""
    try:
        return values.read(figure.value, {"metrics": subject.metrics})
    except values.Unreadable:
        return None


def _pictures(
    watch: Watcher,
    charts: tuple[Plot, ...],
    metrics: Mapping[str, Mapping[str, Any]],
    numbers: list[dict[str, object]],
    subtitle: str,
    draw: DrawPicture,
) -> Iterator[Picture]:
    for chart in charts:
        is_over_subjects = chart.rows == SUBJECTS
        plot, rows = (chart, {"subjects": numbers}) if is_over_subjects else side_by_side(chart, metrics)
        if not is_over_subjects and len(metrics) == 1:  # the only subject needs no name in the legend
            plot, rows = chart, dict(next(iter(metrics.values())))
        yield from (replace(picture, title=chart.title) for picture in draw_or_warn(watch, plot, rows, subtitle, draw))


def _name_devices(exercise: Exercise, subjects: Mapping[str, Subject]) -> str:
    """Return the devices of a chart in words, in the form used under every picture of this course."""
    devices = " / ".join(dict.fromkeys(subject.device for subject in subjects.values()))
    local = ", simulated nodes (mode: local)" if any(is_simulated(source.record.mode) for source in subjects.values()) else ""
    return f"{exercise.id} · {devices}{local}"


def _answers(context: Context, plan: ReportPlan) -> dict[str, str]:
    """Return the learner's free-text answers, by exercise and question."""
    texts: dict[str, str] = {}
    for number in dict.fromkeys(chapter.exercise for chapter in plan.chapters if chapter.words):
        _module, exercise = context.catalog.exercise(number)
        sheet = load_sheet(context.paths.answers(exercise.id), exercise)
        submitted = sheet.answers if sheet else {}
        texts |= {f"{number} {name}": str(answer).strip() for name, answer in submitted.items() if answer is not None}
    return texts


def _find_shortages(plan: ReportPlan, everyone: list[Subject]) -> Iterator[str]:
    gpus = sorted({subject.device for subject in everyone if subject.gpu})
    if len(gpus) < plan.enough.gpus:
        module = plan.chapters[0].exercise.partition(".")[0]
        yield (
            f"a comparison needs {plan.enough.gpus} GPUs; the runs here used {', '.join(gpus) or 'none'}. "
            f"A GPU in this computer: `gpucourse deploy {module} --target here`; in another machine of yours: "
            f"`--target hosts`; on AWS: `--target aws`"
        )
    number = plan.enough.models_of
    if number:
        model_names = {subject.record.parameters.get("model") for subject in everyone if subject.record.exercise == number}
        models = sorted(str(model) for model in model_names - {None})
        if model_names and len(models) < plan.enough.models:  # without any run, the chapter names the run that is missing
            yield (
                f"a comparison needs {plan.enough.models} models; the runs of {number} used {', '.join(models) or 'none'}. "
                f"`gpucourse run {number} --set model=NAME`"
            )


def _write(context: Context, report_with_gaps: Report, formats: tuple[Format, ...]) -> Iterator[Path]:
    content = report_with_gaps.without_gaps()
    for format_name in formats:
        target = context.paths.report(format_name)
        if format_name == "html":
            write_bytes(target, html.render(content))
        elif format_name == "pdf":
            _write_pdf(context.watch, content, target)
        else:
            text, pictures = markdown.render(content)
            for name, data in pictures.items():
                write_bytes(target.parent / name, data)
            write_bytes(target, text)
        yield target


def _write_pdf(watch: Watcher, content: Report, target: Path) -> None:
    from gpucourse.report import pdf  # fpdf2, which other formats and the page do not need

    document = pdf.render(content, font_files(), fonts_for)
    write_bytes(target, document.data)
    if document.lost:
        text = f"{target.name}: no font here can show {document.lost[:20]}: boxes replace them; report.html is complete"
        watch(Note(text=text, level="warning"))
    if document.pages > pdf.MAX_PAGES:
        text = f"{target.name} has {document.pages} pages, but a report has at most {pdf.MAX_PAGES}: say it in fewer words"
        watch(Note(text=text, level="warning"))
