"""A rule for many files as one test: with a test for each of about a thousand files, collecting takes longer than checking."""

from __future__ import annotations

import ast
import gc
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Every node of a Python file's syntax tree. They are shared: leave them as they are."""
    nodes = tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    gc.freeze()  # a million nodes for all files: looking for circles among them takes longer than parsing
    return nodes


def last_word(node: ast.expr) -> str:
    """The last of the names with points between them; empty where it is something else."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def over_files(paths: Iterable[Path]) -> Callable[[Callable[[Path], None]], Callable[[], None]]:
    """Make a test of a check of one file: it checks all of them, and fails with what every one that breaks the rule said."""
    checked = tuple(paths)
    assert checked, "no file is there"

    def make_test(check: Callable[[Path], None]) -> Callable[[], None]:
        def test() -> None:
            complaints = []
            for path in checked:
                try:
                    check(path)
                except AssertionError as error:
                    complaints.append(f"{path}: {error}")
            assert not complaints, "\n".join(complaints)

        test.__doc__ = check.__doc__
        return test

    return make_test
