"""The parts of an exercise that the learner writes: what is handed in of them, and how they were judged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpucourse.context import Context
from gpucourse.errors import MissingError, NewerFormat
from gpucourse.model.manifest import Exercise, LearnerPart
from gpucourse.model.verdict import KeptParts, PartResult
from gpucourse.workspace import seals
from gpucourse.workspace.files import copy_file, read_record, write_record
from gpucourse.workspace.lock import hold_lock


def part_results(context: Context, exercise: Exercise) -> tuple[PartResult, ...]:
    """The best state of each part that is handed in, in the manifest's order: from a run or from `try`; open where nothing is.

    A result counts only with the very file that it was given for. No code of the learner's runs. Raises NewerFormat.
    """
    kept = _read_kept(context, exercise.id).parts
    return tuple(_valid(context, exercise.id, part, kept.get(part.id)) or make_open(part) for part in exercise.yours)


def make_open(part: LearnerPart, says: str = "", *, run: str = "") -> PartResult:
    """The result of a part that is not written yet; `says` is the question in the learner's file, where it has one."""
    return PartResult(id=part.id, title=part.title, file=part.file, verdict="open", says=says or part.write, run=run)


def keep(context: Context, exercise: Exercise, judged: Sequence[tuple[PartResult, Path]]) -> None:
    """Hand in these results, each with the file that it was given for. A part that has passed stays passed, with its file: what
    the learner tries afterwards takes nothing away. An open part, or one that could not be judged, replaces nothing."""
    with hold_lock(context.paths.lock("yours"), f"keeping parts of {exercise.id}"):
        kept = _read_kept(context, exercise.id).parts
        new: dict[str, PartResult] = {}
        for part in exercise.yours:
            there = _valid(context, exercise.id, part, kept.get(part.id))
            result, file = next(((item, path) for item, path in judged if item.id == part.id), (None, None))
            if result is None or file is None or result.verdict not in {"passed", "failed"}:
                continue
            if there is not None and there.verdict == "passed" and result.verdict == "failed":
                continue
            copy_file(file, context.paths.yours_file(exercise.id, part.file))
            new[part.id] = result
        if new:
            write_record(context.paths.yours(exercise.id), KeptParts(parts={**kept, **new}))


def _read_kept(context: Context, exercise_id: str) -> KeptParts:
    """What is stored of an exercise's parts; nothing where the file is damaged. Raises NewerFormat."""
    try:
        return read_record(context.paths.yours(exercise_id), KeptParts) or KeptParts()
    except NewerFormat:
        raise
    except MissingError:
        return KeptParts()


def _valid(context: Context, exercise_id: str, part: LearnerPart, result: PartResult | None) -> PartResult | None:
    """The stored result, where it is one of this part and its file is the one that was judged."""
    if result is None or not result.sha256 or result.file != part.file:
        return None
    return result if seals.sha256(context.paths.yours_file(exercise_id, part.file)) == result.sha256 else None
