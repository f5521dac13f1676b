"""The screens of the quiz: its questions, and the results of an attempt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpucourse.model.answer import AnswerResult
from gpucourse.ui.tables import Facts, Paragraph, View, number_column, table, text_column
from gpucourse.ui.text import format_count
from gpucourse.ui.views import answers
from gpucourse.ui.views.words import list_choices

if TYPE_CHECKING:
    from gpucourse.model.manifest import Module
    from gpucourse.model.quiz import Quiz, QuizQuestion, Tries


def question(quiz: Quiz, item: QuizQuestion, number: int, total: int) -> View:
    """Show one question to answer."""
    return answers.question(item, number, total, heading=quiz.lesson(item.lesson).title)


def questions(quiz: Quiz, shown_questions: Sequence[QuizQuestion]) -> View:
    """Show these questions with their names, for a person who answers with `--set`."""
    blocks = [
        Facts(
            [
                (question.id, "\n".join([question.text, *list_choices(question.choices)]))
                for question in shown_questions
                if question.lesson == lesson.id
            ],
            title=lesson.title,
        )
        for lesson in quiz.lessons
    ]
    return View(title=quiz.title, blocks=blocks, footer=["Answer: gpucourse quiz --set NAME=ANSWER"])


def result(quiz: Quiz, results: Sequence[AnswerResult], tries: Tries) -> View:
    """Show how a finished attempt went, lesson by lesson, with an explanation for each wrong answer."""
    right_ids = {item.id for item in results if item.verdict == "passed"}
    rows = []
    for lesson in quiz.lessons:
        question_ids = {item.id for item in quiz.questions if item.lesson == lesson.id}
        rows.append((lesson.title, str(len(right_ids & question_ids)), str(len(question_ids))))
    explanations = {item.id: item.explanation for item in quiz.questions}
    wrong_items = [(item.id, explanations[item.id]) for item in results if item.id not in right_ids]
    finished_count = sum(attempt.ended is not None for attempt in tries.tries)
    return View(
        title=quiz.title,
        blocks=[
            table([text_column("lesson"), number_column("right"), number_column("of")], rows),
            Facts(wrong_items, title="Wrong answers, and why"),
            Paragraph(f"{len(right_ids)} of {len(results)} right", "strong" if wrong_items else "good"),
        ],
        footer=[f"{format_count(finished_count, 'attempt')} so far. Another: gpucourse quiz --again"],
    )


def open_attempt(quiz: Quiz, answer_count: int, right_count: int) -> View:
    """Show an attempt that is still open."""
    progress = f"{answer_count} of {len(quiz.questions)} answered, {right_count} right so far"
    return View(title=quiz.title, blocks=[Paragraph(progress)], footer=["Continue: gpucourse quiz"])


def module_result(module: Module, results: Sequence[AnswerResult], quiz: Quiz, answer_count: int) -> View:
    """Show how the questions about one module went, and how far the whole attempt has come."""
    count = len(quiz.select(module.id))
    right_count = sum(item.verdict == "passed" for item in results)
    wrong_count = sum(item.verdict == "failed" for item in results)
    words = f"{right_count} of {count} right, {wrong_count} wrong, {count - right_count - wrong_count} open"
    attempt = f"These answers are part of the attempt: {answer_count} of {len(quiz.questions)} answered."
    return View(
        title=f"{module.id}  {module.title}: quiz",
        blocks=[Paragraph(words, "good" if right_count == count else "strong")],
        footer=[f"{attempt} All questions: gpucourse quiz"],
    )
