"""The final report on the screen: its files, the runs that it is made from, what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.tables import Block, Items, View, facts
from gpucourse.ui.text import format_count

if TYPE_CHECKING:
    from gpucourse.learning.course_report import CourseReport
    from gpucourse.learning.report import ReportResult


def report(result: ReportResult) -> View:
    """Show what was written, and what is missing to complete it."""
    content = result.report
    sources = [source for chapter in content.chapters for source in chapter.sources]
    blocks: list[Block] = [
        facts(
            [
                *(("file", str(path)) for path in result.files),
                ("compared", ", ".join(content.subjects)),
                ("made from", f"{format_count(len(set(sources)), 'run')}: {', '.join(dict.fromkeys(sources))}"),
            ]
        )
    ]
    missing = content.everything_missing
    if missing:
        blocks.append(Items(tuple(sentence.replace("`", "") for sentence in missing), title="Still missing"))
    mark = UNICODE.error if missing else UNICODE.good
    footer = ("Type the command again when that is done: the report is written again.",) if missing else ()
    return View(title=f"{mark} {content.title}", blocks=tuple(blocks), footer=footer, mode=content.mode)


def course_report(result: CourseReport) -> View:
    """Show where the page about the whole course is, and how many exercises it covers."""
    count = f"{result.exercises} of {format_count(result.course_exercises, 'exercise')}"
    return View(title=f"{UNICODE.good} What I learned", blocks=(facts([("file", str(result.file)), ("covers", count)]),))
