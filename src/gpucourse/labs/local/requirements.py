"""What simulated nodes need of this computer, for `doctor`."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys

from gpucourse.context import Context
from gpucourse.labs.local.slurm_programs import Computer, choose_programs, way_without_root
from gpucourse.local.machines.requirements import Lacking, NoNamespaces, find_program
from gpucourse.model.cloud import Finding


def find_requirements(context: Context) -> list[Finding]:
    """Return the findings about the packages, and about what separate machines with Slurm need."""
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
    """Return what the module with a cluster needs on simulated nodes. Without it, the rest of the course is unaffected."""
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
    return [Finding(what="Slurm", state="ok", detail=f"unpacked aside in {layer}" if layer else find_program("slurmctld"))]
