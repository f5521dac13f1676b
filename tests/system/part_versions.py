"""Learners' versions of parts, written without knowledge of the judges, and the verdict that `try` should give on each.

`GPUCOURSE_VERDICTS=FILE` appends the verdict on each version to FILE, for a person who compares it with the fault.
gpucourse.judge.proof tests the wrong ways that a judge itself names; here are other wrong ways, and other texts.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
import yaml

from gpucourse.context import Context
from gpucourse.learning.try_ import try_parts
from gpucourse.model.manifest import Exercise, LearnerPart
from gpucourse.model.verdict import PartResult
from gpucourse.runs.parts import list_part_files
from gpucourse.workspace.locate import open_workspace
from tests.course import CATALOG, FOLDERS
from tests.parts import KERNELS, needs_module

ROOT = Path(__file__).parent.parent.parent
UNNAMED = ("", "other", "error")
"""The ways of verdicts that describe an observation, but name no cause."""


class Replacement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A piece of the model solution, and the text that replaces it in the version."""

    old: str
    new: str


class Version(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way in which a learner writes a part.
    `fault`: what is wrong with it; empty if it is right.

    `cause`: the way that the judge may name for it. If it is empty, the judge must not name any.
    """

    name: str
    right: bool
    fault: str = ""
    cause: str = ""
    replace: list[Replacement] = []
    text: str = ""

    def write(self, solution: str) -> str:
        """Return the text of the version's file."""
        text = self.text or solution
        for piece in self.replace:
            assert text.count(piece.old) == 1, f"{self.name}: {piece.old!r} stands there {text.count(piece.old)} times"
            text = text.replace(piece.old, piece.new)
        return text


class Versions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The versions of one part, which is a file below `exercises/`."""

    part: str
    versions: list[Version]

    @property
    def solution(self) -> str:
        """The model solution of the part."""
        file = FOLDERS.exercises / self.part
        return (file.parent / "solutions" / file.name).read_text()

    def find_part(self) -> tuple[Exercise, LearnerPart]:
        """Return the exercise and its part."""
        for module in CATALOG.modules:
            for exercise in module.exercises:
                for part in exercise.yours:
                    if f"{CATALOG.folder_name(module)}/{part.file}" == self.part:
                        return exercise, part
        raise LookupError(self.part)


def read_versions(file: Path) -> Versions:
    """Return the versions in a file of `tests/data/parts`."""
    return msgspec.convert(
        yaml.load(file.read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader)), Versions
    )  # all processes read all files


FILES = sorted((ROOT / "tests" / "data" / "parts").glob("*.yaml"))
ALL = {file.stem: read_versions(file) for file in FILES}


def list_parameters() -> list[object]:
    """Return the versions of each part, with the marks of the packages that its judge needs."""
    parameters: list[object] = []
    for name, versions in ALL.items():
        _, part = versions.find_part()
        packages = [needs_module(package, installed=KERNELS) for package in part.packages]
        parameters.append(pytest.param(versions, id=name, marks=packages))
    return parameters


@contextmanager
def open_context(folder: Path) -> Iterator[Context]:
    """Yield a context with the course and one judge, whose process judges all versions."""
    context = Context(workspace=open_workspace(folder), folders=FOLDERS, environ=os.environ)
    try:
        yield context
    finally:
        context.close()


def list_complaints(context: Context, versions: Versions) -> list[str]:
    """Return what is wrong with the verdicts on the versions of a part."""
    complaints = []
    for version in versions.versions:
        result = try_version(context, versions, version)
        note_verdict(versions.part, version, result)
        complaint = find_complaint(version, result)
        if complaint:
            complaints.append(f"{version.name}: {complaint}")
    return complaints


def try_version(context: Context, versions: Versions, version: Version) -> PartResult:
    """Return the result of `try` if the version is the learner's file."""
    exercise, part = versions.find_part()
    file = list_part_files(context, exercise)[part.id]
    file.write_text(version.write(versions.solution))
    (result,) = try_parts(context, exercise, [file])
    return result.result


def find_complaint(version: Version, result: PartResult) -> str:
    """Return what is wrong with the verdict on a version, or an empty text."""
    if version.right:
        return "" if result.verdict == "passed" else f"refused, with {result.way}: {result.says}"
    if result.verdict != "failed":
        return f"{result.verdict}: {result.says}"
    causes = (version.cause,) if version.cause else UNNAMED
    return "" if result.way in causes else f"told {result.way!r} instead of {version.cause or 'no cause'}: {result.says}"


def note_verdict(part: str, version: Version, result: PartResult) -> None:
    """Append the verdict to the file that `GPUCOURSE_VERDICTS` names, if it is set."""
    if not (name := os.environ.get("GPUCOURSE_VERDICTS")):
        return
    lines = [
        f"{part} · {version.name} · {'right' if version.right else 'wrong: ' + version.fault}",
        f"    {result.verdict} {result.way} ({result.seconds:.1f} s) says: {result.says}",
        *(f"    {word}: {text}" for word, text in (("case", result.case), ("notes", "; ".join(result.notes))) if text),
    ]
    with Path(name).open("a") as verdicts:
        verdicts.write("\n".join(lines) + "\n")
