"""What a script of the learner's own needs beside it: the modules of its folder that it imports, and files named by --with."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

from gpucourse.errors import UsageError
from gpucourse.model.plan import Upload
from gpucourse.outside.files import read_named
from gpucourse.outside.names import OutsideError

MOST_FILES = 5000
MOST_BYTES = 1 << 20
MOST_SOURCE = 16 << 20
"""A larger file is not searched: no person wrote it."""
_WORD = re.compile(r"[\w./+@-]+")
_READ = {"", ".sh", ".bash", ".sbatch", ".slurm", ".sl"}
"""The endings of files in which others may be mentioned."""
_SKIPPED = {"__pycache__", ".git", ".venv", "venv", ".mypy_cache", ".pytest_cache", ".ipynb_checkpoints"}


def find_imports(script: Path) -> list[Upload]:
    """The modules and packages in the script's folder that it imports, and those that these import in turn.

    Found by reading, not by running: a module imported by a computed name must be named with `--with`. A file that does not
    parse has no neighbours; Python on the node reports why.
    """
    root = script.resolve().parent
    imports: dict[str, Path] = {}
    waiting = [script.resolve()]
    while waiting:
        for path in _local_imports(waiting.pop(), root):
            name = path.relative_to(root).as_posix()
            if name not in imports and path != script.resolve():
                imports[name] = path
                waiting.append(path)
    return [Upload(name=name, source=path) for name, path in sorted(imports.items())]


def starts_ranks_itself(script: Path) -> bool:
    """Whether a script is written to start its own ranks: it starts processes, and puts MASTER_PORT into the environment, where
    torchrun's ranks find theirs. Found by reading, as its imports are."""
    try:
        nodes = list(ast.walk(ast.parse(read_named(script, MOST_SOURCE))))
    except (SyntaxError, ValueError, OSError, RecursionError, MemoryError):
        return False
    calls = {getattr(node.func, "attr", getattr(node.func, "id", "")) for node in nodes if isinstance(node, ast.Call)}
    targets = [target for node in nodes if isinstance(node, ast.Assign) for target in node.targets]
    return bool(calls & {"spawn", "Process"}) and any(_is_meeting_port(target) for target in targets)


def _is_meeting_port(target: ast.expr) -> bool:
    """Whether it is `os.environ["MASTER_PORT"]`."""
    if not isinstance(target, ast.Subscript) or not isinstance(target.slice, ast.Constant):
        return False
    place = getattr(target.value, "attr", getattr(target.value, "id", ""))
    return place == "environ" and target.slice.value == "MASTER_PORT"


def find_mentioned_files(script: Path) -> list[Upload]:
    """The files in the script's folder and below whose paths stand as words in a shell script, as in `python train.py` and
    `sbatch next.sh`, and those that these need in turn.

    A file larger than MOST_BYTES must be named with `--with`: it may be data that is on the nodes already.
    """
    root = script.resolve().parent
    mentioned: dict[str, Path] = {}
    waiting = [script.resolve()]
    while waiting and len(mentioned) < MOST_FILES:
        path = waiting.pop()
        for needed in _local_imports(path, path.parent) if path.suffix == ".py" else _mentions(path, root):
            name = needed.relative_to(root).as_posix()
            if name not in mentioned and needed != script.resolve():
                mentioned[name] = needed
                waiting.append(needed)
    return [Upload(name=name, source=path) for name, path in sorted(mentioned.items())]


def find_named_files(extra: tuple[Path, ...], script: Path, most: int = MOST_FILES) -> list[Upload]:
    """The files and folders of `--with`: under the script's folder at the same place, others under their own name.

    Raises UsageError for a path that does not exist, and for a folder with too many files.
    """
    root = script.resolve().parent
    uploads: list[Upload] = []
    for wanted in extra:
        if not wanted.exists():
            raise UsageError(f"--with {wanted}: there is no such file or folder", hint="name a file or folder on this computer")
        source = Path.cwd() / wanted  # not resolved: a link stands for its target, under its own name
        source = Path(os.path.normpath(source))
        place = source.relative_to(root) if source.is_relative_to(root) else Path(source.name)
        if source.is_file():
            uploads.append(Upload(name=place.as_posix(), source=source))
            continue
        if not source.is_dir():
            raise UsageError(
                f"--with {wanted}: it is neither a file nor a folder", hint="name a file or folder on this computer"
            )
        for path in _files(source):
            uploads.append(Upload(name=(place / path.relative_to(source)).as_posix(), source=path))
            if len(uploads) > most:
                raise UsageError(
                    f"--with {wanted}: more than {most} files",
                    hint="pack them into one file, and unpack it in the script",
                )
    return uploads


def _local_imports(path: Path, root: Path) -> Iterator[Path]:
    try:
        tree = ast.parse(read_named(path, MOST_SOURCE))
    except (SyntaxError, ValueError, OSError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _module(root, alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            base = path.parent if node.level else root
            for _ in range(node.level - 1):
                base = base.parent
            parts = node.module.split(".") if node.module else []
            if base != root and root not in base.parents:
                continue
            yield from _module(base, parts)
            for alias in node.names:  # from package import module
                yield from _module(base, [*parts, alias.name])


def _mentions(path: Path, root: Path) -> Iterator[Path]:
    """The files below `root` whose paths, as seen from there, stand as words in a file."""
    if path.suffix not in _READ:
        return
    try:
        text = read_named(path, MOST_SOURCE).decode("utf-8", "replace")
    except (OSError, OutsideError):
        return
    for word in dict.fromkeys(_WORD.findall(text)):
        try:
            file = (root / word).resolve()
            if file.is_relative_to(root) and file.is_file() and file.stat().st_size <= MOST_BYTES:
                yield file
        except OSError:  # a word that is too long for a name
            continue


def _module(base: Path, parts: list[str]) -> Iterator[Path]:
    """The files that importing a dotted name reads, as far as they lie under `base`."""
    place = base
    for part in parts:
        if (file := place / f"{part}.py").is_file():
            yield file
        place /= part
        if (package := place / "__init__.py").is_file():
            yield package
        elif not place.is_dir():
            return


def _files(folder: Path) -> Iterator[Path]:
    for where, folders, names in os.walk(folder, followlinks=False):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        for name in sorted(names):
            path = Path(where, name)
            if path.is_file() and path.suffix != ".pyc":
                yield path
