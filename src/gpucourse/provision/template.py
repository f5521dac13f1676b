"""The stack's own copy of its Terraform files, with the modules that they use. It is made completely or not at all.

The copy stays with its state, so that `destroy` uses the same files as `deploy`, even after an upgrade.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from gpucourse.errors import MissingError
from gpucourse.storage import storing, write_bytes

MODULES = "modules"

_NOT_COPIED = shutil.ignore_patterns(
    ".terraform", "tests", "*.tfstate", "*.tfstate.*", "*.tfvars", "*.tfvars.json", "*.tfplan", "*.md", "__pycache__", ".git*"
)
_LOCAL_SOURCE = re.compile(
    r'^(?P<before>\s*(?:module\s+"[^"\n]*"\s*\{\s*)?source\s*=\s*)"(?P<path>\.{1,2}/[^"$%]*)"', re.MULTILINE
)


def copy_template(template: Path, target: Path) -> None:
    """Put a fresh copy of `template` at `target` (0700), and remove its former content.

    If the files use a module at a relative path outside the template, the module is copied to `modules/<its name>` in the copy,
    and the path is changed. Raises MissingError if the template or a module does not exist, StorageError.
    """
    if not is_stack(template):
        raise _report_missing(str(template))
    aside = target.with_name(f".{target.name}.new")
    with storing(target):
        _remove(aside)
        aside.parent.mkdir(parents=True, exist_ok=True)
        _copy_folder(template, aside)
        aside.chmod(0o700)
        _bring_modules(template, aside, aside, {})
        _remove(target)
        aside.rename(target)


def restore_template(template: Path, target: Path) -> None:
    """Put the template's files back into `target`. The state and other files in it stay."""
    whole = target.with_name(f"{target.name}.restored")
    copy_template(template, whole)
    with storing(target):
        shutil.copytree(whole, target, copy_function=shutil.copyfile, dirs_exist_ok=True)
        shutil.rmtree(whole)


def is_stack(folder: Path) -> bool:
    """Return whether the folder contains Terraform files."""
    return any(folder.glob("*.tf")) or any(folder.glob("*.tf.json"))


def _bring_modules(original: Path, copy: Path, root: Path, copy_names: dict[Path, str]) -> None:
    """Copy the modules that the files in `copy` (a copy of `original`) use, and change the paths in the files."""
    for file in sorted(copy.glob("*.tf")):
        text = file.read_text(encoding="utf-8")
        pieces, end = [], 0
        for match in _LOCAL_SOURCE.finditer(text):
            source = (original / match["path"]).resolve()
            if source.is_relative_to(original.resolve()):
                continue  # it was copied with its folder
            if source not in copy_names:
                copy_names[source] = _bring(source, root, set(copy_names.values()), named_in=original / file.name)
                _bring_modules(source, root / MODULES / copy_names[source], root, copy_names)
            new = f"./{MODULES}/{copy_names[source]}" if copy == root else f"../{copy_names[source]}"
            pieces += [text[end : match.start()], f'{match["before"]}"{new}"']
            end = match.end()
        if pieces:
            write_bytes(file, "".join([*pieces, text[end:]]).encode())


def _bring(source: Path, root: Path, names: set[str], *, named_in: Path) -> str:
    if not is_stack(source):
        raise _report_missing(f"{source}, which {named_in} needs")
    name, number = source.name, 2
    while name in names or (root / MODULES / name).exists():
        name, number = f"{source.name}-{number}", number + 1
    _copy_folder(source, root / MODULES / name)
    return name


def _copy_folder(source: Path, target: Path) -> None:
    """Copy the content of a folder, but not the modes: an installed package may be read-only, but its copy must not be."""
    shutil.copytree(source, target, ignore=_NOT_COPIED, copy_function=shutil.copyfile)
    for folder in (target, *(path for path in target.rglob("*") if path.is_dir())):
        folder.chmod(0o755)


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)


def _report_missing(subject: str) -> MissingError:
    return MissingError(
        f"the course's Terraform files are missing: {subject}",
        hint="install the course again: pip install --force-reinstall --no-deps gpucourse",
    )
