"""The screens of an exercise's questions, answers and predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gpucourse.model.answer import AnswerResult, PredictionResult
from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.tables import (
    Block,
    Cell,
    Content,
    Items,
    Paragraph,
    Style,
    View,
    facts,
    name_column,
    number_column,
    table,
    text_column,
)
from gpucourse.ui.text import format_count
from gpucourse.ui.views.plan import parameters
from gpucourse.ui.views.words import list_choices

if TYPE_CHECKING:
    from gpucourse.model.check import Check
    from gpucourse.model.manifest import Exercise
    from gpucourse.model.questions import Prediction, Question

_GOOD = "A good answer says"
_MAX_ANSWER = 30
"""The maximum number of characters of an answer that the table shows."""

STYLES: dict[str, Style] = {"passed": "good", "failed": "bad", "error": "warn", "kept": "accent"}
WORDS = {
    "passed": "right",
    "failed": "wrong",
    "error": "not comparable",
    "not_measured": "not measured",
    "kept": "saved",
    "open": "open",
}


def answers(
    exercise: Exercise,
    results: Sequence[AnswerResult],
    *,
    new_results: Sequence[AnswerResult] = (),
    brief: bool = False,
    run: str | None = None,
    mode: str = "",
) -> View:
    """Show the new results with their explanations, then every question with its result, one on each line.

    `brief` leaves out the questions, and counts them instead.
    """
    counts = summary(results, names=brief)
    unreviewed = [
        result.id for result in (new_results if brief else results) if result.verdict == "kept" and result.share is None
    ]
    review = f"Compare your text with what a good answer says, and review it: gpucourse answer {exercise.id} --review"
    questions = table(["", name_column("question"), "answer", text_column("")], [] if brief else map(_row, results))
    return View(
        title=f"{exercise.id}  questions{f', run {run}' if run else ''}",
        blocks=[
            *(block for result in new_results for block in _explain(result)),
            questions,
            Paragraph(counts),
            Paragraph(review if unreviewed else "", "dim"),
        ],
        mode=mode,
    )


def _explain(result: AnswerResult) -> list[Block]:
    """Return one result, on a line that begins with the name of its question, and its explanation below."""
    sentence = f"{mark(result.verdict)} {result.id}: {result.said or WORDS[result.verdict]}"
    return [Paragraph(sentence, STYLES.get(result.verdict, "dim")), *_describe(result)]


def _describe(result: AnswerResult) -> list[Block]:
    """Return the explanation of a result, and what a good text says."""
    return [Paragraph(result.explanation), Paragraph(f"{_GOOD}: {result.look_for}" if result.look_for else "")]


def question(item: Question, number: int, total: int, *, heading: str = "", earlier_answer: str | None = None) -> View:
    """Show one question to answer, under its name or another heading."""
    answer = "" if earlier_answer is None else f"Your answer so far: {earlier_answer}"
    return View(
        title=f"{number} of {total} · {heading or item.id}",
        blocks=[Paragraph(item.text), Items(list_choices(item.choices)), Paragraph(answer, "dim")],
    )


def mutation(item: Question, number: int, total: int, command: str, *, is_answered: bool = False) -> View:
    """Show a question that a run answers, and the command for that run. If a run has already answered the question, say this
    instead."""
    if is_answered:
        return View(blocks=[Paragraph(f"Question {number} of {total} was answered by a run: {item.id}", "dim")])
    title = f"Question {number} of {total} is answered by a run{'' if command in item.text else f': {command}'}"
    return View(title=title, blocks=[Paragraph(item.text)])


def red_checks(checks: Sequence[Check]) -> View:
    """Show the checks from which the learner chooses the one that will fail."""
    rows = [(str(number), check.id, check.title) for number, check in enumerate(checks, 1)]
    return View(
        title="Which check will fail?", blocks=[table([number_column(""), name_column("name"), text_column("check")], rows)]
    )


def judgement(result: AnswerResult) -> View:
    """Show the result of one answer immediately after it was typed."""
    sentence = f"{mark(result.verdict)} {result.said or WORDS[result.verdict]}"
    return View(blocks=[Paragraph(sentence, STYLES.get(result.verdict, "dim")), *_describe(result)])


def text(exercise: Exercise, result: AnswerResult, number: int, total: int) -> View:
    """Show a free text and what a good answer says, for the learner to compare."""
    pairs = [("question", result.text), ("your answer", result.answer or ""), ("a good answer", result.look_for)]
    return View(title=f"{number} of {total} · {exercise.id} {result.id}", blocks=[facts(pairs)])


def prediction(item: Prediction, nodes: int, values: Mapping[str, object]) -> View:
    """Show what to predict, and what the result depends on, before the ranks start."""
    about = facts([("nodes", str(nodes)), ("parameters", parameters(values))])
    return View(
        title="Predict, then run",
        blocks=[Paragraph(item.text, "strong"), about, Items(list_choices(item.choices))],
        footer=["A prediction can earn points. Press Enter to run without one."],
    )


def prediction_result(result: PredictionResult) -> list[Block]:
    """Return a prediction next to what the run measured."""
    style = STYLES.get(result.verdict, "dim")
    comparison = facts(
        [
            ("predicted", result.prediction),
            ("measured", result.measurement),
            ("result" if result.measurement else "", Cell(f"{mark(result.verdict)} {result.deviation}", style)),
        ],
        title="Your prediction",
    )
    return [comparison, Paragraph(result.explanation)]


def mark(verdict: str) -> str:
    """Return the sign of an answer: the sign that a check would have, or a bullet for a text that a person judges."""
    return UNICODE.bullet if verdict == "kept" else UNICODE.mark(verdict)


def summary(results: Sequence[AnswerResult], *, names: bool = False) -> str:
    """Return how many questions have each result: `6 questions: 2 right, 1 wrong, 3 saved`. `names` adds the names of the
    questions that are wrong or open."""
    counts = []
    for verdict, word in WORDS.items():
        if ids := [result.id for result in results if result.verdict == verdict]:
            counts.append(f"{len(ids)} {word}" + (f" ({', '.join(ids)})" if names and verdict in {"failed", "open"} else ""))
    return f"{format_count(len(results), 'question')}: {', '.join(counts)}"


def _row(result: AnswerResult) -> tuple[Content, ...]:
    style = STYLES.get(result.verdict, "dim")
    answer = " ".join((result.answer or "").split())
    return (
        Cell(mark(result.verdict), style),
        result.id,
        _shorten(answer),
        Cell(_name_result(result), style),
    )


def _shorten(answer: str) -> str:
    """Return at most `_MAX_ANSWER` characters of an answer, cut between two words, with an ellipsis for the rest."""
    if len(answer) <= _MAX_ANSWER:
        return answer
    start = answer[: _MAX_ANSWER - 1]
    return f"{start.rpartition(' ')[0] or start[:-1]} {UNICODE.ellipsis}"


def _name_result(result: AnswerResult) -> str:
    """Return the result of an answer in a few words, with its credit or the attempts left: `right, counts 50 %`, `wrong, 1
    attempt left`."""
    counts = "" if result.share is None or result.share == 1 else f", counts {100 * result.share:.0f} %"
    if result.verdict == "passed":
        return f"right{counts}"
    if result.verdict == "failed" and result.kind != "mutation":
        return f"wrong, final{counts}" if result.final else "wrong, 1 attempt left"
    if result.verdict == "kept" and result.share is not None:
        return f"{'self-reviewed' if result.self_judged else 'reviewed'}{counts}"
    if result.verdict == "open" and result.kind == "mutation":
        return "open, a run answers it"
    return result.said or WORDS[result.verdict]
