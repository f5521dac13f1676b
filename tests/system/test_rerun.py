"""Running the scripts of a bundle again on simulated nodes shows what was invented."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.learning import SCRIPT
from tests.system.cli import Learner
from tests.system.small_course import edit

pytestmark = pytest.mark.system


@pytest.mark.slow
def test_rerun_of_the_courses_own_script_shows_what_was_invented(student: Learner, tmp_path: Path) -> None:
    with edit(student, SCRIPT.replace("helper.LITRES * depth", "99.0")):
        for number in ("1.1", "1.2"):
            student.types("run", number)
    bundle = tmp_path / "work.zip"
    student.types("grade", "--bundle", str(bundle))
    grader = Learner(tmp_path / "other", student.environ | {"TMPDIR": str(tmp_path)})
    result = grader.types("grade", "--rerun", str(bundle), "--yes", "--original", "--json", code=5)
    exercises = result.document["exercises"]
    assert [(item["exercise"], item["verdict"]) for item in exercises] == [("1.1", "differs"), ("1.2", "agrees")]
    figures = {figure["value"]: (figure["bundle"], figure["again"]) for figure in exercises[0]["figures"]}
    assert figures["metrics.springs.litres"] == ("99, 20", "15, 20")
    assert "results differ from those of the bundle: 1.1" in result.err
    assert not list(tmp_path.glob("gpucourse-*"))
    assert grader.processes() == []
