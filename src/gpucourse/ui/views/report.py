"""The final report on the screen: its files, the runs that it is made from, and what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.tables import Items, View, facts
from gpucourse.ui.text import format_count

if TYPE_CHECKING:
    from gpucourse.learning.course_report import CourseReport
    from gpucourse.learning.report import ReportResult


def report(result: ReportResult) -> View:
    """Show which files were written, and what the report still lacks."""
    content = result.report
    sources = [source for chapter in content.chapters for source in chapter.sources]
    missing = [sentence.replace("`", "") for sentence in content.everything_missing]
    about = facts(
        [
            *(("file", str(path)) for path in result.files),
            ("compared", ", ".join(content.subjects)),
            ("made from", f"{format_count(len(set(sources)), 'run')}: {', '.join(dict.fromkeys(sources))}"),
        ]
    )
    return View(
        title=f"{UNICODE.error if missing else UNICODE.good} {content.title}",
        blocks=[about, Items(missing, title="Still missing")],
        footer=["Then run gpucourse report again."] if missing else [],
        mode=content.mode,
    )


def course_report(result: CourseReport) -> View:
    """Show the file about the whole course, and how many exercises it covers."""
    count = f"{result.exercises} of {format_count(result.course_exercises, 'exercise')}"
    blocks = [facts([("file", str(result.file)), ("covers", count)])]
    return View(title=f"{UNICODE.good} What I learned", blocks=blocks)
