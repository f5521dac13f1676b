"""A report, ready to be written in any format: everything in it comes from runs, or was typed by the learner."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A table: titles, rows of the same length as text, and which columns hold numbers. `note` is below it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[bool, ...]
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A chart, in both forms that a page can hold."""

    title: str
    png: bytes
    svg: bytes


@dataclass(frozen=True, kw_only=True)
class Saying:
    """What the learner wrote in answer to a question. `text` is empty where they have not."""

    title: str
    question: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """One chapter. `missing` says what is not there and which command brings it; `sources` are the runs it is made of."""

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
    """The whole. `made` is a date (ISO 8601); `mode` is `local` where any number comes from simulated nodes.

    `missing` holds what keeps the report as a whole from being complete; a chapter names its own.
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
        """What is missing anywhere, each with its chapter."""
        return (*self.missing, *(f"{chapter.title}: {item}" for chapter in self.chapters for item in chapter.missing))


LOCAL = "Simulated nodes (mode: local): these numbers are a computer's without a GPU, and say nothing about any GPU."
"""What every report says at its top where a number of it was measured on simulated nodes."""
