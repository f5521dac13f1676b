"""Find the other files that a learner's script needs: the modules that it imports from its folder, and the files named with
--with."""

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

MAX_FILES = 5000
MAX_BYTES = 1 << 20
MAX_SOURCE_BYTES = 16 << 20
"""The largest file that is searched. No person writes a larger one."""
_WORD = re.compile(r"[\w./+@-]+")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]{1,255})"', re.MULTILINE)
_READ = {"", ".sh", ".bash", ".sbatch", ".slurm", ".sl"}
"""The endings of files in which other files may be mentioned."""
_SKIPPED = {"__pycache__", ".git", ".venv", "venv", ".mypy_cache", ".pytest_cache", ".ipynb_checkpoints"}


def find_module(name: str, root: Path) -> Path:
    """Return the file that `python -m name` runs if it is typed in `root`. Raises UsageError if there is none."""
    parts = name.split(".")
    if all(part.isidentifier() for part in parts):
        place = root.joinpath(*parts)
        for file in (place / "__main__.py", place.with_name(f"{place.name}.py")):
            if file.is_file():
                return file
    raise UsageError(
        f"--module {name}: there is no such module in {root}",
        hint="type it in the folder in which python -m finds the module, such as the one that contains its package",
    )


def find_base(script: Path, extra: tuple[Path, ...]) -> Path:
    """Return the folder that becomes the node's working folder.

    This is the outermost folder that `--with` names and that contains the script. If there is none, it is the script's own
    folder. Folders above the current folder do not count.
    """
    folder, current = script.resolve().parent, Path.cwd()
    places = [place for place in map(_locate, extra) if folder.is_relative_to(place) and place.is_relative_to(current)]
    return min([folder, *places], key=lambda place: len(place.parts))


def find_imports(script: Path, base: Path | None = None, module: str = "") -> list[Upload]:
    """Return the modules and packages in the script's folder that the script imports, directly or through other modules, named
    by their paths in `base`.

    `module`: the script's module name in `base`, if it is run as a module. Then the imports are looked up in `base`, and the
    script's own packages are among the results.

    The files are read, not run. A module that is imported by a computed name must be named with `--with`. A file that does not
    parse counts as a file without imports; Python on the node reports the error.
    """
    script = script if module else script.resolve()
    base = base or script.parent
    root = base if module else script.parent
    imports: dict[Path, None] = {}
    waiting = [script, *_module(root, module.split("."))] if module else [script]
    while waiting:
        path = waiting.pop()
        if path in imports:
            continue
        imports[path] = None
        waiting.extend(_local_imports(path, root))
    by_name = {path.relative_to(base).as_posix(): path for path in imports if path != script}
    return [Upload(name=name, source=path) for name, path in sorted(by_name.items())]


def find_mentioned_files(script: Path) -> list[Upload]:
    """Return the files in or below the script's folder that a shell script mentions, as in `python train.py`, and the files
    that these need.

    A file larger than MAX_BYTES must be named with `--with`, because it may be data that is already on the nodes.
    """
    root = script.resolve().parent
    mentioned: dict[str, Path] = {}
    waiting = [script.resolve()]
    while waiting and len(mentioned) < MAX_FILES:
        path = waiting.pop()
        for file in _local_imports(path, path.parent) if path.suffix == ".py" else _mentions(path, root):
            name = file.relative_to(root).as_posix()
            if name not in mentioned and file != script.resolve():
                mentioned[name] = file
                waiting.append(file)
    return [Upload(name=name, source=path) for name, path in sorted(mentioned.items())]


def find_included_files(source: Path) -> list[Upload]:
    """Return the files in or below a CUDA program's folder that the program includes in quotes, directly or through other
    files, named by their paths in that folder. A file that cannot be read counts as a file without includes."""
    root = source.resolve().parent
    included: dict[str, Path] = {}
    waiting = [source.resolve()]
    while waiting and len(included) < MAX_FILES:
        path = waiting.pop()
        try:
            text = read_named(path, MAX_SOURCE_BYTES).decode("utf-8", "replace")
        except (OSError, OutsideError):
            continue
        for word in _INCLUDE.findall(text):
            file = (path.parent / word).resolve()
            if file.is_relative_to(root) and file.is_file() and (name := file.relative_to(root).as_posix()) not in included:
                included[name] = file
                waiting.append(file)
    return [Upload(name=name, source=path) for name, path in sorted(included.items())]


def find_named_files(extra: tuple[Path, ...], base: Path, max_files: int = MAX_FILES) -> list[Upload]:
    """Return the files that `--with` names, and the files in the folders that it names.

    Files below `base` keep their path there. Other files and folders are put under their own name. Raises UsageError if a path
    does not exist, or if a folder has too many files.
    """
    uploads: list[Upload] = []
    for extra_path in extra:
        if not extra_path.exists():
            raise UsageError(
                f"--with {extra_path}: there is no such file or folder", hint="name a file or folder on this computer"
            )
        source = _locate(extra_path)
        place = source.relative_to(base) if source.is_relative_to(base) else Path(source.name)
        if source.is_file():
            uploads.append(Upload(name=place.as_posix(), source=source))
            continue
        if not source.is_dir():
            raise UsageError(
                f"--with {extra_path}: it is neither a file nor a folder", hint="name a file or folder on this computer"
            )
        for path in _list_files(source):
            uploads.append(Upload(name=(place / path.relative_to(source)).as_posix(), source=path))
            if len(uploads) > max_files:
                raise UsageError(
                    f"--with {extra_path}: more than {max_files} files",
                    hint="pack them into one file, and unpack it in the script",
                )
    return uploads


def _locate(path: Path) -> Path:
    """Return the absolute path of a typed path. Links are not resolved, so that a link keeps its own name."""
    return Path(os.path.normpath(Path.cwd() / path))


def _local_imports(path: Path, root: Path) -> Iterator[Path]:
    try:
        tree = ast.parse(read_named(path, MAX_SOURCE_BYTES))
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
    """Yield the files of at most MAX_BYTES below `root` whose paths, relative to `root`, are words in the file at `path`."""
    if path.suffix not in _READ:
        return
    try:
        text = read_named(path, MAX_SOURCE_BYTES).decode("utf-8", "replace")
    except (OSError, OutsideError):
        return
    for word in dict.fromkeys(_WORD.findall(text)):
        try:
            file = (root / word).resolve()
            if file.is_relative_to(root) and file.is_file() and file.stat().st_size <= MAX_BYTES:
                yield file
        except OSError:  # a word that is too long for a name
            continue


def _module(base: Path, parts: list[str]) -> Iterator[Path]:
    """Yield the files under `base` that Python reads when a dotted name is imported."""
    place = base
    for part in parts:
        if (file := place / f"{part}.py").is_file():
            yield file
        place /= part
        if (package := place / "__init__.py").is_file():
            yield package
        elif not place.is_dir():
            return


def _list_files(folder: Path) -> Iterator[Path]:
    """Yield the files that `--with` uploads from a folder."""
    for parent, folders, names in os.walk(folder, followlinks=False):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        for name in sorted(names):
            path = Path(parent, name)
            if path.is_file() and path.suffix != ".pyc":
                yield path
