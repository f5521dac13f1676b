"""`next`: the learner's current exercise, the next thing to do in it, and how far the learner has come in the course."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from gpucourse.context import Context
from gpucourse.course.answer_sheet import load_sheet
from gpucourse.errors import ManifestError, MissingError
from gpucourse.grading.points import list_unanswered, read_signs
from gpucourse.learning.attempts import read_attempts
from gpucourse.learning.evidence import gather
from gpucourse.model.manifest import Exercise, Module
from gpucourse.model.record import RunRecord
from gpucourse.model.score import ExerciseEvidence, Signs
from gpucourse.model.verdict import PartResult
from gpucourse.runs.mutations import find_mutated_file
from gpucourse.runs.parts import find_last_tried, is_as_delivered, list_try_times, read_newest_results
from gpucourse.runs.resolve import find_deployed_lab
from gpucourse.units import parse_moment
from gpucourse.workspace import deployments, runs, seals
from gpucourse.workspace.paths import WorkspacePaths

if TYPE_CHECKING:
    from gpucourse.course.catalog import Catalog


BAD = frozenset({"failed", "error"})
MAX_PAUSE_S = 30 * 60.0  # a longer time without a run, a `try` or an answer is a break, and does not count as time spent


@dataclass(frozen=True, kw_only=True)
class NextStep:
    """The first exercise that is not done, its signs of progress, and what to do, in words and as a command. `exercise` is None
    if all are done."""

    exercise: Exercise | None
    signs: Signs | None
    what: str
    command: str


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The progress of the learner: how many exercises are done in the course and in the current module, and the time spent in
    the current exercise.

    If every exercise is done, `module` is empty and the fields after it are 0.
    """

    done: int
    exercises: int
    module: str = ""
    module_done: int = 0
    module_exercises: int = 0
    seconds_spent: float = 0.0


def find_next_step(context: Context, place: str = "") -> NextStep:
    """Return the next thing to do, in the first exercise that is not done.

    The search begins with `place`, an exercise or a module. By default, it begins with the exercise of the newest run, `try` or
    answer, or with the module of the newest lab. It continues with the other exercises of that module, and then with the rest
    of the course. Raises MissingError for a course without exercises.
    """
    number, current, drill = _find_place(context.paths)
    if place and place != number:
        number, current = place.partition(".")[0], place
    for exercise in _order_exercises(context.catalog, number, current):
        evidence = gather(context, exercise, thorough=False, with_prediction=False)
        signs = read_signs(evidence)
        module = context.catalog.exercise(exercise.id)[0]
        choice = _choose_after_drill(context, module, drill) if drill is not None and drill.exercise == exercise.id else None
        if choice is None and exercise.id == current:
            choice = _choose_after_run(context.paths, module, evidence, signs)
        choice = choice or _choose_restoration(context, exercise, evidence)
        if evidence.trouble:
            choice = _choose_sheet(context.paths, exercise) or choice
        if choice is None and not signs.is_done:
            choice = _choose(context, module, exercise, evidence, signs)
        if choice is not None:
            return NextStep(exercise=exercise, signs=signs, what=choice[0], command=choice[1])
    if not context.catalog.modules:
        raise MissingError("this course has no exercises", hint="gpucourse list")
    return NextStep(
        exercise=None, signs=None, what="every exercise is done: hand in your work", command="gpucourse grade --bundle work.zip"
    )


def measure_progress(context: Context, exercise: Exercise | None) -> Progress:
    """Return the progress in the course and in the module of `exercise`, and how much time was spent in `exercise`."""
    done_by_module = {module.id: _count_done(context, module) for module in context.catalog.modules}
    total = Progress(done=sum(done_by_module.values()), exercises=len(context.catalog.exercises))
    if exercise is None:
        return total
    module, _ = context.catalog.exercise(exercise.id)
    return replace(
        total,
        module=module.id,
        module_done=done_by_module[module.id],
        module_exercises=len(module.exercises),
        seconds_spent=measure_time_spent(context.paths, exercise.id),
    )


def measure_time_spent(paths: WorkspacePaths, exercise_id: str) -> float:
    """Return the time in seconds that the learner has spent in an exercise.

    It is the time of its runs, and the time before each of its runs, tries and answers, counted from the learner's previous
    action in the course. Pauses longer than MAX_PAUSE_S do not count.
    """
    records = runs.readable(paths, exercise_id)[0]
    try_times = list_try_times(paths)
    answer_times = _list_answer_times(paths, exercise_id)
    own_times = {record.created for record in records} | {record.ended for record in records if record.ended}
    own_times |= {try_times.get(exercise_id, ""), *answer_times}
    times = {runs.read_start(folder) for folder in runs.list_folders(paths) if folder.parent.name != exercise_id}
    times |= {lab.created for lab in deployments.readable(paths)[0]} | set(try_times.values()) | own_times
    moments = sorted((moment, text in own_times) for text in times if (moment := _read_moment(text)) is not None)
    pauses = (later - earlier for (earlier, _), (later, counts) in pairwise(moments) if counts)
    return sum(pause for pause in pauses if pause <= MAX_PAUSE_S)


