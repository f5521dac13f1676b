"""Rules of a manifest that no single value shows: numbers that belong together, names used once, files that exist."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from gpucourse.limits import MAX_RANKS_PER_NODE
from gpucourse.model.manifest import Exercise, Module
from gpucourse.model.record import MOST_RESTARTS
from gpucourse.outside.yaml_reader import Complaint
from gpucourse.outside.yaml_reader import Path as Place

FOLDER = re.compile(r"(?P<number>\d+|B)-[a-z0-9-]+")
SHARED = "shared"
PROFILER = "profiled.py"  # among the shared files: it runs any other script under PyTorch's profiler

_NAMES = {"parameters": "name", "checks": "id", "questions": "id", "plots": "file", "yours": "id", "faults": "id"}
"""The lists of an exercise whose items must differ, each with the key that names an item."""

_SLURM_PARAMETERS = {"partition": "str", "jobs": "int", "array": "str", "at_once": "int"}
_COUNTS = {"procs_per_node": ("gpu", 1, MAX_RANKS_PER_NODE), "restarts": ("", 0, MOST_RESTARTS)}
"""The keys of `launch` that may name a parameter: the word that has its own meaning there, and the range."""


def number_of(folder: str) -> str | None:
    """Return the module's number in its folder's name: `3` for `03-parallel-computing`. None for any other name."""
    match = FOLDER.fullmatch(folder)
    if not match:
        return None
    return match["number"] if match["number"] == "B" else str(int(match["number"]))


def broken_rules(module: Module, folder: Path, exercises: Path) -> Iterator[Complaint]:
    """Yield every rule that the manifest in `folder` breaks; its scripts are in the folder of the same name in `exercises`."""
    if module.id != number_of(folder.name):
        yield Complaint(("id",), f"'{module.id}' is not the number of the folder {folder.name}")
    lessons: list[tuple[Place, str]] = [(("lesson",), module.lesson)]
    lessons += [(("further_lessons", index), name) for index, name in enumerate(module.further_lessons)]
    for place, lesson in lessons:
        if not (folder / lesson).is_file():
            yield Complaint(place, f"there is no file {lesson} beside the manifest")
    if module.id in module.needs:
        yield Complaint(("needs",), "a module cannot need itself")
    yield from _find_duplicates((exercise.id for exercise in module.exercises), ("exercises",), "id")
    for index, exercise in enumerate(module.exercises):
        yield from _check_exercise(exercise, ("exercises", index), folder.name, exercises)


def _check_exercise(exercise: Exercise, place: Place, folder: str, exercises: Path) -> Iterator[Complaint]:
    number = number_of(folder)
    if number and exercise.id.partition(".")[0] != number:
        yield Complaint((*place, "id"), f"'{exercise.id}' does not belong to module {number}")
    for key, name in _NAMES.items():
        yield from _find_duplicates((getattr(item, name) for item in getattr(exercise, key)), (*place, key), name)
    if not (exercises / folder / exercise.script).is_file():
        yield Complaint((*place, "script"), f"there is no file exercises/{folder}/{exercise.script}")
    yield from _count(exercise, place)
    yield from _check_slurm(exercise, place)
    for index, file in enumerate(exercise.files):
        if place_of(exercises, folder, file) is None:
            reason = f"there is no file exercises/{folder}/{file}, nor exercises/{SHARED}/{file}"
            yield Complaint((*place, "files", index), reason)
        if file == exercise.script:
            yield Complaint((*place, "files", index), f"{file} is the script, which is uploaded anyway")
    yield from _check_parts(exercise, place, exercises / folder)


def _check_parts(exercise: Exercise, exercise_place: Place, folder: Path) -> Iterator[Complaint]:
    """Check that the files and checks of the learner's parts exist, and that each part has a judge or a check."""
    checks = {check.id for check in exercise.checks}
    for index, part in enumerate(exercise.yours):
        place = (*exercise_place, "yours", index)
        if not (folder / part.file).is_file():
            yield Complaint((*place, "file"), f"there is no file exercises/{folder.name}/{part.file}")
        for number, check in enumerate(part.checks):
            if check not in checks:
                yield Complaint((*place, "checks", number), f"'{check}' is not a check of this exercise")
        if not part.judge and not part.checks:
            yield Complaint((*place, "judge"), "is false, and no check of the run judges the part either")


def _count(exercise: Exercise, exercise_place: Place) -> Iterator[Complaint]:
    """Check that a word for a number of the launch is a parameter whose values are in the allowed range."""
    for key, (fixed_word, low, high) in _COUNTS.items():
        word = getattr(exercise.launch, key)
        if not isinstance(word, str) or word == fixed_word:
            continue
        parameter, place = exercise.parameter(word), (*exercise_place, "launch", key)
        if parameter is None:
            no_word = f"neither the word {fixed_word} nor a parameter" if fixed_word else "not a parameter"
            yield Complaint(place, f"'{word}' is {no_word} of this exercise")
        elif parameter.type != "int" or any(end is None or not low <= end <= high for end in (parameter.min, parameter.max)):
            yield Complaint(
                place, f"the parameter {word} must be a whole number (int) with a min and a max from {low} to {high}"
            )


def _check_slurm(exercise: Exercise, exercise_place: Place) -> Iterator[Complaint]:
    """Check that `launch.slurm` names parameters of the right types, and that its last job is an uploaded file."""
    options = exercise.launch.slurm_request
    place = (*exercise_place, "launch", "slurm")
    for key, kind in _SLURM_PARAMETERS.items():
        word = getattr(options, key)
        parameter = exercise.parameter(word) if word else None
        if word and parameter is None:
            yield Complaint((*place, key), f"'{word}' is not a parameter of this exercise")
        elif parameter and parameter.type != kind:
            yield Complaint((*place, key), f"the parameter {word} must be of type {kind}")
    if options.gather and options.gather not in exercise.files:
        yield Complaint((*place, "gather"), f"{options.gather} is not uploaded: add it to files")


def place_of(exercises: Path, folder: str, file: str) -> str | None:
    """Return the path of an uploaded file or folder, relative to `exercises`: beside the scripts, or among the shared ones."""
    places = (f"{folder}/{file}", f"{SHARED}/{file}")
    return next((place for place in places if (exercises / place).exists()), None)


def _find_duplicates(names: Iterable[str], place: Place, key: str) -> Iterator[Complaint]:
    """Yield the names that an earlier item of the list at that place has already."""
    first: dict[str, int] = {}
    for index, name in enumerate(names):
        if name in first:
            yield Complaint((*place, index, key), f"'{name}' is taken by {'.'.join(map(str, place))}.{first[name]}")
        first.setdefault(name, index)
