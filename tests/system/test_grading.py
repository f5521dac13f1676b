"""An edited script and its bundle on a real lab: numbers that nobody printed give no points, and a run that is done again shows
what was invented."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.learning import FOLDER, SCRIPT
from tests.system.cli import Learner
from tests.system.test_learning import deploy_course, write_course

pytestmark = pytest.mark.system

PRINTS = 'print("found it")'
SAYS = "for spring in springs:\n    print(f\"litres {spring['litres']}, busy {spring['busy_percent']} %\")\nprint(\"found it\")"
CHECKS = "    checks:\n"
LOGS = '    logs: [{line: "litres {litres}, busy {busy_percent} %", rows: metrics.springs}]\n'
AGAIN = "    same_again: [{value: metrics.springs.litres}]\n"


@pytest.fixture(scope="module")
def student(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Learner]:
    """A learner with a lab of a course whose script prints what it measures."""
    root = tmp_path_factory.mktemp("grading")
    course = write_course(root / "course")
    script, manifest = course / f"exercises/{FOLDER}/source.py", course / f"modules/{FOLDER}/module.yaml"
    script.write_text(SCRIPT.replace(PRINTS, SAYS))
    manifest.write_text(manifest.read_text().replace(CHECKS, LOGS + AGAIN + CHECKS, 1))
    with deploy_course(root, course) as learner:
        yield learner


def edit(learner: Learner, text: str) -> None:
    (learner.workspace / f"exercises/{FOLDER}/source.py").write_text(text)


def test_a_script_that_only_writes_the_numbers_does_not_pass(student: Learner, tmp_path: Path) -> None:
    student.types("init", str(student.workspace))
    student.types("run", "1.1", "--dry-run")  # makes the learner's copies
    edit(student, SCRIPT)  # writes the same numbers, and prints none
    said = student.types("run", "1.1", code=5)
    assert "no rank printed" in " ".join((said.out + said.err).split())
    bundle = tmp_path / "work.zip"
    student.types("grade", "--bundle", str(bundle))
    opened = Learner(tmp_path / "other", student.environ)
    shown = opened.types("grade", "--open", str(bundle)).out
    assert "not what the ranks printed" in " ".join(shown.split())
    assert "0 of 25 points" in shown
    diff = opened.types("grade", "--open", str(bundle), "--exercise", "1.1").out
    assert "-for spring in springs:" in diff


@pytest.mark.slow
def test_a_run_done_again_agrees_or_shows_what_was_invented(student: Learner, tmp_path: Path) -> None:
    invented = SCRIPT.replace(PRINTS, SAYS).replace("helper.LITRES * depth", "99.0")
    edit(student, invented)
    student.types("run", "1.1")
    bundle = tmp_path / "work.zip"
    student.types("grade", "--bundle", str(bundle))
    opened = Learner(tmp_path / "other", student.environ | {"TMPDIR": str(tmp_path)})
    again = opened.types("grade", "--rerun", str(bundle), "--exercise", "1.1", "--yes", "--json").document["exercises"]
    assert [(item["exercise"], item["verdict"]) for item in again] == [("1.1", "agrees")]
    said = opened.types("grade", "--rerun", str(bundle), "--exercise", "1.1", "--yes", "--original", code=5)
    assert "metrics.springs.litres: 99, 20, again 15, 20" in " ".join(said.out.split())
    assert len(said.out.splitlines()) <= 25
    assert "came out otherwise: 1.1" in said.err
    assert not list(tmp_path.glob("gpucourse-*"))
    assert opened.processes() == []
