"""The requirements of simulated nodes on this computer.

A simulated Slurm cluster needs Slurm's programs. They are either installed, or unpacked from packages into a folder. With
namespaces, the cluster's nodes are separate machines; without namespaces, all nodes are this one computer.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gpucourse.context import Context
from gpucourse.errors import MissingError
from gpucourse.local import layout
from gpucourse.local.machines import packages, requirements
from gpucourse.local.machines.requirements import Lacking, NoNamespaces, find_program
from gpucourse.model.cloud import Finding
from gpucourse.model.deployment import LocalDeployment
from gpucourse.model.event import Note, Watcher, stage
from gpucourse.workspace.paths import WorkspacePaths

FLAG = "--unpack-slurm"
_LACKS = (
    "All nodes are this one computer: hostname, address and processes are the same on each (SLURMD_NODENAME and SLURM_NODEID "
    "tell them apart), and ssh does not reach separate machines. For separate machines: "
)


def find_requirements(context: Context) -> list[Finding]:
    """Return findings about the required packages, and about Slurm for a simulated cluster."""
    return [
        _package("asyncssh", "simulated nodes"),
        _package("torch", "exercises on simulated nodes"),
        *_slurm(context),
    ]


def _package(name: str, serves: str) -> Finding:
    if importlib.util.find_spec(name) is None:
        mend = f"{sys.executable} -m pip install 'gpucourse[local]'"
        return Finding(what=name, state="missing", detail=f"not installed; needed for {serves}", mend=mend)
    return Finding(what=name, state="ok", detail=importlib.metadata.version(name))


def _slurm(context: Context) -> list[Finding]:
    """Return the finding about a simulated Slurm cluster. If something is missing, only the module that uses Slurm is
    affected."""
    module = next((module for module in context.catalog.modules if module.lab.scheduler == "slurm"), None)
    if module is None:
        return []
    computer = Computer()
    layer = choose_programs(context, computer)
    try:
        computer.require(slurm=True, layer=layer)
    except Lacking as error:
        if isinstance(error, NoNamespaces) and not computer.slurm_missing() and computer.has_account():
            detail = f"{find_program('slurmctld')}, but {error}: all nodes would be this one computer"
            return [Finding(what="Slurm", state="warning", detail=detail, mend=error.remedy)]
        detail = f"{error}; needed for module {module.id} on simulated nodes"
        mend = f"{error.remedy}{way_without_root(context.environ, computer, f'gpucourse deploy {module.id}')}"
        return [Finding(what="Slurm", state="warning", detail=detail, mend=mend)]
    return [Finding(what="Slurm", state="ok", detail=f"unpacked in {layer}" if layer else find_program("slurmctld"))]


@dataclass(frozen=True)
class Computer:
    """Find out whether this computer can run simulated nodes as separate machines. Tests replace it with an object that
    returns other answers."""

    require: Callable[..., None] = requirements.require
    unpackable: Callable[[], list[str]] = requirements.unpackable
    slurm_missing: Callable[[], set[str]] = requirements.slurm_missing
    has_account: Callable[[], bool] = requirements.has_account
    can_unpack: Callable[[Mapping[str, str]], bool] = packages.can_unpack
    unpack: Callable[[Mapping[str, str], list[str], Watcher], Path] = packages.unpack


def choose_programs(context: Context, computer: Computer, *, unpack: bool = False) -> Path | None:
    """Return the folder with the unpacked packages, to lay over the machines' programs. Return None if Slurm is installed or
    not unpacked.

    With `unpack`, the packages are fetched once. Raises MissingError, StorageError.
    """
    lacking = computer.unpackable()
    if lacking and unpack:
        with stage(context.watch, "packages", "fetching Slurm's packages"):
            return computer.unpack(context.environ, lacking, context.watch)
    if unpack:
        context.watch(Note(text=f"Slurm is installed here: {FLAG} has nothing to do"))
    return packages.find_unpacked(context.environ) if lacking else None


def way_without_root(environ: Mapping[str, str], computer: Computer, command: str) -> str:
    """Return a clause that says how `command` works without root privileges; empty if it does not.

    On the screen, the clause follows the command that installs Slurm.
    """
    possible = computer.unpackable() and computer.can_unpack(environ)
    return f"; or, without root privileges: {command} {FLAG}" if possible and not packages.find_unpacked(environ) else ""


def fall_back(
    paths: WorkspacePaths, computer: Computer, deployment: LocalDeployment, refusal: requirements.NoNamespaces
) -> None:
    """Record that Slurm's daemons run side by side on this computer, and which features are missing for that reason.

    Raises MissingError if Slurm is not installed here, if this user has no account, or if a link is requested, since only
    separate machines can have a link.
    """
    command = f"gpucourse deploy {deployment.module}"
    if deployment.link:
        raise MissingError(
            f"a limited network (--link) on simulated nodes: {refusal}", hint=f"{refusal.remedy}; or: --target aws"
        ) from refusal
    if missing := computer.slurm_missing():
        install = requirements.install_command(slurm=True, packages=missing)
        raise MissingError(
            f"a Slurm cluster on simulated nodes: {refusal}",
            hint=f"{refusal.remedy}; or, to have it without namespaces: {install}; or: --target aws",
        ) from refusal
    if not computer.has_account():
        raise MissingError(
            f"a Slurm cluster on simulated nodes: Slurm needs an account for its jobs, and user {os.getuid()} has none on "
            "this computer",
            hint=f"{requirements.account_command()}, then {command}; or: --target aws",
        ) from refusal
    deployment.variables.one_host = True
    deployment.variables.layer = ""
    deployment.shared = str(paths.stack(deployment.stack).nodes / layout.SHARED)
    deployment.lacks = f"{_LACKS}{refusal.remedy}; then {command}"
