"""Mutations: the learner edits a script, and predicts which check will fail."""

from __future__ import annotations

from dataclasses import replace

from gpucourse.context import Context
from gpucourse.errors import GpucourseError
from gpucourse.grading.answers import MAX_ATTEMPTS, compute_credit
from gpucourse.model.answer import AnswerResult, AnswerVerdict
from gpucourse.model.manifest import Exercise
from gpucourse.model.questions import Question
from gpucourse.runs.mutations import is_as_predicted
from gpucourse.runs.results import verdict_on
from gpucourse.workspace import runs, seals


def judge_mutation(context: Context, exercise: Exercise, question: Question) -> AnswerResult:
    """Return the result for a mutation. It comes from the runs with `--expect-red` after an edit of the question's file. The
    first right prediction counts, and earns less for each wrong one before it. After MAX_ATTEMPTS wrong ones, the result is
    final."""
    wrong_count = 0
    for record in runs.readable(context.paths, exercise.id)[0]:
        if not record.expected_red or question.edit not in record.edited or record.state != "succeeded":
            continue
        if seals.find_changed_files(runs.files_of(context.paths, record), seals.EVIDENCE):
            continue
        try:
            verdict = verdict_on(context, exercise, record)
        except GpucourseError:  # a file is damaged, so the run shows nothing
            continue
        if record.expected_red == question.check and is_as_predicted(record, verdict):
            text = f"as you predicted: {question.check} failed in run {record.id}"
            return _make_result(question, "passed", text, compute_credit(question, wrong_count, is_right=True))
        wrong_count += 1
    if not wrong_count:
        return _make_result(question, "open", "", None)
    if wrong_count >= MAX_ATTEMPTS:
        return replace(
            _make_result(question, "failed", f"{question.check} would have failed; final, counts 0 %", 0.0),
            final=True,
            explanation=question.explanation or "",
        )
    return _make_result(question, "failed", f"not yet; wrong attempts so far: {wrong_count}", 0.0)


def _make_result(question: Question, verdict: AnswerVerdict, text: str, share: float | None) -> AnswerResult:
    return AnswerResult(
        id=question.id,
        kind=question.kind,
        text=question.text,
        verdict=verdict,
        answer=question.check if verdict == "passed" else None,
        said=text,
        explanation=(question.explanation or "") if verdict == "passed" else "",
        share=share,
    )
