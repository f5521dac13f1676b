"""The command `show`: shows a lesson, an exercise, a run or a model solution."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpucourse.cli import complete
from gpucourse.cli.output import JsonDocument, field
from gpucourse.cli.session import Session
from gpucourse.errors import UsageError
from gpucourse.model.answer import AnswerResult
from gpucourse.model.score import Signs
from gpucourse.model.verdict import ExerciseVerdict, PartResult

Scalar = str | int | float | bool


class ModuleExercise(JsonDocument):
    """An exercise in a module's overview."""

    id: str
    title: str
    goal: str
    minutes: int


class ShownModule(JsonDocument):
    """The output of `show 3`: a module. `lesson` lists the files of its lesson, in Markdown."""

    id: str
    title: str
    summary: str
    hours: float
    lesson: list[Path]
    exercises: list[ModuleExercise]


class ParameterDocument(JsonDocument):
    """A parameter of an exercise. `local` is its default on simulated nodes."""

    name: str
    type: str
    default: Scalar
    local_default: Scalar = field(name="local")
    min: float | None
    max: float | None
    choices: list[Scalar]
    unit: str
    help: str


class SolutionDocument(JsonDocument):
    """A part as the learner handed it in, and a solution of the course: the text of both files."""

    id: str
    file: str
    submission: str
    solution: str


class Solutions(JsonDocument):
    """The output of `show 3.2 --solution`."""

    exercise: str
    parts: list[SolutionDocument]


class ShownExercise(JsonDocument):
    """The output of `show 3.2`: an exercise, its answers and parts, and the checks of the run that counts. `open` lists what
    is left to do.
    """

    module: str
    id: str
    title: str
    goal: str
    minutes: int
    script: str
    launcher: str
    tasks: list[str]
    parameters: list[ParameterDocument]
    verdict: ExerciseVerdict | None
    answers: list[AnswerResult]
    parts: list[PartResult]
    signs: Signs
    open: list[str]


def show(
    session: Session,
    number: Annotated[str, typer.Argument(help="A module or an exercise: 3 or 3.2", autocompletion=complete.lessons)],
    part: Annotated[int, typer.Option("--part", help="Which part of a long lesson.", metavar="N")] = 1,
    run: Annotated[
        str | None,
        typer.Option("--run", help="The result of this run of the exercise.", autocompletion=complete.runs_of_exercise),
    ] = None,
    solution: Annotated[
        bool, typer.Option("--solution", help="A model solution beside your part, once yours is right and a run passed.")
    ] = False,
) -> None:
    """Show a lesson (3), or an exercise (3.2)."""
    from gpucourse.learning.list_ import progress
    from gpucourse.ui.text import format_count
    from gpucourse.ui.views import course
    from gpucourse.workspace import deployments

    if solution:
        if run is not None or part != 1:
            raise UsageError("--solution cannot be combined with --run or --part", hint=f"gpucourse show {number} --solution")
        _show_solutions(session, number)
        return
    if run is not None:
        _show_run(session, number, run)
        return
    context = session.look()
    catalog = context.catalog
    if "." in number:
        if part != 1:
            raise UsageError(f"{number} is an exercise; only a lesson has parts", hint=f"gpucourse show {number}")
        _show_exercise(session, number)
        return
    module = catalog.module(number)
    lessons = catalog.lesson_parts(module)
    if not 1 <= part <= len(lessons):
        parts = format_count(len(lessons), "part")
        raise UsageError(f"the lesson of module {number} has {parts}, not {part}", hint=f"gpucourse show {number}")
    has_lab = any(lab.up for lab in deployments.list_of_module(context.paths, module.id))
    first = course.module(module, lessons, progress(context.paths), has_lab=has_lab)
    view = first if part == 1 else course.lesson_part(module, lessons, part)
    folder = context.folders.modules / catalog.folder_name(module)
    files = [folder / name for name in (module.lesson, *module.further_lessons)]
    session.present(view, ShownModule.build(module, lesson=files), paged=True)


def _show_exercise(session: Session, number: str) -> None:
    from gpucourse.learning.list_ import progress
    from gpucourse.learning.show import list_open_work
    from gpucourse.runs.parts import list_part_files, read_part_results
    from gpucourse.ui.views import course
    from gpucourse.ui.views.parts import list_parts

    context = session.look()
    module, exercise = context.catalog.exercise(number)
    verdict = progress(context.paths).get(exercise.id)
    lines, answers, signs = list_open_work(context, exercise)
    results = read_part_results(context, exercise)
    part_blocks = list_parts(exercise, results, list_part_files(context, exercise))
    document = ShownExercise.build(
        exercise,
        launcher=exercise.launch.kind,
        module=module.id,
        verdict=verdict,
        answers=answers,
        parts=results,
        signs=signs,
        open=lines,
    )
    view = course.exercise(module, exercise, verdict, answers=answers, open_parts=lines, part_blocks=part_blocks, signs=signs)
    session.present(view, document, paged=True)


def _show_solutions(session: Session, number: str) -> None:
    from gpucourse.learning.show import read_solutions
    from gpucourse.ui.views.parts import show_solutions

    context = session.look()
    _, exercise = context.catalog.exercise(number)
    solutions = read_solutions(context, exercise)
    parts = [SolutionDocument.build(item, id=item.part.id, file=item.part.file) for item in solutions]
    width = session.console.width(session.console.out)
    view = show_solutions(exercise, solutions, width=width)
    session.present(view, Solutions(exercise=exercise.id, parts=parts), paged=True, place=exercise.id)


def _show_run(session: Session, number: str, run: str) -> None:
    """Show the result of one run, as `run` showed it. Raises UsageError if it is a run of another exercise or script."""
    from gpucourse.cli.outcome import show_result
    from gpucourse.runs.follow import read_run_verdict
    from gpucourse.workspace import runs

    paths = session.look().paths
    record = runs.find(paths, run, number)
    if record.subject != number:
        raise UsageError(
            f"run {record.id} is a run of {record.subject}, not of {number}",
            hint=record.show_command(),
        )
    show_result(session, record, read_run_verdict(paths, record), paged=session.console.verbose)
