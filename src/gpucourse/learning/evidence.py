"""The evidence of an exercise: the run that counts, judged again, with its answers, its files and its seal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpucourse.context import Context, ReviewedWork
from gpucourse.course.answer_sheet import load_sheet
from gpucourse.errors import GpucourseError, ManifestError, MissingError, UsageError
from gpucourse.grading.answers import fingerprint, judge
from gpucourse.grading.checks import is_gpu_evidence
from gpucourse.learning.attempts import JUDGED, Attempts, count_wrong, is_submitted, read_attempts
from gpucourse.learning.mutations import judge_mutation
from gpucourse.learning.predictions import judge_predictions
from gpucourse.model.answer import AnswerResult, Judgement, Review
from gpucourse.model.manifest import Exercise, LearnerPart
from gpucourse.model.questions import Question
from gpucourse.model.record import RunRecord
from gpucourse.model.score import ExerciseEvidence, PartReview
from gpucourse.model.verdict import ExerciseVerdict, PartResult, choose_needed
from gpucourse.runs.parts import add_checks, is_solution, make_doubtful, read_part_results
from gpucourse.runs.results import material, read_handed_in_verdict, verdict_on
from gpucourse.workspace import runs, seals
from gpucourse.workspace.files import read_record
from gpucourse.workspace.paths import WorkspacePaths


def find_counting_run(paths: WorkspacePaths, exercise: Exercise) -> RunRecord | None:
    """Return the run that counts for an exercise: the newest good run whose verdict is handed in, otherwise the newest judged
    run that succeeded. A learner's own script counts for no exercise."""
    verdict = read_handed_in_verdict(paths, exercise.id)
    if verdict is not None and (handed_in := _find_candidate(paths, exercise, verdict.run)) is not None:
        return handed_in
    newest_first = candidates(paths, exercise)[::-1]
    return next((record for record in newest_first if record.verdict is not None), next(iter(newest_first), None))


def find_newest_candidate(paths: WorkspacePaths, exercise: Exercise) -> RunRecord | None:
    """Return the newest run that can be evidence for an exercise. Raises the errors of `candidates`."""
    return next(reversed(candidates(paths, exercise)), None)


def candidates(paths: WorkspacePaths, exercise: Exercise) -> list[RunRecord]:
    """Return the runs that can be evidence for an exercise, oldest first. Unreadable runs are left out. Raises MissingError or
    NewerFormat if nothing is left and some runs were unreadable.
    """
    records, errors = runs.readable(paths, exercise.id)
    evidence_records = [record for record in records if record.is_evidence]
    if errors and not evidence_records:
        raise next(iter(errors.values()))
    return evidence_records


def find_good_run(paths: WorkspacePaths, exercise: Exercise, run: str) -> RunRecord:
    """Return the run of an exercise with the typed id.

    Raises UnknownName if there is no such run, and MissingError if its record cannot be read. Raises UsageError if it is a run
    of another exercise, did not succeed, or ran a learner's own script.
    """
    record = runs.find(paths, run, exercise.id)
    if record.exercise != exercise.id:
        raise UsageError(
            f"run {record.id} is a run of {record.exercise}, not of {exercise.id}", hint=f"gpucourse runs {exercise.id}"
        )
    if record.state != "succeeded":
        raise UsageError(f"run {record.id} did not succeed: it is {record.state}", hint=f"gpucourse runs {exercise.id}")
    if record.own_script:
        raise UsageError(
            f"run {record.id} ran {record.subject}, a script of your own, which does not count towards any exercise",
            hint=f"gpucourse run {exercise.id}",
        )
    return record


def answers_of(context: Context, exercise: Exercise, *, in_sheet: bool = False) -> tuple[AnswerResult, ...]:
    """Return every question with the result of its submitted answer. An answer that cannot be read counts as open, with the
    reason.

    `in_sheet`: include unsubmitted answers in the sheet, as if each were a first attempt.
    If the run's files are damaged or have changed since it ended, only the answers that need the run cannot be compared.
    """
    sheet = load_sheet(context.paths.answers(exercise.id), exercise)
    attempts = None if in_sheet else read_attempts(context.paths, exercise.id)
    judgements = read_judgements(context.reviewed, exercise.id)
    self_judgements = _read_newest_judgements(context.paths.review(exercise.id))
    run_evidence, gpu, trouble = None, False, ""
    try:
        if record := _find_run_of_answers(context.paths, exercise, sheet.run if sheet else None):
            run_evidence, gpu = read_run_evidence(context.paths, record)
    except GpucourseError as error:
        trouble = error.what

    def judge_answer(question: Question, wrong_before: int = 0) -> AnswerResult:
        answer = sheet.answers.get(question.id) if sheet else None
        key = (question.id, fingerprint(answer)) if answer is not None else ("", "")
        judgement = judgements.get(key)
        try:
            return judge(
                question,
                answer,
                run_evidence,
                on_gpu=gpu,
                judgement=judgement or self_judgements.get(key),
                self_judged=judgement is None,
                wrong_before=wrong_before,
            )
        except ValueError as error:
            return AnswerResult(
                id=question.id, kind=question.kind, text=question.text, verdict="open", answer=str(answer), said=str(error)
            )

    results = (
        judge_mutation(context, exercise, question)
        if question.kind == "mutation"
        else _weigh_attempts(judge_answer, question, attempts)
        for question in exercise.questions
    )
    return tuple(replace(result, said=trouble) if trouble and result.verdict == "error" else result for result in results)


