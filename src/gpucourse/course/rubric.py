"""The rubric of a course, `modules/rubric.yaml`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gpucourse.course.written import read_beside
from gpucourse.model.manifest import Exercise, Module
from gpucourse.model.rubric import MAX_UNEDITED_SHARE, UNEDITED_KINDS, Kind, Rubric, RubricPart

FILE = "rubric.yaml"


def read_rubric(modules: Path) -> Rubric | None:
    """Read the rubric next to the modules, or return None if there is none. Raises ManifestError with every error."""
    return read_beside(modules, FILE, Rubric)


def parts_of(rubric: Rubric | None, modules: tuple[Module, ...]) -> tuple[RubricPart, ...]:
    """Return every part of the rubric; a part without a title gets the title of its module. Without a rubric,
    return nothing.
    """
    titles = {module.id: module.title for module in modules}
    parts = rubric.parts if rubric else ()
    return tuple(part.model_copy(update={"title": part.title or titles.get(part.module, "")}) for part in parts)


def find_unknown_modules(rubric: Rubric, modules: tuple[Module, ...]) -> Iterator[str]:
    """Yield the modules and exercises in the rubric that this course does not have, and the rows that no learner can earn, one
    line each."""
    by_id = {module.id: module for module in modules}
    for part in rubric.parts:
        module = by_id.get(part.module)
        if module is None:
            yield f"{FILE}: parts.{part.module}: there is no module {part.module}"
            continue
        for row in part.rows:
            label = f"{FILE}: parts.{part.module}.{row.id}"
            missing = [number for number in row.exercises if module.exercise(number) is None]
            yield from (f"{label}: there is no exercise {number}" for number in missing)
            exercises = [item for item in module.exercises if not row.exercises or item.id in row.exercises]
            for kind in row.evidence:
                if exercises and not any(_find_required_kinds(item)[kind] for item in exercises):
                    names = ", ".join(item.id for item in exercises)
                    yield f"{label}: evidence {kind}: {names} asks for none, so no learner can earn it"


def find_exercises_above_the_limit(rubric: Rubric | None, modules: tuple[Module, ...]) -> Iterator[str]:
    """Yield the exercises in which the unedited script earns more than `MAX_UNEDITED_SHARE` of the points, one line each."""
    by_id = {module.id: module for module in modules}
    for part in parts_of(rubric, modules):
        for exercise in by_id[part.module].exercises if part.module in by_id else ():
            points, unedited_points = _count_points(part, exercise, len(by_id[part.module].exercises))
            has_own_work = exercise.yours or exercise.questions or exercise.predict
            if has_own_work and unedited_points > MAX_UNEDITED_SHARE * points + 1e-9:
                yield (
                    f"{FILE}: parts.{part.module}: checks and deliverables of {exercise.id} earn "
                    f"{100 * unedited_points / points:.0f} % of its points; the limit is {100 * MAX_UNEDITED_SHARE:.0f} %: "
                    "the other points are for what the learner writes and answers"
                )


def _count_points(part: RubricPart, exercise: Exercise, exercise_count: int) -> tuple[float, float]:
    """Return the points of an exercise in a part with `exercise_count` exercises, and the points for its checks and
    deliverables."""
    required_kinds = _find_required_kinds(exercise)
    points = unedited_points = 0.0
    for row in part.rows:
        if row.exercises and exercise.id not in row.exercises:
            continue
        shares = row.shares([kind for kind, is_required in required_kinds.items() if is_required])
        exercise_points = row.points / len(row.exercises or range(exercise_count))
        points += exercise_points if shares else 0.0
        unedited_points += exercise_points * sum(share for kind, share in shares.items() if kind in UNEDITED_KINDS)
    return points, unedited_points


def _find_required_kinds(exercise: Exercise) -> dict[Kind, bool]:
    """Return, for each kind of evidence, whether the exercise requires it."""
    return {
        "checks": bool(exercise.checks),
        "deliverables": bool(exercise.deliverables),
        "yours": bool(exercise.yours),
        "answers": bool(exercise.questions or exercise.predict),
    }
