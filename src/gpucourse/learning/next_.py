"""`next`: the learner's current exercise, and the next thing to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpucourse.context import Context
from gpucourse.errors import MissingError
from gpucourse.grading.points import list_unanswered, read_signs
from gpucourse.learning.evidence import gather
from gpucourse.model.manifest import Exercise, Module
from gpucourse.model.record import RunRecord
from gpucourse.model.score import ExerciseEvidence, Signs
from gpucourse.runs.parts import find_last_tried
from gpucourse.runs.resolve import find_deployed_lab
from gpucourse.workspace import deployments, runs
from gpucourse.workspace.paths import WorkspacePaths

if TYPE_CHECKING:
    from gpucourse.course.catalog import Catalog


BAD = frozenset({"failed", "error"})


@dataclass(frozen=True, kw_only=True)
class NextStep:
    """The first exercise that is not done, its signs of progress, and what to do, in words and as a command. `exercise` is None
    if all are done."""

    exercise: Exercise | None
    signs: Signs | None
    what: str
    command: str


def find_next_step(context: Context) -> NextStep:
    """Return the next thing to do.

    It is in the exercise of the newest run or `try`, otherwise in the same module or in the module of the newest lab, otherwise
    in the first exercise that is not done. Raises MissingError for a course without exercises.
    """
    newest = _find_newest_run(context.paths)
    number, current = _find_place(context.paths, newest)
    for exercise in _order_exercises(context.catalog, number, current):
        evidence = gather(context, exercise, thorough=False, with_prediction=False)
        signs = read_signs(evidence)
        module = context.catalog.exercise(exercise.id)[0]
        is_newest = newest is not None and newest.exercise == exercise.id == current
        choice = _choose_after_run(context.paths, module, newest, evidence) if newest and is_newest else None
        if choice is None and not signs.is_done:
            choice = _choose(context.paths, module, exercise, evidence, signs)
        if choice is not None:
            return NextStep(exercise=exercise, signs=signs, what=choice[0], command=choice[1])
    if not context.catalog.modules:
        raise MissingError("this course has no exercises", hint="gpucourse list")
    return NextStep(
        exercise=None, signs=None, what="every exercise is done: hand in your work", command="gpucourse grade --bundle work.zip"
    )


def read_module_signs(context: Context, module: Module) -> dict[str, Signs]:
    """Return the signs of progress for each exercise of a module."""
    return {
        exercise.id: read_signs(gather(context, exercise, thorough=False, with_prediction=False))
        for exercise in module.exercises
    }


def _order_exercises(catalog: Catalog, number: str, current: str) -> Iterator[Exercise]:
    """Yield every exercise, beginning with the current exercise and its module. Some exercises come twice."""
    for module in catalog.iterate(first=number):
        if module.id == number:
            yield from (exercise for exercise in module.exercises if exercise.id == current)
        yield from module.exercises


def _find_place(paths: WorkspacePaths, newest: RunRecord | None) -> tuple[str, str]:
    """Return the module of the newest run, `try` or lab, whichever is latest, and its exercise. For a lab, this is the exercise
    tried last if it is in the same module, otherwise an empty text."""
    labs = deployments.readable(paths)[0]
    tried_at, exercise = find_last_tried(paths)
    module = exercise.partition(".")[0]
    places = [(tried_at, module, exercise)] if tried_at else []
    places += [(newest.created, newest.module, newest.exercise)] if newest else []
    places += [(lab.created, lab.module, exercise if tried_at and lab.module == module else "") for lab in labs]
    # A lab's time has no fraction of a second, so only the first 19 characters can be compared.
    return max(places, key=lambda place: place[0][:19], default=("", "", ""))[1:]


def _find_newest_run(paths: WorkspacePaths) -> RunRecord | None:
    """Return the newest run of an exercise. Drills and the learner's own scripts are left out."""
    records = (record for record in runs.iterate_newest_first(paths) if not record.own_script and not record.drill)
    return next(records, None)


def _choose_after_run(
    paths: WorkspacePaths, module: Module, record: RunRecord, evidence: ExerciseEvidence
) -> tuple[str, str] | None:
    """Return what to do if the exercise's newest run has not ended or did not succeed; otherwise None."""
    if not record.has_ended:
        return f"run {record.id} is still running: follow it", record.advice
    if not record.advice and (record.id == evidence.run or record.verdict not in BAD or not record.is_evidence):
        return None
    if _advise_deploy(paths, module):
        return None
    if record.advice:
        reason = record.diagnoses[0].title if record.diagnoses else record.state.replace("_", " ")
        return f"run {record.id} did not succeed: {reason}", record.advice
    return f"a check of run {record.id} did not pass", f"gpucourse hint {record.exercise}"


def _choose(
    paths: WorkspacePaths, module: Module, exercise: Exercise, evidence: ExerciseEvidence, signs: Signs
) -> tuple[str, str]:
    if not signs.ran:
        return _choose_run(paths, module, exercise, evidence)
    if signs.yours is False:
        part = next(part for part in evidence.parts if part.verdict != "passed")
        task = next(item.write for item in exercise.yours if item.id == part.id)
        text = f"your part is {part.file}. {task}" if part.verdict == "open" else f"correct your part, {part.file}: {part.says}"
        return text, f"gpucourse try {exercise.id}"
    unanswered = list_unanswered(evidence)
    mutations = {question.id: question for question in exercise.questions if question.kind == "mutation"}
    if question_ids := [name for name in unanswered if name not in mutations]:
        return f"answer {', '.join(question_ids)}", f"gpucourse answer {exercise.id}"
    if advice := _advise_deploy(paths, module):
        return advice
    checks = ", ".join(check.id for check in exercise.checks)
    return f"{mutations[unanswered[0]].text.rstrip('.')}. The checks of {exercise.id}: {checks}", exercise.mutation_command


def _advise_deploy(paths: WorkspacePaths, module: Module) -> tuple[str, str] | None:
    """Return what is missing and the command that provides it, if the module has no lab; otherwise None."""
    try:
        find_deployed_lab(paths, module)
    except MissingError as error:
        return error.what, error.hint or f"gpucourse deploy {module.id}"
    return None


def _choose_run(paths: WorkspacePaths, module: Module, exercise: Exercise, evidence: ExerciseEvidence) -> tuple[str, str]:
    failed_titles = [check.title for check in evidence.checks if check.verdict in BAD]
    if advice := _advise_deploy(paths, module):
        return advice
    if evidence.trouble or evidence.changed:
        return (
            f"run it again: {evidence.trouble or f'{evidence.changed[0]} changed after the run'}",
            f"gpucourse run {exercise.id}",
        )
    if failed_titles:
        return f"a check did not pass: {failed_titles[0]}", f"gpucourse hint {exercise.id}"
    return f"read what it is about (gpucourse show {exercise.id}), and run it", f"gpucourse run {exercise.id}"