def read_run_evidence(paths: WorkspacePaths, record: RunRecord) -> tuple[Mapping[str, Mapping[str, Any]], bool]:
    """Return the evidence of a run, with which answers are compared, and whether the run used a GPU.

    Raises MissingError if its files are damaged or have changed since it ended.
    """
    run_evidence = material(paths, record)
    if changed_files := seals.find_changed_files(runs.files_of(paths, record), seals.EVIDENCE):
        raise MissingError(
            f"{', '.join(changed_files)} of run {record.id} changed after it had ended, so nothing is compared with it",
            hint=f"put it back as it was, or run it again: gpucourse run {record.exercise}",
        )
    return run_evidence, is_gpu_evidence(run_evidence["metrics"], record.mode)


def find_answered_run(paths: WorkspacePaths, exercise: Exercise) -> RunRecord | None:
    """Return the run that the submitted answers are about, or None if there is no such run, or if the sheet cannot be read."""
    try:
        sheet = load_sheet(paths.answers(exercise.id), exercise)
    except ManifestError:
        return None
    return _find_run_of_answers(paths, exercise, sheet.run) if sheet else None


Judgements = Mapping[tuple[str, str], Judgement]
"""The newest judgement of each text, by the question and the digest of the text."""


def read_judgements(reviewed: ReviewedWork | None, exercise_id: str) -> Judgements:
    """Return the judgements by the reviewer who opened this work, from the reviewer's own workspace. Return no judgements
    without a reviewer.

    This reads no file that the learner can write. Raises MissingError for a damaged file.
    """
    return _read_newest_judgements(reviewed.keeper.peer_review(reviewed.key, exercise_id)) if reviewed else {}


def _read_newest_judgements(path: Path) -> Judgements:
    review = read_record(path, Review)
    return {(judgement.question, judgement.answer_sha256): judgement for judgement in review.judgements} if review else {}


def gather(context: Context, exercise: Exercise, *, thorough: bool, with_prediction: bool = True) -> ExerciseEvidence:
    """Return all evidence of an exercise. Damaged files are reported in `trouble`, and count for nothing.

    `thorough`: compare every file of the run with its seal, not only the small files that checks read.
    `with_prediction`: include the prediction. Only points need it, and it requires reading the record of every run.
    """
    trouble = ""
    record = None
    try:
        record = find_counting_run(context.paths, exercise)
        verdict = verdict_on(context, exercise, record) if record else None
    except GpucourseError as error:
        verdict, trouble = None, error.what
    try:
        answers = answers_of(context, exercise)
    except GpucourseError as error:
        answers = tuple(AnswerResult(id=item.id, kind=item.kind, text=item.text, verdict="open") for item in exercise.questions)
        sheet_errors = f"answers.yaml has errors; gpucourse answer {exercise.id} lists them"
        trouble = trouble or (sheet_errors if isinstance(error, ManifestError) else error.what)
    prediction = judge_predictions(context.paths, exercise) if with_prediction else None
    parts = choose_needed(exercise.yours, _confirm_parts(context, exercise, verdict))
    evidence = ExerciseEvidence(
        exercise=exercise.id,
        run=record.id if record else None,
        answers=answers,
        prediction=prediction,
        parts=parts,
        wanted=tuple(item.title for item in exercise.deliverables if item.evidence == "logic"),
        trouble=trouble,
    )
    if record is None or verdict is None:
        return evidence
    files = runs.files_of(context.paths, record)
    gpu = is_gpu_evidence(material(context.paths, record)["metrics"], record.mode)
    seal = seals.read_seal(files)
    return replace(
        evidence,
        level="gpu" if gpu else "logic",
        checks=verdict.checks,
        wanted=tuple(item.title for item in exercise.deliverables) if gpu else evidence.wanted,
        handed_in=_list_handed_in(context.paths, exercise, record, seal),
        changed=seals.find_changed_files(files, None if thorough else seals.EVIDENCE, seal=seal),
    )


