"""`report --of course`: what the learner learned, module by module, in their own words, code and pictures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from gpucourse.context import Context
from gpucourse.errors import MissingError
from gpucourse.learning.calibration import draw_calibration, draw_files
from gpucourse.learning.evidence import gather
from gpucourse.learning.grade import grade
from gpucourse.model.answer import AnswerResult
from gpucourse.model.manifest import Exercise
from gpucourse.model.node import is_simulated
from gpucourse.model.score import ExerciseEvidence, ModuleScore
from gpucourse.report.markdown import escape_words
from gpucourse.storage import writing
from gpucourse.units import format_points, format_share, now_utc
from gpucourse.workspace import runs
from gpucourse.workspace.files import copy_file
from gpucourse.workspace.paths import WorkspacePaths

JUDGED = {"passed": "right", "failed": "wrong", "not_measured": "not measured", "error": "not compared"}


@dataclass(frozen=True, kw_only=True)
class CourseReport:
    """The page, how many exercises it covers, and how many the course has."""

    file: Path
    exercises: int
    course_exercises: int


def report_course(context: Context, author: str) -> CourseReport:
    """Write and return one page of Markdown about what the learner ran, wrote, answered and predicted.

    Its pictures are next to it.

    Raises MissingError if there is nothing to report yet, and StorageError if a file cannot be written.
    """
    page, result = context.paths.course_report, grade(context, thorough=False)
    scores = {module.module: module for module in result.whole_course.modules}
    name = escape_words(" ".join(author.split()))
    lines = ["# What I learned", "", f"{name}, {now_utc()[:10]}" if name else now_utc()[:10], ""]
    covered_count = course_count = 0
    for module in context.catalog.modules:
        chapters = [list(_describe_exercise(context, exercise, page.parent)) for exercise in module.exercises]
        course_count += len(chapters)
        texts = [chapter for chapter in chapters if chapter]
        covered_count += len(texts)
        if texts:
            lines += [f"## Module {module.id} · {module.title}", "", *_tabulate_points(scores[module.id])]
            lines += [line for chapter in texts for line in chapter]
    if not covered_count:
        raise MissingError("there is nothing to report yet", hint="gpucourse list: run an exercise, and answer its questions")
    course = result.whole_course
    lines[4:4] = [f"Points of the whole course: {format_share(course.earned, course.points)}.", ""]
    for chapter in draw_calibration(context, partial(draw_files, page.parent)):
        lines += [f"## {chapter.title}", "", chapter.text, ""]
        lines += [line for picture in chapter.pictures for line in (f"![{picture.title}](calibration.png)", "")]
    with writing(page) as file:
        file.write("\n".join(lines).encode())
    return CourseReport(file=page, exercises=covered_count, course_exercises=course_count)


def _tabulate_points(module: ModuleScore) -> Iterator[str]:
    """Yield a table of the points of a module's exercises and their sum."""
    yield from ("| exercise | points |", "|---|--:|")
    yield from (f"| {row.id} {row.title} | {format_points(row.earned)} of {format_points(row.points)} |" for row in module.rows)
    yield from (f"| sum | {format_share(module.earned, module.points)} |", "")


def _describe_exercise(context: Context, exercise: Exercise, folder: Path) -> Iterator[str]:
    """Yield the lines about one exercise: its goal, predictions, answers, pictures of the run that counts, and the code that
    passed."""
    evidence = gather(context, exercise, thorough=False)
    answers = [answer for answer in evidence.answers if answer.answer is not None]
    parts = [part for part in evidence.parts if part.verdict == "passed"]
    if evidence.run is None and not answers and not parts:
        return
    yield from (f"### {exercise.id} {exercise.title}", "", exercise.goal, "")
    if evidence.run is not None:
        yield from _describe_run(context.paths, exercise, evidence, folder)
    if evidence.prediction is not None and evidence.prediction.answer is not None:
        yield from (
            f"**Predicted.** {evidence.prediction.text}",
            "",
            f"> {escape_words(' '.join(f'{evidence.prediction.answer}; {evidence.prediction.said}'.split()))}",
            "",
        )
    for answer in answers:
        yield from _describe_answer(answer)
    for part in parts:
        text = context.paths.yours_file(exercise.id, part.file).read_text(encoding="utf-8")
        fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
        yield from (f"**What I wrote.** {part.title}, `{part.file}`", "", f"{fence}python", text.rstrip("\n"), fence, "")


def _describe_run(paths: WorkspacePaths, exercise: Exercise, evidence: ExerciseEvidence, folder: Path) -> Iterator[str]:
    files = paths.run(exercise.id, evidence.run or "")
    record = runs.find(paths, evidence.run or "")
    restarts = f", with {record.restarts_in_words}" if record.restarts else ""
    place = ", on simulated nodes: its times say nothing about GPUs" if is_simulated(record.mode) else ""
    yield from (f"*Run {evidence.run}{restarts}{place}.*", "")
    for plot in exercise.plots:
        picture = files.plot(plot.file, "png")
        if picture.is_file() and not picture.is_symlink():
            name = f"{exercise.id}-{plot.file}.png"
            copy_file(picture, folder / name)
            yield from (f"![{plot.title}]({name})", "")


def _describe_answer(answer: AnswerResult) -> Iterator[str]:
    """Yield the question and the learner's answer. If the answer was compared, also say whether it was right."""
    verdict = f" ({JUDGED[answer.verdict]})" if answer.verdict in JUDGED else " (self-reviewed)" if answer.self_judged else ""
    yield from (f"**{answer.text.strip()}**", "")
    words = escape_words(f"{answer.answer}{verdict}".strip())
    yield from (f"> {line}".rstrip() for line in words.splitlines())
    yield ""
