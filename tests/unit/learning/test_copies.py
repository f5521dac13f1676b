"""`reset` puts the course's file back, and keeps the learner's."""

from __future__ import annotations

from gpucourse.learning import watch
from tests.learning import Learning


def test_reset_makes_the_copy_follow_the_course_again(learning: Learning) -> None:
    watch.list_watched_files(learning.context, learning.context.catalog.exercise("1.1")[1])
    mine = learning.workspace / "exercises/01-rivers/source.py"
    mine.write_text("# mine\n")
    learning.types("reset", "1.1")
    learning.put("exercises/01-rivers/source.py", '"""Newer."""\n')
    watch.list_watched_files(learning.open_context(), learning.context.catalog.exercise("1.1")[1])
    assert mine.read_text() == '"""Newer."""\n'
