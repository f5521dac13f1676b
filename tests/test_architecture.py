"""What docs/architecture.md states beside the floors (tests/test_house.py), held against the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "gpucourse"
MAX_MODULES = 25  # of a package, at one level; cli has a file a command
PACKAGES = sorted({path.parent for path in SOURCE.rglob("*.py")} - {SOURCE / "cli"})
USERS_OF_PATHS = ["cli", "labs", "learning", "runs", "ui"]  # what is given a workspace, and asks it where a file is
TEMPORARY = {"learning/rehearse.py": "a folder that is gone when the command ends"}
CLOCKS = {"time", "datetime", "os", "random", "secrets", "socket", "subprocess", "threading", "asyncio"}


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def modules_of(*packages: str) -> list[Path]:
    return sorted(path for package in packages for path in (SOURCE / package).rglob("*.py"))


def nodes_of(path: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(path.read_text(encoding="utf-8")))


def imports_of(path: Path) -> set[str]:
    """The first word of every module that a file imports."""
    names: set[str] = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").split(".")[0])
    return names


@pytest.mark.parametrize("package", PACKAGES, ids=name_of)
def test_a_package_is_small_enough_to_look_through(package: Path) -> None:
    modules = [path.name for path in package.glob("*.py") if path.name != "__init__.py"]
    assert len(modules) <= MAX_MODULES, f"{name_of(package)} holds {len(modules)} modules at one level"


@pytest.mark.parametrize("path", modules_of(*USERS_OF_PATHS), ids=name_of)
def test_where_a_file_is_only_the_paths_know(path: Path) -> None:
    for node in nodes_of(path):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            named = isinstance(node.right, ast.JoinedStr) or isinstance(getattr(node.right, "value", None), str)
            assert not named or name_of(path) in TEMPORARY, (
                f"{name_of(path)}:{node.lineno} names a file, {ast.unparse(node)}: workspace/paths.py does that"
            )


@pytest.mark.parametrize("path", modules_of("coach"), ids=name_of)
def test_the_coach_has_no_clock_and_asks_nobody(path: Path) -> None:
    assert not imports_of(path) & CLOCKS
