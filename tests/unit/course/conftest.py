"""A small, correct course on disk, in which tests plant mistakes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gpucourse.course.catalog import Catalog, load
from gpucourse.course.lint import lint
from gpucourse.course.locate import CourseFolders
from gpucourse.course.schema import write_schema

MANIFEST = """\
format: 1
id: "7"
title: Rivers
summary: How water runs.
hours: 1.5
lab:
  local: {template: simulated, nodes: 2}
exercises:
  - id: "7.1"
    title: Source
    goal: Find where it begins.
    minutes: 20
    script: source.py
    files: [helper.py]
    launch: {kind: torchrun, nodes: 2, timeout: 10m}
    parameters:
      - {name: depth, type: int, default: 100, min: 1, max: 1000, local: 10, help: how deep}
      - {name: clear_water, type: bool, default: false, help: whether one sees the ground}
    tasks: [Walk upstream.]
    questions:
      - {id: why, text: Why does it run?}
    hints: [Look up., Look down., Listen.]
    tables:
      - title: Springs
        rows: metrics.springs
        columns: [{key: litres, title: litres, digits: 1}]
    plots:
      - file: flow
        title: Flow
        kind: line
        rows: metrics.springs
        x: day
        series: [{key: litres, label: measured}]
        x_title: day
        y_title: flow (l)
    checks:
      - {id: wet, title: It is wet, value: metrics.wet, equals: true, hint: Was it a river?}
      - {id: flows, title: It flows, value: min(metrics.springs.litres), above: 0, unit: l, hint: Wait for rain.}
    deliverables: [{title: The log, source: logs/*.log}]
    no_predict: Nobody knows a river before.
    yours: [{id: flow, title: Flow, file: source.py, write: Make it flow., judge: false, checks: [wet]}]
"""

SCRIPT = '''"""Find the source."""

import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--depth", type=int, default=100)
parser.add_argument("--clear-water", action=argparse.BooleanOptionalAction, default=False)
metrics = {"wet": True, "springs": [{"day": 1, "litres": 2.5}]}
'''

FOLDER = "07-rivers"


class SmallCourse:
    """A course with one module, `07-rivers`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folders = CourseFolders(root / "modules", root / "exercises", root / "terraform")
        self.manifest = self.folders.modules / FOLDER / "module.yaml"
        self.put("exercises/07-rivers/source.py", SCRIPT)
        self.put("exercises/shared/helper.py", '"""Help."""\n')
        self.put("modules/07-rivers/module.yaml", MANIFEST)
        self.put("modules/07-rivers/lesson.md", "# Rivers\n")
        self.put("terraform/stacks/simulated/main.tf", "")

    def put(self, name: str, content: str | bytes) -> Path:
        """Write a file of the course."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def change(self, old: str, new: str) -> None:
        """Replace a text of the manifest, which must occur exactly once."""
        text = self.manifest.read_text()
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in the manifest"
        self.manifest.write_text(text.replace(old, new))

    def another(self, number: str, *, name: str = "lakes", spoil: Callable[[str], str] = lambda text: text) -> None:
        """Add a module: a copy under another number."""
        folder = f"{int(number):02d}-{name}" if number.isdigit() else f"{number}-{name}"
        self.put(
            f"modules/{folder}/module.yaml", spoil(MANIFEST.replace('"7"', f'"{number}"').replace('"7.1"', f'"{number}.1"'))
        )
        self.put(f"modules/{folder}/lesson.md", "# Lakes\n")
        self.put(f"exercises/{folder}/source.py", SCRIPT)

    def load(self) -> Catalog:
        """Return the catalog of the course as it is on disk now."""
        return load(self.folders)


@pytest.fixture
def course(tmp_path: Path) -> SmallCourse:
    return SmallCourse(tmp_path)


@pytest.fixture
def clean_course(course: SmallCourse) -> SmallCourse:
    """Return a course about which lint has no complaints."""
    write_schema(course.folders.modules)
    assert lint(course.load()) == []
    return course
