"""Rules of a manifest that involve several values: related numbers, unique names, existing files.

The rules read the plain data, so they work even if another value has the wrong type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gpucourse.limits import MAX_RANKS_PER_NODE
from gpucourse.model.record import MAX_RESTARTS
from gpucourse.outside.names import OutsideError, relative_name
from gpucourse.outside.yaml_reader import Complaint

FOLDER = re.compile(r"(?P<number>\d+|B)-[a-z0-9-]+")
SHARED = "shared"
PROFILER = "profiled.py"  # one of the shared files, which runs any other script under PyTorch's profiler
CUDA_STARTER = "cuda_program.py"  # one of the shared files, which runs a CUDA program on a GPU or on the emulator


def number_of(folder: str) -> str | None:
    """Return the module's number from the name of its folder: `3` for `03-parallel-computing`. Return None for any other
    name."""
    match = FOLDER.fullmatch(folder)
    if not match:
        return None
    return match["number"] if match["number"] == "B" else str(int(match["number"]))


def broken_rules(data: dict[str, Any], folder: Path, exercises: Path) -> Iterator[Complaint]:
    """Yield every rule that the manifest in `folder` breaks. Its scripts are in the folder with the same name in
    `exercises`."""
    number = data.get("id")
    if isinstance(number, str) and number != number_of(folder.name):
        yield Complaint(("id",), f"'{number}' is not the number of the folder {folder.name}")
    further = data.get("further_lessons")
    lessons: list[tuple[tuple[str | int, ...], object]] = [(("lesson",), data.get("lesson", "lesson.md"))]
    lessons += [(("further_lessons", index), name) for index, name in enumerate(further if isinstance(further, list) else ())]
    for place, lesson in lessons:
        if isinstance(lesson, str) and _is_inside_folder(lesson) and not (folder / lesson).is_file():
            yield Complaint(place, f"there is no file {lesson} next to the manifest")
    needs = data.get("needs")
    if isinstance(needs, list) and isinstance(number, str) and number in needs:
        yield Complaint(("needs",), "a module cannot need itself")
    yield from _find_duplicates(data.get("exercises"), "id", ("exercises",))
    for index, exercise in enumerate(_mappings(data.get("exercises"))):
        yield from _check_exercise(exercise, ("exercises", index), folder.name, exercises)


def _check_exercise(
    exercise: dict[str, Any], place: tuple[str | int, ...], folder: str, exercises: Path
) -> Iterator[Complaint]:
    name, number = exercise.get("id"), number_of(folder)
    if isinstance(name, str) and number and "." in name and name.partition(".")[0] != number:
        yield Complaint((*place, "id"), f"'{name}' does not belong to module {number}")
    for key, field in _NAMES.items():
        yield from _find_duplicates(exercise.get(key), field, (*place, key))
    if (
        isinstance(script := exercise.get("script"), str)
        and _is_inside_folder(script)
        and not (exercises / folder / script).is_file()
    ):
        yield Complaint((*place, "script"), f"there is no file exercises/{folder}/{script}")
    files = exercise.get("files")
    yield from _count(exercise, place)
    yield from _check_slurm(exercise, place)
    for index, file in enumerate(files if isinstance(files, list) else ()):
        if isinstance(file, str) and _is_inside_folder(file) and place_of(exercises, folder, file) is None:
            reason = f"there is no file exercises/{folder}/{file}, nor exercises/{SHARED}/{file}"
            yield Complaint((*place, "files", index), reason)
        if file == script:
            yield Complaint((*place, "files", index), f"{file} is the script, which is uploaded anyway")
    yield from _check_parts(exercise, place, exercises / folder)


def _check_parts(exercise: dict[str, Any], exercise_place: tuple[str | int, ...], folder: Path) -> Iterator[Complaint]:
    """Check that the files and checks of the learner's parts exist, that each part has a judge or a check, and that no question
    has the id of a part, because an instructor refers to both by their ids."""
    checks = {check.get("id") for check in _mappings(exercise.get("checks"))}
    questions = {question.get("id") for question in _mappings(exercise.get("questions"))}
    for index, part in enumerate(_mappings(exercise.get("yours"))):
        place = (*exercise_place, "yours", index)
        if isinstance(file := part.get("file"), str) and _is_inside_folder(file) and not (folder / file).is_file():
            yield Complaint((*place, "file"), f"there is no file exercises/{folder.name}/{file}")
        if (name := part.get("id")) in questions:
            yield Complaint((*place, "id"), f"'{name}' is also the id of a question")
        check_ids = part.get("checks", [])
        for number, check in enumerate(check_ids if isinstance(check_ids, list) else ()):
            if isinstance(check, str) and check not in checks:
                yield Complaint((*place, "checks", number), f"'{check}' is not a check of this exercise")
        if part.get("judge") is False and not check_ids:
            yield Complaint((*place, "judge"), "is false, and no check of the run judges the part either")


def _count(exercise: dict[str, Any], exercise_place: tuple[str | int, ...]) -> Iterator[Complaint]:
    """Check the keys of `launch` that may have a word instead of a number: the word must name a parameter whose values are in
    the allowed range."""
    launch = exercise.get("launch")
    for key, (fixed_word, low, high) in _COUNTS.items():
        word = launch.get(key) if isinstance(launch, dict) else None
        if not isinstance(word, str) or word == fixed_word:
            continue
        matches = (parameter for parameter in _mappings(exercise.get("parameters")) if parameter.get("name") == word)
        parameter = next(matches, None)
        place = (*exercise_place, "launch", key)
        if parameter is None:
            no_word = f"neither the word {fixed_word} nor a parameter" if fixed_word else "not a parameter"
            yield Complaint(place, f"'{word}' is {no_word} of this exercise")
        elif parameter.get("type") != "int" or not all(_is_between(low, parameter.get(end), high) for end in ("min", "max")):
            yield Complaint(
                place, f"the parameter {word} must be a whole number (int) with a min and a max from {low} to {high}"
            )


def _check_slurm(exercise: dict[str, Any], exercise_place: tuple[str | int, ...]) -> Iterator[Complaint]:
    """Check that `launch.slurm` names parameters of the right types, and that its last job's script is an uploaded file."""
    launch = exercise.get("launch")
    options = launch.get("slurm") if isinstance(launch, dict) else None
    if not isinstance(options, dict):
        return
    parameters = {parameter.get("name"): parameter for parameter in _mappings(exercise.get("parameters"))}
    for key, kind in _SLURM_PARAMETERS.items():
        word, place = options.get(key), (*exercise_place, "launch", "slurm", key)
        if not isinstance(word, str):
            continue
        if word not in parameters:
            yield Complaint(place, f"'{word}' is not a parameter of this exercise")
        elif parameters[word].get("type") != kind:
            yield Complaint(place, f"the parameter {word} must be of type {kind}")
    gather, files = options.get("gather"), exercise.get("files")
    if isinstance(gather, str) and gather not in (files if isinstance(files, list) else ()):
        yield Complaint((*exercise_place, "launch", "slurm", "gather"), f"{gather} is not uploaded: add it to files")


