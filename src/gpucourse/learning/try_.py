"""`try`: judges the learner's parts of an exercise on this computer. No lab is needed."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gpucourse.context import Context
from gpucourse.course.part_files import find_syntax_error
from gpucourse.errors import UsageError
from gpucourse.model.event import Note
from gpucourse.model.manifest import Exercise, LearnerPart
from gpucourse.model.verdict import PartResult, choose_needed
from gpucourse.runs import parts


@dataclass(frozen=True, kw_only=True)
class TriedPart:
    """One part and its new result. `waited_s` is how long the judge took in seconds, including the import of torch."""

    part: LearnerPart
    file: Path
    result: PartResult
    waited_s: float


def try_parts(context: Context, exercise: Exercise, chosen_files: Iterable[Path] = ()) -> tuple[TriedPart, ...]:
    """Judge the learner's parts of an exercise, or only those in `chosen_files`, and hand in the right ones. Return the
    results.

    No process is started for a part that has not changed. Raises UsageError if the exercise has no part, and MissingError if
    torch is needed but not installed.
    """
    if not exercise.yours:
        raise UsageError(f"{exercise.id} has no part for you to write", hint=f"gpucourse show {exercise.id}")
    paths = set(chosen_files)
    files = parts.list_part_files(context, exercise)
    tried_parts = [
        _try_part(context, exercise, part, files[part.id]) for part in exercise.yours if not paths or files[part.id] in paths
    ]
    parts.keep(context, exercise, [(item.result, item.file) for item in tried_parts])
    needed_results = choose_needed(exercise.yours, [item.result for item in tried_parts])
    return tuple(item for item in tried_parts if item.result in needed_results)


def _try_part(context: Context, exercise: Exercise, part: LearnerPart, file: Path) -> TriedPart:
    start_s = time.monotonic()
    is_edited = part.judge and not parts.is_as_delivered(context, exercise, part, file)
    needs_torch = is_edited and part.torch and file.is_file() and find_syntax_error(file) is None
    if needs_torch and not context.judge.has_torch:
        context.watch(Note(text="importing torch ..."))
    result = parts.judge_part(context, exercise, part, file)
    return TriedPart(part=part, file=file, result=result, waited_s=time.monotonic() - start_s)
