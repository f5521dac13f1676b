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
_MODULE = re.compile(r'"\.\./\.\./modules/([^"$%]+)"')


def copy_template(template: Path, target: Path) -> None:
    """Put a fresh copy of `template` at `target` (0700), and remove its former content.

    If the files use modules of the course (`../../modules/NAME`), all modules are copied to `modules` in the copy, and the
    paths are changed. Raises MissingError if the template or a module does not exist, StorageError.
    """
    if not is_stack(template):
        raise _report_missing(str(template))
    aside = target.with_name(f".{target.name}.new")
    with storing(target):
        _remove(aside)
        aside.parent.mkdir(parents=True, exist_ok=True)
        _copy_folder(template, aside)
        aside.chmod(0o700)
        _bring_modules(template, aside)
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


def _bring_modules(template: Path, copy: Path) -> None:
    modules, is_used = template.parent.parent / MODULES, False
    for file in sorted(copy.glob("*.tf")):
        text = file.read_text(encoding="utf-8")
        for name in _MODULE.findall(text):
            is_used = True
            if not is_stack(modules / name):
                raise _report_missing(f"{modules / name}, which {template / file.name} needs")
        write_bytes(file, text.replace(f'"../../{MODULES}/', f'"./{MODULES}/').encode())
    if is_used:
        _copy_folder(modules, copy / MODULES)


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