_NAMES = {"parameters": "name", "checks": "id", "questions": "id", "plots": "file", "yours": "id", "faults": "id"}
"""The lists of an exercise that must have no repetitions, each with the key that names an item."""

_SLURM_PARAMETERS = {"partition": "str", "jobs": "int", "array": "str", "at_once": "int"}
_COUNTS = {"procs_per_node": ("gpu", 1, MAX_RANKS_PER_NODE), "restarts": ("", 0, MAX_RESTARTS)}
"""The keys of `launch` that may name a parameter. Each has a special word and a range."""


def _is_between(low: int, value: object, high: int) -> bool:
    return isinstance(value, (int, float)) and low <= value <= high


def place_of(exercises: Path, folder: str, file: str) -> str | None:
    """Return the path in `exercises` of an uploaded file or folder: next to the scripts, or among the shared files."""
    places = (f"{folder}/{file}", f"{SHARED}/{file}")
    return next((place for place in places if (exercises / place).exists()), None)


def _find_duplicates(items: object, key: str, place: tuple[str | int, ...]) -> Iterator[Complaint]:
    first: dict[str, int] = {}
    for index, item in enumerate(items if isinstance(items, list) else ()):
        name = item.get(key) if isinstance(item, dict) else None
        if not isinstance(name, str):
            continue
        if name in first:
            yield Complaint((*place, index, key), f"'{name}' is taken by {'.'.join(map(str, place))}.{first[name]}")
        first.setdefault(name, index)


def _mappings(items: object) -> Iterator[dict[str, Any]]:
    for item in items if isinstance(items, list) else ():
        yield item if isinstance(item, dict) else {}


def _is_inside_folder(path: str) -> bool:
    """Return whether the path stays inside its folder. The model of the manifest reports a path that leaves the folder."""
    try:
        relative_name(path)
    except OutsideError:
        return False
    return True
