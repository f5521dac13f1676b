"""Properties of every exercise's script."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from tests.course import CATALOG, FOLDERS

pytestmark = pytest.mark.system


@pytest.mark.parametrize("exercise_id", [exercise.id for module in CATALOG.modules for exercise in module.exercises])
def test_a_script_needs_nothing_but_its_packages_and_the_files_beside_it(exercise_id: str) -> None:
    _, exercise = CATALOG.exercise(exercise_id)
    sources = CATALOG.sources(exercise)
    for place in (place for place in sources.values() if place.endswith(".py")):
        tree = ast.parse((FOLDERS.exercises / place).read_text(encoding="utf-8"))
        at_once = tree.body  # imports inside a function may be missing, because the script handles that
        names = {alias.name for node in at_once if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module or "" for node in at_once if isinstance(node, ast.ImportFrom)}
        modules = sys.stdlib_module_names | set(exercise.packages) | {Path(name).stem for name in sources}
        assert {name.split(".")[0] for name in names} <= modules
