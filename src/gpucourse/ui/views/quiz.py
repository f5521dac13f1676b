"""The quiz on the screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpucourse.model.answer import AnswerResult
from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.tables import Block, Column, Facts, Items, Paragraph, View, table
from gpucourse.ui.text import format_count
from gpucourse.ui.views.answers import STYLES

if TYPE_CHECKING:
    from gpucourse.model.quiz import Quiz, QuizQuestion, Tries


def question(quiz: Quiz, item: QuizQuestion, number: int) -> View:
    """Show one question to answer."""
    lesson = quiz.lesson(item.lesson)
    blocks: list[Block] = [Paragraph(item.text)]
    if item.choices:
        blocks.append(Items(tuple(f"{name}. {text}" for name, text in item.choices.items())))
    return View(title=f"{number} of {len(quiz.questions)}  {lesson.title}", blocks=tuple(blocks))


def questions(quiz: Quiz) -> View:
    """Show every question with its name, for a person who answers with `--set`."""
    blocks: list[Block] = []
    for lesson in quiz.lessons:
        lesson_questions = [question for question in quiz.questions if question.lesson == lesson.id]
        pairs = tuple(
            (question.id, "\n".join([question.text, *(f"{a}. {text}" for a, text in question.choices.items())]))
            for question in lesson_questions
        )
        blocks.append(Facts(pairs, title=lesson.title))
    return View(title=quiz.title, blocks=tuple(blocks), footer=("Answer: gpucourse quiz --set NAME=ANSWER",))


def result(quiz: Quiz, results: Sequence[AnswerResult], tries: Tries) -> View:
    """Show how a finished attempt went, lesson by lesson, with the explanation of what was wrong."""
    right = {item.id for item in results if item.verdict == "passed"}
    columns: list[Column | str] = [Column("lesson", wrap=True), Column("right", align="right"), Column("of", align="right")]
    rows = []
    for lesson in quiz.lessons:
        question_ids = [item.id for item in quiz.questions if item.lesson == lesson.id]
        rows.append((lesson.title, str(len(right & set(question_ids))), str(len(question_ids))))
    blocks: list[Block] = [table(columns, rows)]
    explained = {item.id: item.explanation for item in quiz.questions}
    wrong = tuple((item.id, explained[item.id]) for item in results if item.id not in right)
    if wrong:
        blocks.append(Facts(wrong, title="Wrong answers, and why"))
    blocks.append(Paragraph(f"{len(right)} of {len(results)} right", "good" if len(right) == len(results) else "strong"))
    finished_count = sum(attempt.ended is not None for attempt in tries.tries)
    return View(
        title=quiz.title,
        blocks=tuple(blocks),
        footer=(f"{format_count(finished_count, 'attempt')} so far. Another: gpucourse quiz --again",),
    )


def open_attempt(quiz: Quiz, answered: int, right: int) -> View:
    """Show an attempt that is still open."""
    progress = f"{answered} of {len(quiz.questions)} answered, {right} right so far"
    return View(title=quiz.title, blocks=(Paragraph(progress),), footer=("Continue: gpucourse quiz",))


def judgement(result: AnswerResult) -> View:
    """Show the result of one answer, with the explanation."""
    style = STYLES.get(result.verdict, "dim")
    blocks: list[Block] = [Paragraph(f"{UNICODE.mark(result.verdict)} {result.said}", style), Paragraph(result.explanation)]
    return View(blocks=tuple(blocks))
