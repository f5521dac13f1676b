from __future__ import annotations

from gpucourse.model.report import Chapter
from tests.unit.report.examples import report


def test_everything_missing_names_the_chapter_of_each_thing() -> None:
    chapters = [Chapter(id=title, title=title, text="", missing=(f"a run of {title}",)) for title in ("Flow", "Mouth")]
    content = report(*chapters, missing=("a second GPU",))
    assert content.everything_missing == ("a second GPU", "Flow: a run of Flow", "Mouth: a run of Mouth")
