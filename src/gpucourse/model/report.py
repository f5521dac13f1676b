"""A report that can be written in any format. Its content comes from runs, or was typed by the learner."""

from __future__ import annotations

from dataclasses import dataclass


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
    """One chapter. `missing` says what is missing and which command adds it; `sources` are its runs."""

    id: str
    title: str
    text: str
    grids: tuple[Grid, ...] = ()
    pictures: tuple[Picture, ...] = ()
    sayings: tuple[Saying, ...] = ()
    missing: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Report:
    """The whole report.

    `made`: a date (ISO 8601).
    `mode`: `local` if any number comes from simulated nodes.
    `missing`: what the report as a whole lacks. Each chapter lists what the chapter lacks.
    """

    title: str
    author: str
    made: str
    mode: str
    subjects: tuple[str, ...]
    chapters: tuple[Chapter, ...]
    missing: tuple[str, ...] = ()

    @property
    def everything_missing(self) -> tuple[str, ...]:
        """Return everything that is missing, each with its chapter."""
        return (*self.missing, *(f"{chapter.title}: {item}" for chapter in self.chapters for item in chapter.missing))


LOCAL = "Simulated nodes (mode: local): these numbers come from a computer without a GPU, and say nothing about any GPU."
"""The note at the top of a report if any number was measured on simulated nodes."""
