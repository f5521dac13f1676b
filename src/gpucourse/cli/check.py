"""The command `check`: judges runs again, and judges the diagnosis of a drill."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpucourse.cli import complete
from gpucourse.cli.output import JsonDocument, RunDocument, field
from gpucourse.cli.session import Session
from gpucourse.errors import CheckFailed, ExitCode, UnknownName, UsageError
from gpucourse.model.verdict import ExerciseVerdict


class RunCheck(JsonDocument):
    """The output of `check 3.2`: the id of the run that was judged, and the verdict."""

    run: str
    verdict: ExerciseVerdict


class CheckedExercise(JsonDocument):
    """An exercise that was checked again. `before` is its earlier verdict; `missing` lists the deliverables that do not
    exist."""

    exercise: str
    title: str
    verdict: ExerciseVerdict | None
    before: str | None
    missing: list[str]
    has_regressed: bool = field(name="regressed")


class CheckedAll(JsonDocument):
    """The output of `check --all`."""

    exercises: list[CheckedExercise]


class DiagnosedRun(JsonDocument):
    """The output of `check --diagnosis` for a fault in a run."""

    run: RunDocument
    verdict: ExerciseVerdict


class CodeDiagnosisDocument(JsonDocument):
    """The judgement of a learner's diagnosis of a code fault. `hint` is set if the diagnosis is wrong; `fault` (its title) and
    `explanation` are set if it is right.
    """

    right: bool
    hint: str
    fault: str | None
    explanation: str | None
    copy: Path


class DiagnosedCode(JsonDocument):
    """The output of `check --diagnosis` for a fault in code."""

    diagnosis: CodeDiagnosisDocument


def check(
    session: Session,
    exercise: Annotated[
        str | None,
        typer.Argument(
            help="The number of an exercise: 3.2; or a script of your own that ran with --checks.",
            autocompletion=complete.exercises,
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Check every exercise again; those that fail now are no longer marked as passed.")
    ] = False,
    diagnosis: Annotated[
        str | None,
        typer.Option(
            "--diagnosis",
            help="Your diagnosis of the newest drill: the fault that gpucourse break injected.",
            autocompletion=complete.faults,
        ),
    ] = None,
    rank: Annotated[
        int | None, typer.Option("--rank", help="With --diagnosis: the rank at fault.", autocompletion=complete.ranks)
    ] = None,
    run: Annotated[
        str | None,
        typer.Option("--run", help="A run of the exercise (default: the newest).", autocompletion=complete.runs_of_exercise),
    ] = None,
) -> int:
    """Check a run again, or all exercises, or a diagnosis."""
    if every == (exercise is not None):
        raise UsageError("name one exercise, or all of them", hint="gpucourse check 3.2, or gpucourse check --all")
    if rank is not None and diagnosis is None:
        raise UsageError("--rank needs --diagnosis", hint="gpucourse check 3.2 --diagnosis kill-rank --rank 1")
    if run is not None and (every or diagnosis is not None):
        raise UsageError("--run needs one exercise, without --diagnosis", hint="gpucourse check 3.2 --run RUN")
    if diagnosis is not None:
        if exercise is None:
            raise UsageError("--diagnosis needs one exercise", hint=f"gpucourse check 3.2 --diagnosis {diagnosis}")
        _diagnose(session, exercise, diagnosis, rank)
    elif exercise is not None:
        return _check_one(session, exercise, run)
    else:
        _check_all(session)
    return ExitCode.DONE


def _check_all(session: Session) -> None:
    """Judge all exercises again. Raises CheckFailed if any of them does not pass."""
    from gpucourse.learning.check import check_all
    from gpucourse.ui.views.checks import rechecked_exercises as view

    checks = check_all(session.look(with_note=True))
    session.present(view(checks), CheckedAll.build(exercises=checks))
    failed_exercises = [check.exercise for check in checks if check.verdict and check.verdict.verdict in {"failed", "error"}]
    if failed_exercises:
        raise CheckFailed(
            f"{len(failed_exercises)} of {len(checks)} exercises do not pass: {', '.join(failed_exercises)}",
            hint=f"gpucourse check {failed_exercises[0]}",
        )


def _check_one(session: Session, name: str, run: str | None) -> int:
    """Judge one run again, and return the exit code. A run of the learner's own script is judged with the checks that it was
    started with."""
    from gpucourse.cli.outcome import find_exit_code
    from gpucourse.learning.check import check, check_script, find_namesakes, is_script
    from gpucourse.runs.drill import open_drill
    from gpucourse.runs.parts import list_changed_files, list_part_files
    from gpucourse.ui.views.checks import checks
    from gpucourse.ui.views.parts import list_run_parts
    from gpucourse.ui.views.result import check_result

    context, console = session.look(), session.console
    part_blocks, changed_files = [], []
    if is_script(context.paths, name):
        record, verdict = check_script(context, name, run)
        if namesakes := find_namesakes(context.paths, record):
            console.note(
                f"run {record.id} is a run of {record.own_script}; "
                f"other scripts with this name: {', '.join(namesakes)}. Choose one with --run RUN"
            )
    else:
        if (drill := open_drill(context.paths, name)) is not None:
            console.note(f"drill {drill.id} is still open: gpucourse check {name} --diagnosis WORD --rank R")
        record, verdict = check(context, name, run)
        _, exercise = context.catalog.exercise(name)
        part_files, changed_files = list_part_files(context, exercise), list_changed_files(context, exercise, record)
        part_blocks = list_run_parts(exercise, verdict.parts, part_files, changed_files)
    step = session.find_step("" if record.own_script else record.exercise)
    view = check_result(record, verdict, step, changed_files=changed_files)
    if console.verbose:
        view = view._replace(blocks=(*checks(verdict), *part_blocks))
    session.present(view, RunCheck(run=record.id, verdict=verdict))
    return find_exit_code(record, verdict)


def _diagnose(session: Session, exercise: str, word: str, rank: int | None) -> None:
    """Judge a diagnosis. Raises CheckFailed (5) with a hint if it is wrong, and UnknownName if there is no such fault."""
    from gpucourse.model.drill import HOWS
    from gpucourse.runs.code_drill import is_newest_drill, list_faults
    from gpucourse.ui.views.drill import list_nearest_faults

    context = session.look()
    is_code = is_newest_drill(context, exercise)
    words_of_code = list(list_faults(context.catalog.modules))
    module, _ = context.catalog.exercise(exercise)
    words = list(list_faults([module]) if is_code else HOWS)
    if word not in {*HOWS, *words_of_code}:
        hint = list_nearest_faults(word, words) if is_code else f"faults that a drill injects: {', '.join(words)}"
        raise UnknownName("fault", word, words, hint=hint)
    if not is_code:
        _diagnose_drill(session, exercise, word, rank)
    elif rank is None:
        _diagnose_code(session, exercise, word)
    else:
        raise UsageError(
            "--rank is for faults of a rank, not for a fault in the code", hint=f"gpucourse check {exercise} --diagnosis {word}"
        )


def _diagnose_code(session: Session, exercise: str, word: str) -> None:
    from gpucourse.runs.code_drill import diagnose_code
    from gpucourse.ui.views.drill import code_diagnosis

    diagnosis = diagnose_code(session.look(), exercise, word)
    fault = diagnosis.fault
    document = CodeDiagnosisDocument.build(
        diagnosis, fault=fault.title if fault else None, explanation=fault.explanation if fault else None
    )
    session.console.document(DiagnosedCode(diagnosis=document))
    if not diagnosis.right:
        raise CheckFailed(f"Not {word}.", hint=diagnosis.hint)
    session.console.show(code_diagnosis(exercise, diagnosis))


def _diagnose_drill(session: Session, exercise: str, diagnosis: str, rank: int | None) -> None:
    from gpucourse.runs.drill import judge_diagnosis
    from gpucourse.ui.views.drill import diagnosis_result

    record, verdict = judge_diagnosis(session.look(), exercise, diagnosis, rank)
    session.console.document(DiagnosedRun(run=RunDocument.build(record), verdict=verdict))
    failed_checks = [check for check in verdict.checks if check.verdict != "passed"]
    if failed_checks:
        raise CheckFailed(
            f"Not {failed_checks[0].observed}."
            if failed_checks[0].id == "diagnosis" or rank is not None
            else "Which rank was it?",
            hint=failed_checks[0].hint,
        )
    session.console.show(diagnosis_result(record, verdict, session.find_step(record.exercise)))
