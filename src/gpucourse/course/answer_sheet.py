"""`answers.yaml`: the learner's answers to the questions of one exercise, as a file that a person can edit. Reading it reports
every error; writing replaces the whole file."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from itertools import count
from pathlib import Path

from pydantic import Field

from gpucourse.course.written import did_you_mean, format_complaints, read
from gpucourse.errors import ManifestError, UsageError
from gpucourse.model.fields import ExerciseId, Scalar, Strict
from gpucourse.model.manifest import Exercise
from gpucourse.model.questions import Question
from gpucourse.outside.files import read_bounded
from gpucourse.outside.names import OutsideError
from gpucourse.outside.yaml_reader import MAX_BYTES, Complaint
from gpucourse.storage import storing, write_text


class Sheet(Strict):
    """The answers to one exercise, by the ids of its questions. `run` is the run that the numbers come from."""

    exercise: ExerciseId
    run: str | None = None
    answers: dict[str, Scalar | None] = Field(default_factory=dict)


def load_sheet(path: Path, exercise: Exercise) -> Sheet | None:
    """Return the answers in a file, or None if there is no file. Raises ManifestError with every error."""
    return read_sheet(path, exercise) if path.is_file() else None


def read_sheet(path: Path, exercise: Exercise) -> Sheet:
    """Return the answers in a file. Raises UsageError if the file is missing. Raises ManifestError with every error: the file
    is not YAML, is for another exercise, or answers an unknown question."""
    hint = f"gpucourse answer {exercise.id} --template writes a sheet to fill in"
    try:
        raw = read_bounded(path.resolve(), MAX_BYTES)
    except (OSError, OutsideError, RuntimeError) as error:  # RuntimeError: a link that leads to itself
        cause = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{path} cannot be read: {cause}", hint=hint) from error
    sheet, document = read(raw, Sheet, str(path), hint=hint)
    if sheet.exercise != exercise.id:
        line = document.line(("exercise",))
        reason = f"{path}: exercise: these are answers to {sheet.exercise}, not to {exercise.id}, line {line}"
        raise ManifestError([reason], hint=f"gpucourse answer {sheet.exercise} --file {path}")
    ids = [question.id for question in exercise.questions]
    unknown_names = [name for name in sheet.answers if name not in ids and name not in exercise.former_questions]
    if unknown_names:
        complaints = [
            Complaint(
                ("answers", name),
                f"{exercise.id} has no such question{did_you_mean(name, ids) or '; its questions: ' + ', '.join(ids)}",
            )
            for name in unknown_names
        ]
        raise ManifestError(
            format_complaints(str(path), document, complaints), hint=f"gpucourse show {exercise.id} lists its questions"
        )
    return sheet


def set_damaged_sheet_aside(path: Path, exercise: Exercise) -> Path | None:
    """Rename a sheet that has errors, so that a new one can be written, and return its new name: `answers.yaml.damaged`, with
    a number if there is one already. Return None for a sheet without errors. Raises StorageError if it cannot be renamed.
    """
    try:
        load_sheet(path, exercise)
    except ManifestError:
        names = (path.with_name(f"{path.name}.damaged{number or ''}") for number in count())
        with storing(path):
            return path.rename(next(name for name in names if not name.exists()))
    return None


def write_sheet(path: Path, exercise: Exercise, answers: Mapping[str, Scalar], run: str | None) -> None:
    """Write the answers to a file. Raises StorageError if it cannot be written."""
    write_text(path, render(exercise, answers, run))


def render(exercise: Exercise, answers: Mapping[str, Scalar], run: str | None) -> str:
    """Return the sheet as text: the questions in the order of the exercise, each above its answer."""
    lines = [
        f"# Answers to {exercise.id}, {exercise.title}. Fill in what is empty, then: gpucourse answer {exercise.id}",
        f'exercise: "{exercise.id}"',
    ]
    if run:
        lines.append(f"run: {run}   # the run that your numbers come from")
    lines.append("answers:")
    for question in exercise.questions:
        lines += ["", *_render_question(question)]
        lines += _render_answer(question.id, answers.get(question.id))
    former = sorted(set(answers) - {question.id for question in exercise.questions})
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
    """Quote the text. Characters that YAML does not accept literally (control characters, line separators) become escapes."""
    words = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in words)


def _plain_block(text: str) -> bool:
    """Return whether a YAML block keeps this text unchanged."""
    return not text.startswith((" ", "\n", "\t")) and all(c == "\n" or c.isprintable() for c in text) and "\n\n\n" not in text
