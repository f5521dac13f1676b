"""The quiz of a course, `modules/quiz.yaml`, and the stored attempts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from pydantic import Field, model_validator

from gpucourse.model.fields import ModuleId, Slug, Strict, Text
from gpucourse.model.questions import Question
from gpucourse.model.score import Try


class Lesson(Strict):
    """The topic of a group of questions."""

    id: Slug = Field(description="its name, which questions use")
    title: Text = Field(description="what it is about, as the learner reads it")
    module: ModuleId | None = Field(
        default=None, description="the module that teaches it, in quotes: gpucourse quiz 3 asks only its questions"
    )


class QuizQuestion(Question):
    """A question of the quiz: a choice or a plain number, with its explanation."""

    lesson: Slug = Field(description="the id of the lesson that it belongs to")
    module: ModuleId | None = Field(default=None, description="the module that teaches it, if it is not that of its lesson")
    kind: Literal["numeric", "choice"] = Field(description="a plain number, or one of several options")
    explanation: Text = Field(description="why the answer is right; shown after the answer")

    @model_validator(mode="after")
    def _refuse_run_fields(self) -> QuizQuestion:
        if self.reads:
            raise ValueError(f"a quiz does not refer to a run: {self.reads[0]} must be a plain number")
        return self


class Quiz(Strict):
    """All questions, in the order in which they are asked."""

    format: Literal[1] = Field(description="the format of this file; 1")
    title: Text = Field(description="the heading of the quiz")
    lessons: tuple[Lesson, ...] = Field(min_length=1, description="the groups of questions, each with an id and a title")
    questions: tuple[QuizQuestion, ...] = Field(min_length=1, description="the questions, in the order in which they are asked")

    def lesson(self, name: str) -> Lesson:
        """Return the lesson of that name."""
        return next(lesson for lesson in self.lessons if lesson.id == name)

    def select(self, module: str) -> tuple[QuizQuestion, ...]:
        """Return the questions about a module."""
        modules = {lesson.id: lesson.module for lesson in self.lessons}
        return tuple(question for question in self.questions if (question.module or modules[question.lesson]) == module)

    @model_validator(mode="after")
    def _agree(self) -> Quiz:
        for kind, names in (("lesson", [item.id for item in self.lessons]), ("question", [item.id for item in self.questions])):
            if duplicate := next((name for name in names if names.count(name) > 1), None):
                raise ValueError(f"the {kind} {duplicate} appears twice")
        lessons = {lesson.id for lesson in self.lessons}
        for question in self.questions:
            if question.lesson not in lessons:
                raise ValueError(f"question {question.id}: there is no lesson {question.lesson}")
            if len(set(question.options)) < len(question.options):
                raise ValueError(f"question {question.id}: an option appears twice")
        for lesson in self.lessons:
            if all(question.lesson != lesson.id for question in self.questions):
                raise ValueError(f"lesson {lesson.id} has no question")
        return self


@dataclass(kw_only=True)
class Tries:
    """`quiz.json`: every attempt, oldest first. Only the newest may be unfinished."""

    version: int = 1
    tries: list[Try] = field(default_factory=list)
