"""What the scripts of an exercise import: helpers of the course that must be uploaded with them, and packages of the nodes."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from gpucourse.course.rules import place_of
from gpucourse.course.written import did_you_mean
from gpucourse.model.manifest import Exercise

BROUGHT = {"torch": {"numpy"}}  # what an import of the package also imports: torch needs numpy


def find_missing_imports(exercise: Exercise, sources: Mapping[str, str], exercises: Path, folder: str) -> Iterator[str]:
    """Yield the imports that fail on a node, one line each: `place: reason`.

    `sources` are the uploaded files, as `Catalog.sources` returns them; `folder` is the module's in `exercises`. A package is
    checked only if the script itself imports it at once when it starts: any other import may be optional, and a function that
    imports one may never be called.
    """
    for name, place in sources.items():
        tree = _parse(exercises / place)
        if tree is None:
            continue
        for module in sorted(_list_imports(_walk_start(tree))):
            if f"{module}.py" in sources or any(file.startswith(f"{module}/") for file in sources):
                continue
            file = next((file for file in (f"{module}.py", module) if place_of(exercises, folder, file)), None)
            if file is not None and module not in sys.stdlib_module_names:
                yield f"files: {name} imports {module}, and {file} is not uploaded: add it to files"
    yield from _find_missing_packages(exercise, sources, exercises)


def _find_missing_packages(exercise: Exercise, sources: Mapping[str, str], exercises: Path) -> Iterator[str]:
    tree = _parse(exercises / sources[exercise.script])
    helpers = {Path(name).stem for name in sources} | {name.split("/")[0] for name in sources if "/" in name}
    brought = {name for package in exercise.packages for name in BROUGHT.get(package, ())}
    known = {*exercise.packages, *brought, *helpers, *sys.stdlib_module_names}
    own = {path.stem for path in (exercises / sources[exercise.script]).parent.glob("*.py")}
    own |= {path.stem for path in (exercises / "shared").glob("*.py")}
    for module in sorted(_list_imports(tree.body if tree else ())):
        if module not in known and module not in own:  # helpers were reported above
            near = did_you_mean(module, {Path(name).stem for name in sources if name.endswith(".py")})
            yield f"packages: {exercise.script} imports {module}, and nodes are not asked for it: add it to packages{near}"


def _walk_start(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that run when a file is imported: not those in functions."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield node
            yield from _walk_start(node)


def _list_imports(nodes: Iterator[ast.AST] | list[ast.stmt] | tuple[()]) -> set[str]:
    """Return the first words of the names that these statements import."""
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return names


def _parse(path: Path) -> ast.Module | None:
    """Parse the file as Python; None for any other file, and for one whose error is reported elsewhere."""
    if path.suffix != ".py":
        return None
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError, OSError):
        return None
