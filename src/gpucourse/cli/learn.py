"""Commands for reading and judging: init, list, show, check."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Optional

import typer

from gpucourse.cli import complete
from gpucourse.cli.flags import JsonFlag
from gpucourse.cli.session import current
from gpucourse.errors import CheckFailed, ExitCode, ManifestError, UsageError


def init(
    folder: Annotated[Optional[Path], typer.Argument(help="Where; the present folder without.", show_default=False)] = None,  # noqa: UP045
) -> int:
    """Make a workspace: settings, and your own copies of the exercises."""
    from gpucourse.workspace.exercises import all_names, ensure_copies

    session = current()
    if folder is not None and session.options.workspace is not None:
        raise UsageError("init takes the folder once: as its argument or as --workspace", hint="gpucourse init DIR")
    session.root = Path.cwd() / (session.options.workspace or folder or Path.cwd()).expanduser()
    context = session.context
    names = all_names(context.folders.exercises)
    ensure_copies(context.paths, context.folders.exercises, names)
    session.face.note(f"your copies of {len(names)} exercise files are in {context.paths.exercises}")
    session.face.note(f"settings: {context.paths.settings}. Next: gpucourse deploy 3")
    return ExitCode.DONE


def list_(json: JsonFlag = False) -> int:
    """The syllabus, with what is done."""
    from gpucourse.learning.grade import grade
    from gpucourse.learning.progress import progress
    from gpucourse.ui.views.course import catalog as view

    session = current()
    catalog = session.context.catalog
    done = progress(session.context)
    broken = list(catalog.broken)
    points = None
    try:
        points = grade(session.context, thorough=False)
    except ManifestError as error:  # the rubric is wrong: the syllabus is worth showing all the same
        broken.append(error)
    if json:
        told = [error.what for error in broken]
        session.face.document({"modules": catalog.modules, "progress": done, "points": points, "broken": told})
    session.face.show(view(catalog.modules, done, broken, points))
    return ExitCode.USAGE if broken else ExitCode.DONE


def show(
    number: Annotated[str, typer.Argument(help="A module or an exercise: 3 or 3.2", autocompletion=complete.lessons)],
    json: JsonFlag = False,
) -> int:
    """A lesson (3), or an exercise (3.2)."""
    from gpucourse.learning.progress import progress, still_open
    from gpucourse.ui.views import course

    session = current()
    catalog = session.context.catalog
    done = progress(session.context)
    if "." in number:
        module, exercise = catalog.exercise(number)
        verdict = done.get(exercise.id)
        lines, answers = still_open(session.context, exercise)
        if json:
            told = {"module": module.id, "exercise": exercise, "verdict": verdict, "answers": answers, "open": lines}
            session.face.document(told)
        session.face.show(course.exercise(module, exercise, verdict, answers=answers, open_parts=lines))
        return ExitCode.DONE
    module = catalog.module(number)
    if json:
        session.face.document({"module": module, "lesson": catalog.lesson(module)})
    session.face.show(course.module(module, catalog.lesson(module), done))
    return ExitCode.DONE


def hint(
    exercise: Annotated[str, typer.Argument(help="The number of an exercise: 3.2", autocompletion=complete.exercises)],
    json: JsonFlag = False,
) -> int:
    """The next hint, one at a time."""
    from gpucourse.learning.progress import next_hint
    from gpucourse.ui.views.course import hint as view

    session = current()
    found, number = next_hint(session.context, exercise)
    if json:
        session.face.document({"exercise": found.id, "hint": number, "of": len(found.hints), "text": found.hints[number - 1]})
    session.face.show(view(found, number))
    return ExitCode.DONE


def check(
    exercise: Annotated[
        Optional[str],  # noqa: UP045
        typer.Argument(help="The number of an exercise: 3.2", autocompletion=complete.exercises),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Verify every exercise again; what no longer holds loses its mark.")
    ] = False,
    diagnosis: Annotated[
        Optional[Literal["kill-rank", "block-port", "wrong-world-size", "slow-rank"]],  # noqa: UP045
        typer.Option("--diagnosis", help="What the newest drill (break) suffered from.", show_default=False),
    ] = None,
    rank: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--rank", help="With --diagnosis: the rank where it sits.", show_default=False),
    ] = None,
    run: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--run", help="A run of the exercise; the newest without.", autocompletion=complete.runs),
    ] = None,
    json: JsonFlag = False,
) -> int:
    """Check again what a run of an exercise left; or all exercises; or your diagnosis of a drill."""
    from gpucourse.cli.outcome import code_of
    from gpucourse.learning import check as recheck
    from gpucourse.ui.views.checks import every as view_of_all
    from gpucourse.ui.views.checks import verdict as view

    session = current()
    if every == (exercise is not None):
        raise UsageError("name one exercise, or all of them", hint="gpucourse check 3.2, or gpucourse check --all")
    if rank is not None and diagnosis is None:
        raise UsageError("--rank goes with --diagnosis", hint="gpucourse check 3.2 --diagnosis kill-rank --rank 1")
    if run is not None and (every or diagnosis is not None):
        raise UsageError("--run goes with one exercise, without --diagnosis", hint="gpucourse check 3.2 --run RUN")
    if diagnosis is not None:
        from gpucourse.cli.drill import diagnose

        if exercise is None:
            raise UsageError("--diagnosis is about one exercise", hint=f"gpucourse check 3.2 --diagnosis {diagnosis}")
        return diagnose(session, exercise, diagnosis, rank, json=json)
    if exercise is not None:
        from gpucourse.runs.drill import open_drill

        if (drill := open_drill(session.context, exercise)) is not None:
            session.face.note(f"drill {drill.id} is still open: gpucourse check {exercise} --diagnosis WORD --rank R")
        record, verdict = recheck.check(session.context, exercise, run)
        if json:
            session.face.document({"run": record.id, "verdict": verdict})
        session.face.show(view(verdict))
        return code_of(record, verdict)
    found = recheck.check_all(session.context)
    if json:
        session.face.document({"exercises": [vars(each) | {"regressed": each.regressed} for each in found]})
    session.face.show(view_of_all(found))
    bad = [each.exercise for each in found if each.verdict and each.verdict.verdict in {"failed", "error"}]
    if bad:
        raise CheckFailed(
            f"{len(bad)} of {len(found)} exercises do not hold: {', '.join(bad)}", hint=f"gpucourse check {bad[0]}"
        )
    return ExitCode.DONE


COMMANDS = {"init": init, "list": list_, "show": show, "hint": hint, "check": check}
