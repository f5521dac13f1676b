"""`report --of course`: what was learned, module by module, in the learner's own words, code and pictures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gpucourse.context import Context
from gpucourse.errors import MissingError
from gpucourse.learning.calibration import draw_calibration
from gpucourse.learning.evidence import gather
from gpucourse.model.answer import AnswerResult
from gpucourse.model.manifest import Exercise
from gpucourse.model.node import is_simulated
from gpucourse.model.score import ExerciseEvidence
from gpucourse.storage import writing
from gpucourse.units import now_utc
from gpucourse.workspace import runs
from gpucourse.workspace.files import copy_file

JUDGED = {"passed": "right", "failed": "wrong", "not_measured": "not measured", "error": "not compared"}


@dataclass(frozen=True, kw_only=True)
class CourseReport:
    """What was written: the page, how many exercises it tells of, and how many the course has."""

    file: Path
    told: int
    exercises: int


def report_course(context: Context, author: str) -> CourseReport:
    """Write what the learner ran, wrote, answered and predicted as one page of Markdown, with the pictures beside it.

    Raises MissingError where there is nothing to tell of yet, StorageError.
    """
    page = context.paths.course_report
    lines = ["# What I learned", "", f"{author}, {now_utc()[:10]}", ""]
    told = exercises = 0
    for module in context.catalog.modules:
        chapters = [list(_tell(context, exercise, page.parent)) for exercise in module.exercises]
        exercises += len(chapters)
        written = [chapter for chapter in chapters if chapter]
        told += len(written)
        if written:
            lines += [f"## Module {module.id} · {module.title}", ""]
            lines += [line for chapter in written for line in chapter]
    if not told:
        raise MissingError("there is nothing to tell of yet", hint="gpucourse list: run an exercise, and answer its questions")
    for chapter in draw_calibration(context, page.parent):
        lines += [f"## {chapter.title}", "", chapter.text, ""]
        lines += [line for picture in chapter.pictures for line in (f"![{picture.title}](calibration.png)", "")]
    with writing(page) as file:
        file.write("\n".join(lines).encode())
    return CourseReport(file=page, told=told, exercises=exercises)


def _tell(context: Context, exercise: Exercise, folder: Path) -> Iterator[str]:
    """One exercise: its goal, pictures of the run that counts, predictions, answers, and the code that passed."""
    shown = gather(context, exercise, thorough=False)
    answers = [answer for answer in shown.answers if answer.answer is not None]
    parts = [part for part in shown.parts if part.verdict == "passed"]
    if shown.run is None and not answers and not parts:
        return
    yield from (f"### {exercise.id} {exercise.title}", "", exercise.goal, "")
    if shown.run is not None:
        yield from _tell_of_run(context, exercise, shown, folder)
    if shown.prediction is not None and shown.prediction.answer is not None:
        yield from (
            f"**Predicted.** {shown.prediction.text}",
            "",
            f"> {shown.prediction.answer} {shown.prediction.said}".rstrip(),
            "",
        )
    for answer in answers:
        yield from _tell_answer(answer)
    for part in parts:
        text = context.paths.yours_file(exercise.id, part.file).read_text(encoding="utf-8")
        fence = "`" * max(3, 1 + max((len(run) for run in _fences(text)), default=0))
        yield from (f"**What I wrote.** {part.title}, `{part.file}`", "", f"{fence}python", text.rstrip("\n"), fence, "")


def _tell_of_run(context: Context, exercise: Exercise, shown: ExerciseEvidence, folder: Path) -> Iterator[str]:
    files = context.paths.run(exercise.id, shown.run or "")
    mode = runs.find(context.paths, shown.run or "").mode
    yield from (f"*Run {shown.run}{', on simulated nodes: its times say nothing of GPUs' if is_simulated(mode) else ''}.*", "")
    for plot in exercise.plots:
        picture = files.plot(plot.file, "png")
        if picture.is_file() and not picture.is_symlink():
            name = f"{exercise.id}-{plot.file}.png"
            copy_file(picture, folder / name)
            yield from (f"![{plot.title}]({name})", "")


def _tell_answer(answer: AnswerResult) -> Iterator[str]:
    """The question, and the learner's words; what was compared says whether it was right."""
    judged = f" ({JUDGED[answer.verdict]})" if answer.verdict in JUDGED else ""
    yield from (f"**{answer.text.strip()}**", "")
    yield from (f"> {line}".rstrip() for line in f"{answer.answer}{judged}".strip().split("\n"))
    yield ""


def _fences(text: str) -> list[str]:
    """Every run of backticks in a text: the fence around it must be longer."""
    return "".join(letter if letter == "`" else " " for letter in text).split()
