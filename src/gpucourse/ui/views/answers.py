"""Questions and answers on the screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gpucourse.model.answer import AnswerResult, PredictionResult
from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.tables import Block, Cell, Column, Content, Facts, Items, Paragraph, Style, View, facts, table
from gpucourse.ui.text import format_count
from gpucourse.ui.views.plan import parameters

if TYPE_CHECKING:
    from gpucourse.model.manifest import Exercise
    from gpucourse.model.questions import Prediction, Question

_GOOD = "A good answer says"
_COMPARE = "Compare: how much of this does your answer say? A reviewer's judgement gives the points, your own gives none."
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
    """Show every question of an exercise with the result of its answer, and the explanations. `next_step`: the command that
    `next` names."""
    columns: list[Column | str] = ["", Column("question", style="strong"), Column("answer", wrap=True), Column("", wrap=True)]
    blocks: list[Block] = [table(columns, [_row(result) for result in results])]
    explained = tuple((result.id, result.explanation) for result in results if result.explanation)
    if explained:
        blocks.append(Facts(explained, title="Why"))
    described = tuple((result.id, result.look_for) for result in results if result.look_for)
    if described:
        blocks.append(Facts(described, title=_GOOD))
        blocks.append(Paragraph(_COMPARE, "dim"))
    blocks.append(Paragraph(summary(results)))
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
        blocks=tuple(blocks),
        footer=(*still_open, *mutations),
        mode=mode,
        next=next_step,
    )


def question(item: Question, number: int, of: int, *, now: str | None = None) -> View:
    """Show one question to answer."""
    blocks: list[Block] = [Paragraph(item.text)]
    if item.choices:
        blocks.append(Items(tuple(f"{name}. {text}" for name, text in item.choices.items())))
    if now is not None:
        blocks.append(Paragraph(f"Your answer so far: {now}", "dim"))
    return View(title=f"{number} of {of}  {item.id}", blocks=tuple(blocks))


def mutation(item: Question, number: int, of: int, command: str) -> View:
    """Show a question that a run answers, and the command of that run."""
    return View(title=f"{number} of {of} is answered by a run: {command}", blocks=(Paragraph(item.text),))


def judgement(result: AnswerResult) -> View:
    """Show the result of one answer, right after it was typed."""
    style = STYLES.get(result.verdict, "dim")
    blocks: list[Block] = [Paragraph(f"{mark(result.verdict)} {result.said or WORDS[result.verdict]}", style)]
    if result.explanation:
        blocks.append(Paragraph(result.explanation))
    if result.look_for:
        blocks.append(Facts(((result.id, result.look_for),), title=_GOOD))
    return View(blocks=tuple(blocks))


def prediction(item: Prediction, nodes: int, values: Mapping[str, object]) -> View:
    """Show what to predict, and what it depends on, before the ranks start."""
    about = facts([("nodes", str(nodes)), ("parameters", parameters(values))])
    blocks: list[Block] = [Paragraph(item.text, "strong"), about]
    if item.choices:
        blocks.append(Items(tuple(f"{name}. {text}" for name, text in item.choices.items())))
    return View(title="Predict, then run", blocks=tuple(blocks), footer=("Enter runs it without a prediction.",))


def prediction_result(result: PredictionResult) -> list[Block]:
    """Return a prediction beside what the run measured."""
    style = STYLES.get(result.verdict, "dim")
    comparison = facts(
        [
            ("predicted", result.prediction),
            ("measured", result.measurement),
            ("off by" if result.measurement else "", Cell(f"{mark(result.verdict)} {result.difference}", style)),
        ],
        title="Your prediction",
    )
    return [comparison, *([Paragraph(result.explanation)] if result.explanation else [])]


def mark(verdict: str) -> str:
    """Return the sign of an answer: that of a check, or a bullet for a text that a person judges."""
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
