"""Questions and answers on the screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gpucourse.model.answer import AnswerResult, PredictionResult
from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.tables import Block, Cell, Content, Items, Paragraph, Style, View, facts, strong, table, wrapped
from gpucourse.ui.text import format_count
from gpucourse.ui.views.plan import parameters
from gpucourse.ui.views.words import list_choices

if TYPE_CHECKING:
    from gpucourse.model.manifest import Exercise
    from gpucourse.model.questions import Prediction, Question

_GOOD = "A good answer says"
_COMPARE = "Compare: how much of this does your answer say? Only a reviewer's judgement earns points."
STYLES: dict[str, Style] = {"passed": "good", "failed": "bad", "error": "warn", "kept": "accent"}
WORDS = {
    "passed": "right",
    "failed": "not right",
    "error": "not comparable",
    "not_measured": "not measured",
    "kept": "saved",
    "open": "open",
}


def answers(
    exercise: Exercise, results: Sequence[AnswerResult], *, run: str | None = None, mode: str = "", next_step: str = ""
) -> View:
    """Show every question of an exercise with the result of its answer, and the explanations. `next_step` is the command that
    `gpucourse next` suggests."""
    described = facts(((result.id, result.look_for) for result in results), title=_GOOD)
    open_ones = [result.id for result in results if result.verdict == "open" and result.kind != "mutation"]
    mutations = [
        f"{result.id} is answered by a run: {exercise.mutation_command}"
        for result in results
        if result.kind == "mutation" and result.verdict != "passed"
    ]
    answer = f"gpucourse answer {exercise.id}"
    advice = "" if next_step == answer else f" Answer: {answer}"
    still_open = [f"Still open: {', '.join(open_ones)}.{advice}"] if open_ones else []
    return View(
        title=f"{exercise.id}  questions{f', run {run}' if run else ''}",
        blocks=[
            table(["", strong("question"), wrapped("answer"), wrapped("")], map(_row, results)),
            facts(((result.id, result.explanation) for result in results), title="Why"),
            described,
            Paragraph(_COMPARE if described.pairs else "", "dim"),
            Paragraph(summary(results)),
        ],
        footer=[*still_open, *mutations],
        mode=mode,
        next=next_step,
    )


def question(item: Question, number: int, of: int, *, heading: str = "", earlier_answer: str | None = None) -> View:
    """Show one question to answer, under its name or another heading."""
    answer = "" if earlier_answer is None else f"Your answer so far: {earlier_answer}"
    return View(
        title=f"{number} of {of}  {heading or item.id}",
        blocks=[Paragraph(item.text), Items(list_choices(item.choices)), Paragraph(answer, "dim")],
    )


def mutation(item: Question, number: int, of: int, command: str) -> View:
    """Show a question that a run answers, and the command for that run."""
    return View(title=f"{number} of {of} is answered by a run: {command}", blocks=[Paragraph(item.text)])


def judgement(result: AnswerResult) -> View:
    """Show the result of one answer immediately after it was typed."""
    sentence = f"{mark(result.verdict)} {result.said or WORDS[result.verdict]}"
    return View(
        blocks=[
            Paragraph(sentence, STYLES.get(result.verdict, "dim")),
            Paragraph(result.explanation),
            facts([(result.id, result.look_for)], title=_GOOD),
        ]
    )


def prediction(item: Prediction, nodes: int, values: Mapping[str, object]) -> View:
    """Show what to predict, and what the result depends on, before the ranks start."""
    about = facts([("nodes", str(nodes)), ("parameters", parameters(values))])
    return View(
        title="Predict, then run",
        blocks=[Paragraph(item.text, "strong"), about, Items(list_choices(item.choices))],
        footer=["Enter runs it without a prediction."],
    )


def prediction_result(result: PredictionResult) -> list[Block]:
    """Return a prediction next to what the run measured."""
    style = STYLES.get(result.verdict, "dim")
    comparison = facts(
        [
            ("predicted", result.prediction),
            ("measured", result.measurement),
            ("off by" if result.measurement else "", Cell(f"{mark(result.verdict)} {result.difference}", style)),
        ],
        title="Your prediction",
    )
    return [comparison, Paragraph(result.explanation)]


def mark(verdict: str) -> str:
    """Return the sign of an answer: the sign that a check would have, or a bullet for a text that a person judges."""
    return UNICODE.bullet if verdict == "kept" else UNICODE.mark(verdict)


def summary(results: Sequence[AnswerResult]) -> str:
    """Return how many questions have each result: `6 questions: 2 right, 1 not right, 3 saved`."""
    words = [result.verdict for result in results]
    counts = [f"{words.count(word)} {name}" for word, name in WORDS.items() if word in words]
    return f"{format_count(len(results), 'question')}: {', '.join(counts)}"


def _row(result: AnswerResult) -> tuple[Content, ...]:
    style = STYLES.get(result.verdict, "dim")
    text = " ".join((result.answer or "").split())
    return (
        Cell(mark(result.verdict), style),
        result.id,
        text if len(text) <= 120 else text[:119] + UNICODE.ellipsis,
        Cell(result.said or WORDS[result.verdict], style),
    )
