"""A report that can be written in any format. Its content comes from runs, or was typed by the learner."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A table: column titles, rows of text with one cell for each title, and the columns with numbers. `note` is printed below
    it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[bool, ...]
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A chart, in the two forms that a page can contain."""

    title: str
    png: bytes
    svg: bytes


@dataclass(frozen=True, kw_only=True)
class Saying:
    """The learner's answer to a question; `text` is empty without an answer."""

    title: str
    question: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """One chapter. `missing` says what is missing and which command adds it; `sources` are its runs. The chapter MACHINES is
    part of the title page of a PDF."""

    id: str
    title: str
    text: str
    grids: tuple[Grid, ...] = ()
    pictures: tuple[Picture, ...] = ()
    sayings: tuple[Saying, ...] = ()
    missing: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()

    @property
    def source_line(self) -> str:
        """Return the sentence that names its runs, or an empty string if it has none."""
        return f"Source: run{'s' if len(self.sources) > 1 else ''} {', '.join(self.sources)}." if self.sources else ""


@dataclass(frozen=True, kw_only=True)
class Report:
    """The whole report.

    `author`: empty if there is none.
    `made`: a date (ISO 8601).
    `mode`: `local` if any number comes from simulated nodes.
    `missing`: what the report as a whole lacks. Each chapter lists what it lacks itself.
    """

    title: str
    author: str
    made: str
    mode: str
    subjects: tuple[str, ...]
    chapters: tuple[Chapter, ...]
    missing: tuple[str, ...] = ()
    course: str = ""
    abstract: str = ""

    def without_gaps(self) -> Report:
        """Return the report in the form that is handed in: only the chapters that have content, without any mention of what is
        missing."""
        chapters = (
            replace(chapter, sayings=tuple(saying for saying in chapter.sayings if saying.text), missing=())
            for chapter in self.chapters
        )
        chapters_with_content = tuple(chapter for chapter in chapters if chapter.grids or chapter.pictures or chapter.sayings)
        return replace(self, chapters=chapters_with_content, missing=())

    @property
    def everything_missing(self) -> tuple[str, ...]:
        """Return everything that is missing, each with its chapter."""
        return (*self.missing, *(f"{chapter.title}: {item}" for chapter in self.chapters for item in chapter.missing))


MACHINES = "machines"
LOCAL = "Simulated nodes (mode: local): these numbers were measured without a GPU, and say nothing about any GPU."
"""The note at the top of a report if any number was measured on simulated nodes."""
