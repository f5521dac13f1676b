"""Slurm without namespaces: decides whether a lab on this computer has to work without them, and reports what is missing."""

from __future__ import annotations

import os

from gpucourse.context import Context
from gpucourse.errors import MissingError
from gpucourse.labs.local.slurm_programs import Computer
from gpucourse.local import layout
from gpucourse.local.machines import requirements
from gpucourse.model.deployment import LocalDeployment

_LACKS = (
    "All nodes are this one computer: hostname, address and processes are the same on each (SLURMD_NODENAME and SLURM_NODEID "
    "tell them apart), and ssh does not reach separate machines. For separate machines: "
)


def fall_back(context: Context, computer: Computer, deployment: LocalDeployment, refused: requirements.NoNamespaces) -> None:
    """Record that Slurm's daemons run side by side on this computer, and what is missing for that reason.

    Raises MissingError if a link is requested as well, which only separate machines can have, if Slurm is not installed here,
    or if this user has no account.
    """
    again = f"gpucourse deploy {deployment.module}"
    if deployment.link:
        raise MissingError(
            f"a link of its own on simulated nodes: {refused}", hint=f"{refused.remedy}; or: --target aws"
        ) from refused
    if missing := computer.slurm_missing():
        install = requirements.install_command(slurm=True, packages=missing)
        raise MissingError(
            f"a Slurm cluster on simulated nodes: {refused}",
            hint=f"{refused.remedy}; or, to have it without namespaces: {install}; or: --target aws",
        ) from refused
    if not computer.has_account():
        raise MissingError(
            f"a Slurm cluster on simulated nodes: Slurm needs an account for its jobs, and user {os.getuid()} has none on "
            "this computer",
            hint=f"{requirements.account_command()}, then {again}; or: --target aws",
        ) from refused
    deployment.variables.one_host = True
    deployment.variables.layer = ""
    deployment.shared = str(context.paths.stack(deployment.stack).nodes / layout.SHARED)
    deployment.lacks = f"{_LACKS}{refused.remedy}; then {again}"


def forget(deployment: LocalDeployment) -> None:
    """Record that the daemons do not, or no longer, run side by side."""
    deployment.variables.one_host = False
    deployment.lacks = ""
