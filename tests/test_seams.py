"""Fakes, limits and clocks are passed in: tests replace the program's own parts only where the table says why."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tests.over_files import nodes_of

TESTS = Path(__file__).parent
MOST = 20
REPLACED = {  # how often a file replaces a part of the program, and why nothing can be passed in there
    "system/aws/test_destroy.py": (1, "the whole of destroy runs, and no learner sets how long a removal is tried"),
    "system/test_hostile_node.py": (8, "whole commands run, and no learner sets how long a lying node is waited for"),
    "trips.py": (1, "whole commands run, and each of their connections has to pass the line that counts"),
    "unit/figures/test_plot_worker.py": (1, "drawing in this process must fail, so that the worker is seen to draw"),
    "unit/labs/test_target.py": (1, "the registry names targets by their modules, and this one is only a test's"),
    "unit/learning/test_destroying.py": (1, "Ctrl-C comes in the midst of a destroy, and that moment has no seam"),
    "unit/learning/test_ssh_include.py": (2, "whole commands run, and no test may touch the SSH configuration of its user"),
    "unit/learning/test_sweeping.py": (2, "whole commands run, and a run itself would need a lab"),
    "unit/local/test_processes.py": (1, "this computer has /proc, and the test is about one that has not"),
    "unit/remote/conftest.py": (1, "what runs on a node asks the programs of Slurm from many places, and none has a seam"),
    "unit/workspace/test_lock.py": (1, "the file is removed in the moment between its opening and its lock"),
}
PATCHES = {"setattr", "delattr", "setitem", "delitem", "patch", "object"}


def list_imported_names(nodes: Iterable[ast.AST]) -> set[str]:
    """The names of a module that stand for something of the program."""
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "gpucourse":
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.asname or "gpucourse" for alias in node.names if alias.name.split(".")[0] == "gpucourse"}
    return names


def list_replaced(nodes: Sequence[ast.AST]) -> Iterator[int]:
    """The lines that replace a part of the program: by a patch, or by an assignment to an attribute of what was imported."""
    names = list_imported_names(nodes)
    for node in nodes:
        if isinstance(node, ast.Call) and node.args:
            called = node.func
            verb = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
            targets = node.args[:1] if verb in PATCHES else []
        elif isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            assigned = node.targets if isinstance(node, ast.Assign) else [node.target]
            targets = [target for target in assigned if isinstance(target, ast.Attribute)]
        else:
            continue
        if any(_is_own(target, names) for target in targets):
            yield node.lineno


def _is_own(target: ast.expr, names: set[str]) -> bool:
    if isinstance(target, ast.Constant):
        return str(target.value).startswith("gpucourse.")
    while isinstance(target, ast.Attribute):
        target = target.value
    return isinstance(target, ast.Name) and target.id in names


def test_parts_of_the_program_are_replaced_only_with_a_reason() -> None:
    replaced = Counter(
        path.relative_to(TESTS).as_posix() for path in sorted(TESTS.rglob("*.py")) for _line in list_replaced(nodes_of(path))
    )
    assert dict(replaced) == {path: count for path, (count, _reason) in REPLACED.items()}, "pass it in as a parameter"
    assert replaced.total() <= MOST


def test_every_way_to_replace_a_part_is_seen() -> None:
    text = """
import gpucourse.parallel
import os
from gpucourse.remote import follow as read, patience
monkeypatch.setattr(read, "SILENCE_S", 1)
monkeypatch.setattr("gpucourse.units.now", None)
monkeypatch.setattr(gpucourse.parallel, "run_all", None)
mock.patch("gpucourse.units.now")
mock.patch.object(patience, "ANSWER_S")
patience.ANSWER_S = 1.0
monkeypatch.setattr(os, "fsync", None)
context.environ = {}
"""
    assert sorted(list_replaced(tuple(ast.walk(ast.parse(text))))) == [5, 6, 7, 8, 9, 10]
