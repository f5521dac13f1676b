"""`answers.yaml`: the answers of a learner to the questions of one exercise, as a file that can be written by hand."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence

from pydantic import Field

from gpucourse.course.complaints import did_you_mean, format_complaints
from gpucourse.course.written import read
from gpucourse.errors import ManifestError
from gpucourse.model.fields import ExerciseId, Scalar, Strict
from gpucourse.model.questions import Question
from gpucourse.outside.yaml_reader import Complaint


class Sheet(Strict):
    """The answers to one exercise, by the names of its questions. `run` is the run that the numbers are about."""

    exercise: ExerciseId
    run: str | None = None
    answers: dict[str, Scalar | None] = Field(default_factory=dict)


def parse(raw: bytes, shown: str, exercise: str, questions: Sequence[Question], former: Sequence[str] = ()) -> Sheet:
    """Parse the bytes of an answer sheet. `shown` is the file's name, `former` lists the questions of earlier versions.

    Raises ManifestError: not YAML, of another exercise, a question that the exercise does not have.
    """
    hint = f"gpucourse answer {exercise} --template writes a sheet to fill in"
    sheet, document = read(raw, Sheet, shown, hint=hint)
    if sheet.exercise != exercise:
        line = document.line(("exercise",))
        reason = f"{shown}: exercise: these are answers to {sheet.exercise}, not to {exercise}, line {line}"
        raise ManifestError([reason], hint=f"gpucourse answer {sheet.exercise} --file {shown}")
    known = [question.id for question in questions]
    strange = [name for name in sheet.answers if name not in known and name not in former]
    if strange:
        complaints = [
            Complaint(
                ("answers", name),
                f"{exercise} has no such question{did_you_mean(name, known) or '; its questions: ' + ', '.join(known)}",
            )
            for name in strange
        ]
        raise ManifestError(
            format_complaints(shown, document, complaints), hint=f"gpucourse show {exercise} lists its questions"
        )
    return sheet


def render(exercise: str, title: str, questions: Sequence[Question], answers: Mapping[str, Scalar], run: str | None) -> str:
    """Return the sheet as text: each question above its answer, in the order of the exercise."""
    lines = [
        f"# Answers to {exercise}, {title}. Fill in what is empty, then: gpucourse answer {exercise}",
        f'exercise: "{exercise}"',
    ]
    if run:
        lines.append(f"run: {run}   # the run that your numbers speak of")
    lines.append("answers:")
    for question in questions:
        lines += ["", *_render_question(question)]
        lines += _render_answer(question.id, answers.get(question.id))
    former = sorted(set(answers) - {question.id for question in questions})
    lines += ["", "  # Asked by an earlier version of the course:"] if former else []
    for name in former:
        lines += _render_answer(name, answers[name])
    return "\n".join(lines) + "\n"


def _render_question(question: Question) -> list[str]:
    unit = f" ({question.unit})" if question.unit else ""
    lines = textwrap.wrap(" ".join(question.text.split()) + unit, 96, initial_indent="  # ", subsequent_indent="  # ")
    return lines + [f"  #   {name}. {' '.join(text.split())}" for name, text in question.choices.items()]


def _render_answer(name: str, answer: Scalar | None) -> list[str]:
    if answer is None:
        return [f"  {name}:"]
    text = answer if isinstance(answer, str) else json.dumps(answer)
    if isinstance(answer, str) and ("\n" in text or len(text) > 80) and _plain_block(text):
        return [f"  {name}: |", *(f"    {line}".rstrip() for line in text.rstrip("\n").split("\n"))]
    return [f"  {name}: {_quote(text) if isinstance(answer, str) else text}"]


def _quote(text: str) -> str:
    """Quote the text; characters that YAML does not accept literally (control characters, line separators) are escaped by
    number."""
    words = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in words)


def _plain_block(text: str) -> bool:
    """Return whether a block of YAML keeps this text unchanged."""
    return not text.startswith((" ", "\n", "\t")) and all(c == "\n" or c.isprintable() for c in text) and "\n\n\n" not in text
