"""`hint`: the hints of an exercise, one at a time. The hints for the part with the newest verdict come first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gpucourse.context import Context
from gpucourse.errors import UnknownName, UsageError
from gpucourse.model.manifest import Exercise
from gpucourse.model.verdict import PartResult
from gpucourse.runs.parts import read_newest_results
from gpucourse.workspace.files import changing


@dataclass(frozen=True, kw_only=True)
class ShownHints:
    """The numbers of the hints to show, counted from 1.

    `options`: the options of the command that shows the next hint, or None after the last hint.
    `helps_try`: whether the last hint shown is about a part that `try` judges and that is not right yet.
    """

    exercise: Exercise
    numbers: tuple[int, ...]
    options: str | None
    helps_try: bool


def show_hints(
    context: Context, exercise_id: str, *, number: int | None = None, part: str | None = None, is_whole: bool = False
) -> ShownHints:
    """Return the hints to show, and store that the learner has seen them: the hint `number`, all hints with `is_whole`,
    otherwise the next one. After the last hint, the last one is shown again. `part` limits the hints to those about one part.

    Raises UnknownName for an unknown part, and UsageError if there is no such hint.
    """
    _, exercise = context.catalog.exercise(exercise_id)
    numbers = range(1, len(exercise.hints) + 1)
    if number is not None and number not in numbers:
        raise UsageError(
            f"{exercise.id} has no hint {number}; it has {len(numbers)}", hint=f"gpucourse hint {exercise.id} --all"
        )
    candidates = numbers if part is None else _list_numbers(exercise, part)
    results = read_newest_results(context.paths, exercise)
    order = _make_order(exercise, results)
    with changing(context.paths, context.paths.hints) as history:
        seen_numbers = _read_seen(history.get(exercise.id), numbers)
        unseen_numbers = sorted((candidate for candidate in candidates if candidate not in seen_numbers), key=order)
        shown_numbers = tuple(candidates) if is_whole else (number or (unseen_numbers or candidates[-1:])[0],)
        seen_numbers |= {*shown_numbers}
        history[exercise.id] = sorted(seen_numbers)
    if number is not None:
        options = f" --number {number + 1}" if number < len(numbers) else None
    else:
        options = None if seen_numbers >= {*candidates} else f" --part {part}" if part else ""
    name = exercise.hints[shown_numbers[-1] - 1].part
    is_right = name in results and results[name].verdict == "passed"
    helps_try = not is_right and any(part.judge and part.id == name for part in exercise.yours)
    return ShownHints(exercise=exercise, numbers=shown_numbers, options=options, helps_try=helps_try)


def _list_numbers(exercise: Exercise, name: str) -> Sequence[int]:
    """Return the numbers of the hints about a part, which is named by its id or its file. Raises UnknownName for an unknown
    part, and UsageError if it has no hints.
    """
    ids = {key: part.id for part in exercise.yours for key in (part.id, part.file)}
    if name not in ids:
        raise UnknownName("part", name, [part.id for part in exercise.yours])
    is_only_part = len(exercise.yours) == 1
    numbers = [number for number, hint in enumerate(exercise.hints, 1) if is_only_part or hint.part == ids[name]]
    if not numbers:
        raise UsageError(f"{exercise.id} has no hint for the part {ids[name]}", hint=f"gpucourse hint {exercise.id} --all")
    return numbers


def _make_order(exercise: Exercise, results: Mapping[str, PartResult]) -> Callable[[int], tuple[int, int]]:
    """Return the sort key of a hint's number. The order is: hints about the newest verdict, hints for parts that were wrong,
    hints for open parts and for no part, hints for parts that are right."""
    places = {part.id: part.instead_of or part.id for part in exercise.yours}
    right_places = {places[name] for name, result in results.items() if name in places and result.verdict == "passed"}

    def rank(number: int) -> tuple[int, int]:
        hint = exercise.hints[number - 1]
        result = results.get(hint.part) if hint.part else None
        if hint.part and places[hint.part] in right_places:
            return 3, number
        if result is None:
            return 2, number
        return int(result.way not in hint.ways), number

    return rank


def _read_seen(history: object, numbers: range) -> set[int]:
    """Return which of these hints the learner has seen. An earlier version stored only how many the learner had seen."""
    if isinstance(history, int):
        return {*numbers[: max(0, history)]}
    return {number for number in numbers if number in history} if isinstance(history, list) else set()