def review_parts(context: Context, exercise: Exercise, results: Iterable[PartResult]) -> dict[str, PartReview]:
    """Return further facts about each handed-in part, by its id: whether it is a solution of the course, whether only the
    learner's computer judged it, and a reviewer's judgement of exactly this file."""
    parts = {part.id: part for part in exercise.yours}
    try:
        judgements = read_judgements(context.reviewed, exercise.id)
    except MissingError:  # the reviewer's own file is damaged: the answers say so
        judgements = {}
    reviews: dict[str, PartReview] = {}
    for result in (result for result in results if result.sha256):
        judgement = judgements.get((result.id, result.sha256))
        file = context.paths.yours_file(exercise.id, result.file)
        part = parts[result.id]
        reviews[result.id] = PartReview(
            is_solution=result.verdict == "passed" and is_solution(context, exercise, part, file),
            by_learner=result.verdict == "passed" and not part.checks and judgement is None,
            share=judgement.share if judgement else None,
        )
    return reviews


def _confirm_parts(context: Context, exercise: Exercise, verdict: ExerciseVerdict | None) -> list[PartResult]:
    """Return the handed-in parts. A part that passed in a run gets the result that this run's seal and checks show now.
    `verdict` is the verdict on the run that counts, to avoid computing it again."""

    def confirm(part: LearnerPart, result: PartResult) -> PartResult:
        if result.verdict != "passed" or not result.run:
            return result
        try:
            return _confirm_in_run(context, exercise, part, result, verdict)
        except MissingError as error:
            return make_doubtful(result, error.what)

    return [confirm(*pair) for pair in zip(exercise.yours, read_part_results(context, exercise), strict=True)]


def _confirm_in_run(
    context: Context, exercise: Exercise, part: LearnerPart, result: PartResult, verdict: ExerciseVerdict | None
) -> PartResult:
    """Return the result of a part, updated by the checks of its run. Raises MissingError for a damaged file."""
    record = runs.read(context.paths, exercise.id, result.run)
    if record is None:  # the run was removed after it was found
        return make_doubtful(result, f"its run {result.run} is missing")
    files = runs.files_of(context.paths, record)
    file = files.yours_file(part.file).relative_to(files.folder).as_posix()
    seal = seals.read_seal(files)
    if file not in seal or seals.find_changed_files(files, (*seals.EVIDENCE, file), seal=seal):
        return make_doubtful(result, f"run {record.id} was changed after it had ended")
    if not part.checks:
        return result
    if verdict is None or verdict.run != record.id:
        verdict = verdict_on(context, exercise, record)
    return add_checks(part, result, verdict.checks)


def _find_run_of_answers(paths: WorkspacePaths, exercise: Exercise, run: str | None) -> RunRecord | None:
    return (_find_candidate(paths, exercise, run) if run else None) or find_counting_run(paths, exercise)


def _find_candidate(paths: WorkspacePaths, exercise: Exercise, run: str) -> RunRecord | None:
    """Return the run of that id if it can be evidence for the exercise, or None if it cannot, or is unreadable."""
    try:
        record = runs.read(paths, exercise.id, run)
    except MissingError:
        return None
    return record if record is not None and record.is_evidence else None


def _weigh_attempts(
    judge_answer: Callable[[Question, int], AnswerResult], question: Question, attempts: Attempts | None
) -> AnswerResult:
    """Return the result of an answer, with credit that depends on earlier attempts. The result is open if no answer was ever
    submitted."""
    result = judge_answer(question, 0)
    if attempts is None or result.verdict not in JUDGED:
        return result
    if not is_submitted(attempts, result):
        return replace(result, verdict="open", said=_NOT_GIVEN, explanation="", share=None, final=False)
    return judge_answer(question, count_wrong(attempts, result))


_NOT_GIVEN = "is in answers.yaml, but not submitted yet: gpucourse answer"


def _list_handed_in(paths: WorkspacePaths, exercise: Exercise, record: RunRecord, seal: Mapping[str, str]) -> tuple[str, ...]:
    """Return the titles of the deliverables that are present and that, according to the run's `seal`, have not changed since
    the run."""
    files, folder = runs.files_of(paths, record), paths.deliverables(exercise.id)
    titles: list[str] = []
    for deliverable in exercise.deliverables:
        names = [source.relative_to(files.folder).as_posix() for source in sorted(files.folder.glob(deliverable.source))]
        sealed_names = [name for name in names if name in seal]
        if sealed_names and all(seals.sha256(folder / name) == seal[name] for name in sealed_names):
            titles.append(deliverable.title)
    return tuple(titles)
