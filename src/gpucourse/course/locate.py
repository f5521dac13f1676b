"""The folders of the course: next to the program in a checkout, in an installed package, or where an author put them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import gpucourse
from gpucourse.errors import MissingError, UsageError

OVERRIDE = "GPUCOURSE_COURSE"
PARTS = ("modules", "exercises", "terraform")
TEMPLATE = "template"
PACKAGE = Path(gpucourse.__file__).resolve().parent


@dataclass(frozen=True)
class CourseFolders:
    """The three folders of a course: its modules, its exercises and its Terraform files."""

    modules: Path
    exercises: Path
    terraform: Path

    def stack(self, template: str) -> Path:
        """Return the folder with the Terraform files of the stack `template`."""
        return self.terraform / "stacks" / template


def find_course(environ: Mapping[str, str], package: Path = PACKAGE) -> CourseFolders:
    """Return the folders of the course. `GPUCOURSE_COURSE=DIR` names an author's own course, which may use the built-in
    `terraform/`.

    `package` is the folder in which the program is installed.

    Raises MissingError if a folder is missing.
    """
    if not (folder := environ.get(OVERRIDE)):
        return _find_built_in(package)
    return course_in(
        Path(folder), named_by=OVERRIDE, hint=f"name a folder that contains modules/ and exercises/, or unset {OVERRIDE}"
    )


def course_in(folder: Path, *, named_by: str = "", hint: str) -> CourseFolders:
    """Return the course in `folder`, which may use the built-in `terraform/`.

    Raises UsageError if a part is missing, or MissingError if a setting, `named_by`, named the folder. The message contains
    `hint`.
    """
    root = folder.expanduser().absolute()
    for part in ("modules", "exercises"):
        if not (root / part).is_dir():
            lacks = f"has no folder {part}/" if root.is_dir() else "is not a folder"
            if named_by:
                raise MissingError(f"{named_by} is {root}, which {lacks}", hint=hint)
            raise UsageError(f"{root} {lacks}", hint=hint)
    own_terraform, built_in = root / "terraform", _find_built_in(PACKAGE)
    return CourseFolders(root / "modules", root / "exercises", own_terraform if own_terraform.is_dir() else built_in.terraform)


def find_named_course(environ: Mapping[str, str]) -> Path | None:
    """Return the folder in `GPUCOURSE_COURSE`, or None if it is not set, or if it is the folder of the built-in course."""
    if not (folder := environ.get(OVERRIDE)):
        return None
    root = Path(folder).expanduser().absolute()
    return None if _find_built_in(PACKAGE).modules.parent == root else root


def find_template(package: Path = PACKAGE) -> Path:
    """Return the folder that `dev new` copies. Raises MissingError if it is missing."""
    root = _find_root((*PARTS, TEMPLATE), package)
    return root / TEMPLATE


def _find_built_in(package: Path) -> CourseFolders:
    root = _find_root(PARTS, package)
    return CourseFolders(*(root / part for part in PARTS))


def _find_root(parts: tuple[str, ...], package: Path) -> Path:
    """Return the folder that contains the built-in course: the package, or the checkout around it."""
    roots = (package / "_course", package.parent.parent)
    for root in roots:
        if all((root / part).is_dir() for part in parts):
            return root
    raise MissingError(
        f"the course itself ({', '.join(f'{part}/' for part in parts)}) is neither in {roots[0]} nor in {roots[1]}",
        hint="reinstall it: pip install --force-reinstall gpucourse",
    )
