"""`doctor`: everything that would stop the course on this machine, found in one go, each with the command that fixes it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import sys

from gpucourse.context import Context
from gpucourse.errors import GpucourseError
from gpucourse.model.cloud import Finding
from gpucourse.units import format_bytes

ENOUGH_BYTES = 1 << 30  # a run with its outputs and pictures takes some megabytes; a full disk ends everything


def doctor(context: Context) -> list[Finding]:
    """Look at everything that the course needs on this machine."""
    return [
        _python(),
        _terraform(context),
        _package("asyncssh", "simulated nodes"),
        _package("torch", "exercises on simulated nodes"),
        _tool("ssh", "gpucourse ssh, editors", "install OpenSSH's client (apt install openssh-client)"),
        *_slurm(context),
        _workspace(context),
        course(context),
    ]


def course(context: Context) -> Finding:
    """Whether every module can be read."""
    broken = context.catalog.broken
    if broken:
        return Finding(
            what="course", state="missing", detail="; ".join(error.what for error in broken), mend="fix these manifests"
        )
    return Finding(what="course", state="ok", detail=f"{len(context.catalog.modules)} modules in {context.folders.modules}")


def _python() -> Finding:
    return Finding(what="Python", state="ok", detail=f"{sys.version.split()[0]} at {sys.executable}")


def _terraform(context: Context) -> Finding:
    from gpucourse.provision.binary import find_terraform

    try:
        binary = find_terraform(context.environ, cache=context.paths.terraform_version)
    except GpucourseError as error:
        return Finding(what="Terraform", state="missing", detail=error.what, mend=error.hint)
    return Finding(what="Terraform", state="ok", detail=binary.describe())


def _package(name: str, serves: str) -> Finding:
    if importlib.util.find_spec(name) is None:
        mend = f"{sys.executable} -m pip install 'gpucourse[local]'"
        return Finding(what=name, state="missing", detail=f"not installed; needed for {serves}", mend=mend)
    return Finding(what=name, state="ok", detail=importlib.metadata.version(name))


def _tool(name: str, serves: str, mend: str) -> Finding:
    path = shutil.which(name)
    if path is None:
        return Finding(what=name, state="warning", detail=f"not found; needed for {serves}", mend=mend)
    return Finding(what=name, state="ok", detail=path)


def _slurm(context: Context) -> list[Finding]:
    """What the module with a cluster needs to have it on simulated nodes. Without it the rest of the course is unaffected."""
    from gpucourse.labs.local.slurm_programs import choose_programs, way_without_root
    from gpucourse.local.machines.requirements import Lacking, NoNamespaces, find_program, require, slurm_missing

    module = next((module for module in context.catalog.modules if module.lab.scheduler == "slurm"), None)
    if module is None:
        return []
    layer = choose_programs(context)
    try:
        require(slurm=True, layer=layer)
    except Lacking as error:
        if isinstance(error, NoNamespaces) and not slurm_missing():
            detail = f"{find_program('slurmctld')}, but {error}: all nodes would be this one computer"
            return [Finding(what="Slurm", state="warning", detail=detail, mend=error.remedy)]
        detail = f"{error}; needed for module {module.id} on simulated nodes"
        mend = f"{error.remedy}{way_without_root(context, f'gpucourse deploy {module.id}')}"
        return [Finding(what="Slurm", state="warning", detail=detail, mend=mend)]
    return [Finding(what="Slurm", state="ok", detail=f"unpacked aside in {layer}" if layer else find_program("slurmctld"))]


def _workspace(context: Context) -> Finding:
    root = context.paths.root
    if not os.access(root, os.W_OK):
        return Finding(what="workspace", state="missing", detail=f"{root} cannot be written", mend=f"chmod u+w '{root}'")
    free = shutil.disk_usage(root).free
    if free < ENOUGH_BYTES:
        mend = f"free some space there: df -h '{root}'"
        return Finding(what="workspace", state="warning", detail=f"{root}: only {format_bytes(free)} free", mend=mend)
    return Finding(what="workspace", state="ok", detail=f"{root}, {format_bytes(free)} free")
