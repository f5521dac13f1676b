"""The modules of a course. A manifest is read only when it is needed, so an invalid manifest does not affect other modules."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePath

from gpucourse.course.locate import CourseFolders
from gpucourse.course.rules import broken_rules, number_of, place_of
from gpucourse.course.written import HINT, format_complaints, read_file
from gpucourse.errors import ManifestError, MissingError, UnknownName, UsageError
from gpucourse.model.manifest import FORMAT, Exercise, LearnerPart, Module
from gpucourse.outside.files import read_named
from gpucourse.outside.names import OutsideError
from gpucourse.outside.yaml_reader import Complaint, Document

MANIFEST = "module.yaml"
JUDGES = "judges"  # the folder next to the scripts, with the judges of parts
MAX_LESSON_BYTES = 4 << 20
UPGRADE = "upgrade: pip install --upgrade gpucourse"


def load(folders: CourseFolders) -> Catalog:
    """Return the course in `folders` without reading a manifest yet. Raises MissingError if the folder of modules is
    missing."""
    if not folders.modules.is_dir():
        raise MissingError(f"there is no folder {folders.modules}", hint="reinstall: pip install --force-reinstall gpucourse")
    places = (path for path in folders.modules.iterdir() if path.is_dir() and not path.name.startswith((".", "_")))
    return Catalog(folders, sorted(places, key=_order))


def read_module(folder: Path, exercises: Path) -> Module:
    """Read the manifest in a module's folder. Raises ManifestError with all its errors."""
    label = f"{folder.parent.name}/{folder.name}/{MANIFEST}"

    def examine(document: Document) -> Iterator[Complaint]:
        _refuse_newer(label, document)
        if number_of(folder.name) is None:
            yield Complaint((), f"the folder {folder.name} is not named like 03-parallel-computing")
        yield from broken_rules(document.data, folder, exercises)

    return read_file(folder / MANIFEST, Module, label, examine=examine)