def _read_moment(text: str) -> float | None:
    """Return a recorded time in seconds since 1970, or None if it is missing or damaged."""
    try:
        return parse_moment(text).timestamp()
    except ValueError:
        return None


def read_module_signs(context: Context, module: Module) -> dict[str, Signs]:
    """Return the signs of progress for each exercise of a module."""
    return {
        exercise.id: read_signs(gather(context, exercise, thorough=False, with_prediction=False))
        for exercise in module.exercises
    }


def _count_done(context: Context, module: Module) -> int:
    """Return how many exercises of a module are done. An exercise without a run is not done, so its evidence is not read."""
    exercises = (exercise for exercise in module.exercises if (context.paths.runs / exercise.id).is_dir())
    return sum(read_signs(gather(context, item, thorough=False, with_prediction=False)).is_done for item in exercises)


def _order_exercises(catalog: Catalog, number: str, current: str) -> Iterator[Exercise]:
    """Yield every exercise, beginning with the current exercise and its module."""
    for module in catalog.iterate(first=number):
        yield from sorted(module.exercises, key=lambda exercise: exercise.id != current)


def _find_place(paths: WorkspacePaths) -> tuple[str, str, RunRecord | None]:
    """Return the module and the exercise that the learner worked on last, according to the newest run, `try`, answer or lab.
    Also return the run if it is the newest of these and a drill.

    A lab belongs to no exercise. For a lab, return the exercise tried last if it is in the same module, otherwise an empty
    string.
    """
    labs = deployments.readable(paths)[0]
    newest = next((record for record in runs.iterate_newest_first(paths) if not record.own_script), None)
    tried_at, exercise = find_last_tried(paths)
    places = [(newest.created, newest.module, newest.exercise)] if newest else []
    places += [(tried_at, exercise.partition(".")[0], exercise)] if tried_at else []
    places += [
        (max(times), name.partition(".")[0], name)
        for name in (file.parent.name for file in paths.list_attempts())
        if (times := _list_answer_times(paths, name))
    ]
    places += [(lab.created, lab.module, exercise if exercise.partition(".")[0] == lab.module else "") for lab in labs]
    # The times of labs and answers have no fraction of a second, so they sort before a run or a `try` in the same second.
    latest = max(places, default=("", "", ""))
    return *latest[1:], newest if newest and newest.drill and latest[0] == newest.created else None


def _list_answer_times(paths: WorkspacePaths, exercise_id: str) -> list[str]:
    """Return when the learner answered questions of an exercise. A damaged file has no times."""
    with suppress(MissingError):
        return [attempt.at for attempt in read_attempts(paths, exercise_id)]
    return []


def _find_newest_run(paths: WorkspacePaths, exercise_id: str | None = None) -> RunRecord | None:
    """Return the newest run of this or any exercise. Drills and the learner's own scripts are left out."""
    records = (record for record in runs.iterate_newest_first(paths, exercise_id) if not record.own_script and not record.drill)
    return next(records, None)


Choice = tuple[str, str]
"""What to do, in words and as a command."""


def _choose_after_drill(context: Context, module: Module, drill: RunRecord) -> Choice | None:
    """Return how to find or repair the fault of a drill, or None if nothing is left to do."""
    paths, number = context.paths, drill.exercise
    if not drill.has_ended:
        return f"drill {drill.id} {_tell_open_state(drill)}", drill.advice
    is_in_code = not paths.drill(drill.id).exists()
    if drill.verdict != "passed" and not drill.repair:
        text = f"find the fault of drill {drill.id}, then name it"
        way_out = f"To leave the drill: gpucourse run {number}"
        if is_in_code:
            meanings = drill.show_command(" --verbose")
            text = f"{text}. The code: {paths.broken_copy(number)}. What each WORD means: {meanings}"
        else:
            text = f"{text}, with --rank R if one rank is at fault. Its logs: gpucourse logs {drill.id} --times"
        return f"{text}. {way_out}", drill.advice
    if is_in_code and not (drill.repair and drill.verdict == "passed"):
        text = f"repair the copy in {paths.broken_copy(number)}, and run it"
        return _advise_deploy(paths, module) or (text, f"gpucourse break {number} --repaired")
    return None


