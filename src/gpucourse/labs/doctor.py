"""`doctor`: find everything on this computer that would prevent the course from working, and show a command that fixes each
problem."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping

from gpucourse.context import Context
from gpucourse.errors import GpucourseError
from gpucourse.labs.target import load_targets
from gpucourse.model.cloud import Finding
from gpucourse.model.launching import USUAL, advise_install, advised_extra
from gpucourse.model.manifest import Exercise, Module
from gpucourse.units import format_bytes
from gpucourse.workspace.paths import WorkspacePaths

ENOUGH_BYTES = 1 << 30  # a run with its outputs and pictures takes a few megabytes; a full disk stops everything


def doctor(context: Context, target_name: str, module: str | None = None) -> list[Finding]:
    """Check everything that labs on this target need on this computer, and return the findings.

    With `module`, also check the programs and packages that the module's exercises use.
    """
    return [
        _python(),
        _terraform(context.environ),
        _tool("ssh", "; needed for gpucourse ssh and editors", "install OpenSSH's client (apt install openssh-client)"),
        *(
            finding
            for target in load_targets()
            for finding in target.find_requirements(context, is_selected=target.name == target_name)
        ),
        _workspace(context.paths),
        check_course(context),
        *(list_programs(context.catalog.module(module)) if module is not None else ()),
    ]


def list_programs(module: Module) -> list[Finding]:
    """Return a finding for each program and each uncommon package that a module's exercises use.

    Without an optional program, figures are left out. Without a required one, the exercise stops.
    """
    users_by_program = _users(module, lambda exercise: exercise.programs)
    optional = _users(module, lambda exercise: exercise.optional_programs)
    findings = [
        _tool(name, f"; needed for {_join(users)}", f"sudo apt-get install {name}") for name, users in users_by_program.items()
    ]
    for name, users in optional.items():
        if name not in users_by_program:
            findings.append(_tool(name, f": its measurements in {_join(users)} are left out"))
    packages = _users(module, lambda exercise: [name for name in exercise.packages if advised_extra(name) != USUAL])
    for name, users in packages.items():
        is_installed = importlib.util.find_spec(name) is not None
        detail = importlib.metadata.version(name) if is_installed else f"not installed; needed for {_join(users)}"
        mend = "" if is_installed else advise_install([name], sys.executable, on_this_computer=True)
        findings.append(Finding(what=name, state="ok" if is_installed else "warning", detail=detail, mend=mend))
    return findings


def _users(module: Module, names_of: Callable[[Exercise], Iterable[str]]) -> dict[str, list[str]]:
    """Return the exercises that use each program or package, by its name."""
    users: dict[str, list[str]] = {}
    for exercise in module.exercises:
        for name in names_of(exercise):
            users.setdefault(name, []).append(exercise.id)
    return users


def _join(words: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _python() -> Finding:
    return Finding(what="Python", state="ok", detail=f"{sys.version.split()[0]} at {sys.executable}")


def _terraform(environ: Mapping[str, str]) -> Finding:
    from gpucourse.provision.binary import find_terraform

    try:
        binary = find_terraform(environ)
    except GpucourseError as error:
        return Finding(what="Terraform", state="missing", detail=error.what, mend=error.hint)
    return Finding(what="Terraform", state="ok", detail=binary.describe())


def _tool(name: str, consequence: str, mend: str = "") -> Finding:
    path = shutil.which(name)
    if path is None:
        return Finding(what=name, state="warning", detail=f"not found{consequence}", mend=mend)
    return Finding(what=name, state="ok", detail=path)


def _workspace(paths: WorkspacePaths) -> Finding:
    root = paths.root
    folder = next(folder for folder in (root, *root.parents) if folder.exists())
    if not os.access(folder, os.W_OK):
        detail, mend = f"{root} cannot be written", f"chmod u+w '{root}'"
        if folder != root:
            detail, mend = f"{root} cannot be made", "gpucourse init DIR, then export GPUCOURSE_WORKSPACE=DIR"
        return Finding(what="workspace", state="missing", detail=detail, mend=mend)
    free = shutil.disk_usage(folder).free
    if free < ENOUGH_BYTES:
        mend = f"free some space there: df -h '{root}'"
        return Finding(what="workspace", state="warning", detail=f"{root}: only {format_bytes(free)} free", mend=mend)
    return Finding(what="workspace", state="ok", detail=f"{root}, {format_bytes(free)} free")


def check_course(context: Context) -> Finding:
    """Return whether every module can be read, and how to repair those that cannot."""
    errors = context.catalog.errors
    if errors:
        return Finding(
            what="course", state="missing", detail="; ".join(error.what for error in errors), mend="fix these manifests"
        )
    return Finding(what="course", state="ok", detail=f"{len(context.catalog.modules)} modules in {context.folders.modules}")
