"""Files of a lesson: the complaints about their text."""

from __future__ import annotations

from typing import Any

from gpucourse.course.lint import lint


def test_check_lessons_names_a_code_line_that_a_terminal_folds(clean_course: Any) -> None:
    """Prose and tables may be longer: they are wrapped between words."""
    lines = ["# Here", "", "long " * 30, "", "    " + 78 * "a", "    " + 79 * "b", "", "```", 80 * "c", "```"]
    clean_course.put("modules/07-rivers/lesson.md", "\n".join(lines))
    assert lint(clean_course.load()) == [
        f"modules/07-rivers/lesson.md: line {number}: a code line has {columns} columns, but only 78 fit on a terminal with 80"
        for number, columns in ((6, 79), (9, 80))
    ]
