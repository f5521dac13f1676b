from __future__ import annotations

from gpucourse.model.report import Chapter, Saying
from tests.unit.report.examples import report


def test_everything_missing_names_the_chapter_of_each_thing() -> None:
    chapters = [Chapter(id=title, title=title, text="", missing=(f"a run of {title}",)) for title in ("Flow", "Mouth")]
    content = report(*chapters, missing=("a second GPU",))
    assert content.everything_missing == ("a second GPU", "Flow: a run of Flow", "Mouth: a run of Mouth")


def test_without_gaps_has_only_chapters_that_show_something() -> None:
    sayings = tuple(Saying(title=text, question="why", text=text) for text in ("", "Take the L4."))
    chapters = [Chapter(id=f"{number}", title="", text="t", sayings=sayings[:number], missing=("m",)) for number in (0, 1, 2)]
    content = report(*chapters, missing=("a second GPU",)).without_gaps()
    assert [(chapter.id, chapter.sayings) for chapter in content.chapters] == [("2", sayings[1:])]
    assert content.everything_missing == ()