def _tell_open_state(record: RunRecord) -> str:
    """Return the end of a sentence about a run that is not finished: the run is under way, or its outputs are not collected
    yet."""
    return "has ended: collect its outputs" if record.state == "collecting" else "is still running: follow it"


def _choose_after_run(paths: WorkspacePaths, module: Module, evidence: ExerciseEvidence, signs: Signs) -> Choice | None:
    """Return what to do if the exercise's newest run has not ended or did not succeed; otherwise None. If an earlier run is
    good and the learner's parts in it are right, ignore a later run that failed."""
    record = _find_newest_run(paths, evidence.exercise)
    if record is None:
        return None
    if not record.has_ended:
        return f"run {record.id} {_tell_open_state(record)}", record.advice
    if record.id != evidence.run and signs.ran and signs.yours is not False:
        return None
    if not record.advice and (record.id == evidence.run or record.verdict not in BAD or not record.is_evidence):
        return None
    if _advise_deploy(paths, module):
        return None
    if record.diagnoses:
        cause = record.diagnoses[0]
        again, needed = f"gpucourse run {record.exercise}", _find_needed_exercise(cause.next, record)
        advice = again if needed and _has_succeeded_since(paths, needed, record) else cause.next
        command = advice if needed or advice == f"gpucourse logs {record.id}" else again
        return f"run {record.id} did not succeed: {cause.title}. What to do: {advice}", command
    if record.advice:
        return f"run {record.id} did not succeed: {record.state.replace('_', ' ')}", record.advice
    return _advise_hint(paths, record.exercise, f"a check of run {record.id} did not pass", record)


def _find_needed_exercise(command: str, record: RunRecord) -> str:
    """Return the exercise that `command` runs, if the failed run of another exercise needs its results. Otherwise return an
    empty string."""
    match = re.fullmatch(r"gpucourse run (\S+)", command)
    return match[1] if match and match[1] != record.exercise else ""


def _has_succeeded_since(paths: WorkspacePaths, exercise_id: str, record: RunRecord) -> bool:
    """Return whether the newest run of an exercise succeeded, and was created after the run of `record`."""
    newest = _find_newest_run(paths, exercise_id)
    return newest is not None and newest.state == "succeeded" and newest.created >= record.created


def _choose_sheet(paths: WorkspacePaths, exercise: Exercise) -> Choice | None:
    """Return how to repair the exercise's answer sheet if it has errors; otherwise None."""
    try:
        load_sheet(paths.answers(exercise.id), exercise)
    except ManifestError as error:
        text = f"correct your answers: {error.complaints[0]}. Or write a new sheet; this one is kept beside it"
        return text, f"gpucourse answer {exercise.id} --template"
    return None


def _choose_restoration(context: Context, exercise: Exercise, evidence: ExerciseEvidence) -> Choice | None:
    """Return how to undo an edit that a mutation asked for, once the prediction was right or no attempt is left; otherwise
    None."""
    mutations = [answer for answer in evidence.answers if answer.kind == "mutation"]
    answered = {answer.id: answer.verdict == "passed" for answer in mutations if answer.verdict == "passed" or answer.final}
    for question in exercise.questions:
        if question.id not in answered:
            continue
        file = find_mutated_file(context, exercise, question, is_right=answered[question.id])
        if file is not None:
            text = (
                f"put the line back into {file}, because {question.id} is answered; this restores the course's file, and keeps "
                "a copy of yours"
            )
            return text, f"gpucourse reset {exercise.id} --file {question.edit}"
    return None


def _choose(context: Context, module: Module, exercise: Exercise, evidence: ExerciseEvidence, signs: Signs) -> Choice:
    paths = context.paths
    if not signs.ran:
        return _choose_tried_part(context, module, exercise, evidence) or _choose_run(paths, module, exercise, evidence)
    if signs.yours is False:
        return _choose_part(context, module, exercise, next(part for part in evidence.parts if part.verdict != "passed"))
    unanswered = list_unanswered(evidence)
    mutations = {question.id: question for question in exercise.questions if question.kind == "mutation"}
    if question_ids := [name for name in unanswered if name not in mutations]:
        return f"answer {', '.join(question_ids)}", f"gpucourse answer {exercise.id}"
    if advice := _advise_deploy(paths, module):
        return advice
    question = mutations[unanswered[0]]
    file = paths.exercises / context.catalog.sources(exercise)[str(question.edit)]
    return f"edit {file}. {question.text}", exercise.mutation_command


