"""References of a manifest: whatever it names must exist, exactly once, and in an order in which a learner can begin."""

from __future__ import annotations

import shutil
from pathlib import Path

from gpucourse.course.new_course import start_course
from gpucourse.course.references import RUN_KEYS
from gpucourse.runs.results import material
from tests.learning import Learning
from tests.unit.course.test_lint_planted import check


def test_find_dead_references_names_modules_that_need_each_other(tmp_path: Path) -> None:
    course = tmp_path / "course"
    start_course(course)
    for part in ("modules", "exercises"):
        shutil.copytree(course / part / "01-rounding", course / part / "02-sums")
    for folder, number, peer in (("01-rounding", "1", "2"), ("02-sums", "2", "1")):
        manifest = course / "modules" / folder / "module.yaml"
        text = (
            manifest.read_text()
            .replace('id: "1', f'id: "{number}')
            .replace("    packages", f'    builds_on: ["{peer}.1"]\n    packages')
        )
        manifest.write_text(text.replace("hours: 1", f'hours: 1\nneeds: ["{peer}"]'))
    assert check(course) == [
        "modules/01-rounding/module.yaml: needs: 1 needs 2 needs 1: no learner could begin",
        "modules/01-rounding/module.yaml: 1.1.builds_on: 1.1 builds on 2.1 builds on 1.1: no learner could begin",
        "modules/02-sums/module.yaml: needs: 2 needs 1 needs 2: no learner could begin",
        "modules/02-sums/module.yaml: 2.1.builds_on: 2.1 builds on 1.1 builds on 2.1: no learner could begin",
        "modules/02-sums/module.yaml: 2.1.faults.rounds-too-late: 1.1 has a fault of this id",
    ]


def test_find_dead_references_knows_every_key_of_a_run(learning: Learning) -> None:
    assert set(material(learning.context.paths, learning.record())["run"]) == RUN_KEYS
