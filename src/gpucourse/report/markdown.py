"""A report as Markdown, for people who want to edit it. The pictures are separate files in the same folder."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpucourse.model.node import is_simulated
from gpucourse.model.report import LOCAL, Chapter, Grid, Picture, Report


def render(report: Report) -> tuple[bytes, dict[str, bytes]]:
    """Return the text in UTF-8, and the pictures that it refers to, by file name."""
    pictures = {name: picture.png for chapter in report.chapters for name, picture in _name_pictures(chapter).items()}
    return ("\n\n".join(_parts(report)) + "\n").encode("utf-8"), pictures


def _name_pictures(chapter: Chapter) -> dict[str, Picture]:
    return {f"{chapter.id}-{number}.png": picture for number, picture in enumerate(chapter.pictures, start=1)}


def _parts(report: Report) -> Iterator[str]:
    yield f"# {_plain(report.title)}"
    yield _plain(" · ".join(text for text in (report.author, report.course, report.made, *report.subjects) if text))
    if is_simulated(report.mode):
        yield f"> {LOCAL}"
    if report.abstract:
        yield f"**Abstract.** {_plain(report.abstract)}"
    for chapter in report.chapters:
        yield f"## {_plain(chapter.title)}"
        yield _plain(chapter.text)
        for grid in chapter.grids:
            yield f"### {_plain(grid.title)}"
            yield table(grid)
            if grid.note:
                yield _plain(grid.note)
        for name, picture in _name_pictures(chapter).items():
            yield f"![{_plain(picture.title)}]({name})"
        for saying in chapter.sayings:
            yield f"### {_plain(saying.title)}"
            yield escape_words(saying.text.strip())
        if chapter.sources:
            yield f"*{chapter.source_line}*"


def table(grid: Grid) -> str:
    """Return a table in Markdown, with numbers aligned right."""
    lines = [_row(grid.columns), _row(tuple("---:" if numeric else "---" for numeric in grid.numeric))]
    return "\n".join([*lines, *(_row(tuple(map(_plain, row))) for row in grid.rows)])


def _row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cells) + " |"


def _plain(text: str) -> str:
    """Return the text on one line, with the special characters of Markdown escaped."""
    return re.sub(r"([\\*_|<\[\]#])", r"\\\1", " ".join(text.split()))


def escape_words(text: str) -> str:
    """Escape a person's text so that Markdown shows it as it was typed, without HTML, pictures or links."""
    return re.sub(r"([\\`*_|<\[\]#$~])", r"\\\1", text)