def _read_lesson(folder: Path, name: str) -> str:
    """Read a part of a module's lesson. Raises ManifestError if it cannot be read."""
    try:
        return read_named(folder / name, MAX_LESSON_BYTES).decode()
    except (OSError, OutsideError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ManifestError([f"{folder.parent.name}/{folder.name}/{name}: cannot be read: {reason}"], hint=HINT) from error


class Catalog:
    """The modules, in the order of their numbers."""

    def __init__(self, folders: CourseFolders, module_folders: list[Path]) -> None:
        self.folders = folders
        self._places = module_folders
        self._read: dict[Path, Module | ManifestError] = {}

    @property
    def modules(self) -> tuple[Module, ...]:
        """Return every module whose manifest is valid."""
        return tuple(self.iterate())

    @property
    def exercises(self) -> tuple[Exercise, ...]:
        """Return the exercises of every module whose manifest is valid."""
        return tuple(exercise for module in self.modules for exercise in module.exercises)

    def iterate(self, first: str = "") -> Iterator[Module]:
        """Yield every module with a valid manifest, beginning with module `first`. Each manifest is read only when its turn
        comes."""
        for place in sorted(self._places, key=lambda place: number_of(place.name) != first):
            if isinstance(module := self._load(place), Module):
                yield module

    @property
    def errors(self) -> tuple[ManifestError, ...]:
        """Return the errors of the invalid manifests."""
        return tuple(error for place in self._places if isinstance(error := self._load(place), ManifestError))

    @property
    def module_ids(self) -> tuple[str, ...]:
        """Return the numbers of all modules, even of those with invalid manifests. Reads no manifest."""
        return tuple(dict.fromkeys(number for place in self._places if (number := number_of(place.name))))

    def module(self, module_id: str) -> Module:
        """Return the module of that number. Raises UsageError, or ManifestError if its manifest is invalid."""
        places = [place for place in self._places if number_of(place.name) == module_id]
        if not places:
            number = module_id.partition(".")[0]
            if number in self.module_ids:
                raise UsageError(
                    f"{module_id} looks like the number of an exercise, not of a module", hint=f"its module is {number}"
                )
            raise UnknownName("module", module_id, self.module_ids)
        if len(places) > 1:
            names = " and ".join(place.name for place in places)
            raise ManifestError(
                [f"{self.folders.modules.name}: {names} are both module {module_id}"], hint="rename one of them"
            )
        module = self._load(places[0])
        if isinstance(module, ManifestError):
            raise module
        return module

    def exercise(self, exercise_id: str) -> tuple[Module, Exercise]:
        """Return the exercise of that number with its module. Raises UnknownName, or ManifestError if its manifest is
        invalid."""
        number, dot, _ = exercise_id.partition(".")
        if number not in self.module_ids:
            raise UnknownName("exercise", exercise_id, [exercise.id for exercise in self.exercises])
        module = self.module(number)
        if exercise := module.exercise(exercise_id):
            return module, exercise
        ids = [exercise.id for exercise in module.exercises]
        if not dot:
            raise UsageError(f"{exercise_id} is a module, not an exercise", hint=f"its exercises: {', '.join(ids)}")
        raise UnknownName("exercise", exercise_id, ids)

    def folder_name(self, item: Module | Exercise) -> str:
        """Return the name of the folder of a module, or of an exercise's module, in `modules/` and in `exercises/`:
        `03-parallel-computing`."""
        number = item.id.partition(".")[0]
        return next(place.name for place in self._places if number_of(place.name) == number)

    def manifest_label(self, item: Module | Exercise) -> str:
        """Return the name in messages of a module's manifest, or of the manifest of an exercise's module:
        `modules/03-parallel-computing/module.yaml`."""
        return f"{self.folders.modules.name}/{self.folder_name(item)}/{MANIFEST}"

    def lesson_parts(self, module: Module) -> tuple[str, ...]:
        """Return the parts of a module's lesson in Markdown. A short lesson has one part."""
        folder = self.folders.modules / self.folder_name(module)
        return tuple(_read_lesson(folder, name) for name in (module.lesson, *module.further_lessons))

    def judge(self, exercise: Exercise, name: str) -> Path:
        """Return the path of a judge file: `judges/<name>.py` next to the exercise's script."""
        return self.folders.exercises / self.folder_name(exercise) / JUDGES / f"{name}.py"

    def sources(self, exercise: Exercise) -> dict[str, str]:
        """Return the files of an exercise, the script first. Each name on the node is mapped to a path in `exercises/`. A
        folder is replaced by all files in it."""
        folder = self.folder_name(exercise)
        places = {file: place_of(self.folders.exercises, folder, file) for file in (exercise.script, *exercise.files)}
        return {
            name: f"{place}{name.removeprefix(file)}"
            for file, place in places.items()
            if place is not None
            for name in self._list_files(file, place)
        }

    def _list_files(self, file: str, place: str) -> list[str]:
        """Return the file names for an entry of a manifest: the entry itself or, for a folder, the files in it."""
        path = self.folders.exercises / place
        if not path.is_dir():
            return [file]
        paths = (item.relative_to(path) for item in sorted(path.rglob("*")) if item.is_file() and item.suffix != ".pyc")
        return [f"{file}/{item.as_posix()}" for item in paths]

    def part_places(self, exercise: Exercise) -> dict[str, str]:
        """Return the path in `exercises/` of each file that the learner writes for an exercise, by the id of the part."""
        return {part.id: f"{self.folder_name(exercise)}/{part.file}" for part in exercise.yours}

    def judge_file(self, exercise: Exercise, part: LearnerPart) -> Path:
        """Return the path of the judge for a learner's part."""
        return self.judge(exercise, PurePath(part.file).stem)

    def _load(self, place: Path) -> Module | ManifestError:
        if place not in self._read:
            try:
                self._read[place] = read_module(place, self.folders.exercises)
            except ManifestError as error:
                self._read[place] = error
        return self._read[place]


def _order(folder: Path) -> tuple[int, int, str]:
    number = number_of(folder.name)
    if number is None:
        return (2, 0, folder.name)
    return (0, int(number), folder.name) if number.isdigit() else (1, 0, folder.name)


def _refuse_newer(label: str, document: Document) -> None:
    version = document.data.get("format")
    if isinstance(version, int) and not isinstance(version, bool) and version > FORMAT:
        reason = f"has format {version}; this gpucourse reads up to {FORMAT}"
        raise ManifestError(format_complaints(label, document, [Complaint(("format",), reason)]), hint=UPGRADE)