def _choose_tried_part(context: Context, module: Module, exercise: Exercise, evidence: ExerciseEvidence) -> Choice | None:
    """Return what to do for a part that `try` judges and that is not right, if the learner's last action in the exercise was a
    `try`; otherwise None."""
    record = _find_newest_run(context.paths, exercise.id)
    other_times = [record.created if record else "", *_list_answer_times(context.paths, exercise.id)]
    if not exercise.yours or list_try_times(context.paths).get(exercise.id, "") <= max(other_times):
        return None
    judged_parts = {part.id for part in exercise.yours if part.judge}
    for result in evidence.parts:
        if result.id in judged_parts and result.verdict != "passed":
            newest, _ = _find_newest_result(context, exercise, result)
            if newest.verdict != "passed":
                return _choose_part(context, module, exercise, result)
    return None


def _find_newest_result(context: Context, exercise: Exercise, result: PartResult) -> tuple[PartResult, bool]:
    """Return the newest verdict on a part if it is about the file as it is now, otherwise `result`. Also return whether the
    returned verdict is about that file."""
    digest = seals.sha256(context.paths.exercises / context.catalog.part_places(exercise)[result.id])
    newest = read_newest_results(context.paths, exercise).get(result.id)
    if newest is not None and newest.sha256 == digest:
        return newest, True
    return result, result.sha256 == digest


def _choose_part(context: Context, module: Module, exercise: Exercise, result: PartResult) -> Choice:
    """Return what to do for a part that is not right: write it, have it judged, or run it."""
    part = next(part for part in exercise.yours if part.id == result.id)
    result, is_current = _find_newest_result(context, exercise, result)
    if result.verdict == "passed" and not result.run:
        text = f"run the exercise with your part, {part.file}, which is right on this computer: the run checks the part as well"
        return _advise_deploy(context.paths, module) or (text, f"gpucourse run {exercise.id}")
    command = f"gpucourse {'try' if part.judge else 'run'} {exercise.id}"
    task = f"your part is {part.file} (gpucourse edit {exercise.id} opens it). {part.write}"
    if result.verdict in {"open", "passed"}:
        return task, command
    if result.verdict == "failed" and not is_current:
        file = context.paths.exercises / context.catalog.part_places(exercise)[part.id]
        if is_as_delivered(context, exercise, part, file):
            return task, command
        return f"your part, {part.file}, has changed since it was judged: have it judged again", command
    correction = f"correct your part, {part.file}: {result.says}"
    if result.run and is_current:
        record = None
        with suppress(MissingError):  # its record is damaged
            record = runs.read(context.paths, exercise.id, result.run)
        return _advise_hint(context.paths, exercise.id, correction, record, command)
    return correction, command


def _advise_deploy(paths: WorkspacePaths, module: Module) -> Choice | None:
    """Return what is missing and the command that provides it, if the module has no lab; otherwise None."""
    try:
        find_deployed_lab(paths, module)
    except MissingError as error:
        return error.what, error.hint or f"gpucourse deploy {module.id}"
    return None


def _advise_hint(paths: WorkspacePaths, exercise_id: str, reason: str, record: RunRecord | None, command: str = "") -> Choice:
    """Return the command that shows a hint. If a hint has been shown since that run, return the command that tries again. Both
    come with the reason."""
    try:
        shown_at = paths.hints.stat().st_mtime
    except OSError:
        shown_at = 0.0
    if record is not None and shown_at > parse_moment(record.ended or record.created).timestamp():
        return f"{reason}: follow the hint, then judge it again", command or f"gpucourse run {exercise_id}"
    return reason, f"gpucourse hint {exercise_id}"


def _choose_run(paths: WorkspacePaths, module: Module, exercise: Exercise, evidence: ExerciseEvidence) -> Choice:
    failed_titles = [check.title for check in evidence.checks if check.verdict in BAD]
    if advice := _advise_deploy(paths, module):
        return advice
    if evidence.trouble or evidence.changed:
        return (
            f"run it again: {evidence.trouble or f'{evidence.changed[0]} changed after the run'}",
            f"gpucourse run {exercise.id}",
        )
    if failed_titles:
        record = runs.read(paths, exercise.id, evidence.run) if evidence.run else None
        return _advise_hint(paths, exercise.id, f"a check did not pass: {failed_titles[0]}", record)
    if any(part.verdict == "passed" for part in evidence.parts):
        return "your part is right: run the exercise on its nodes", f"gpucourse run {exercise.id}"
    return f"read what it is about (gpucourse show {exercise.id}), and run it", f"gpucourse run {exercise.id}"
