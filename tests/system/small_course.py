"""A learner with a lab of a small course."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpucourse.course.schema import write_schema
from tests.learning import FOLDER, MANIFEST, RUBRIC, SCRIPT
from tests.system.cli import Learner

MEASURED = "{title: The measurements, source: metrics.json}"
TASKS = "    tasks: [Walk upstream"
FAULT = """    faults:
      - id: ten-times
        title: the litres are ten times too many
        file: helper.py
        was: LITRES = 1.5
        becomes: LITRES = 15.0
        hints: [Look at the litres., Look at the point.]
        explanation: The river is small.
        torch: false
"""
JUDGE_OF_FAULT = '''"""Judge the litres."""

from gpucourse.judge import Part, Way

WAYS = {"still": Way("it says {litres} litres")}


def judge(part: Part) -> None:
    """One and a half litres."""
    if part.module.LITRES != 1.5:
        raise part.wrong("still", litres=part.module.LITRES)
'''
CHECKS = "    checks:\n"
AGAIN = "    same_again: [{value: metrics.springs.litres}]\n"


def write_course(root: Path) -> Path:
    for name, text in (
        (f"exercises/{FOLDER}/source.py", SCRIPT),
        ("exercises/shared/helper.py", '"""Help."""\n\nLITRES = 1.5\n'),
        (f"exercises/{FOLDER}/judges/fault_ten_times.py", JUDGE_OF_FAULT),
        (
            f"modules/{FOLDER}/module.yaml",
            MANIFEST.replace(MEASURED, f"{MEASURED}, {{title: The screen, source: screen.svg}}").replace(
                TASKS, FAULT + TASKS, 1
            ),
        ),
        (f"modules/{FOLDER}/lesson.md", "# Rivers\n"),
        ("modules/rubric.yaml", RUBRIC),
    ):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    write_schema(root / "modules")
    return root


@contextmanager
def edit(learner: Learner, text: str) -> Iterator[None]:
    """Replace the learner's copy of the script for the block."""
    file = learner.workspace / f"exercises/{FOLDER}/source.py"
    file.write_text(text)
    yield
    file.write_text(SCRIPT)


@contextmanager
def deploy_small_course(root: Path) -> Iterator[Learner]:
    """Yield a learner with a lab for the block."""
    course = write_course(root / "course")
    manifest = course / f"modules/{FOLDER}/module.yaml"
    manifest.write_text(manifest.read_text().replace(CHECKS, AGAIN + CHECKS, 1))
    learner = Learner(root / "workspace", {"GPUCOURSE_COURSE": str(course)})
    try:
        learner.types("deploy", "1")
        learner.types("run", "1.1", "--dry-run")  # makes the learner's copies
        yield learner
    finally:
        learner.types("destroy", "--all", "--yes", code=None)
        assert learner.processes() == []
