"""The records of what is deployed: one file a stack, there from before its creation until a sweep proved it gone."""

from __future__ import annotations

from gpucourse.model.deployment import Deployment, Phase
from gpucourse.units import now_utc
from gpucourse.workspace.files import read_record, write_record
from gpucourse.workspace.paths import WorkspacePaths


def stack_name(module: str, target: str, gpu: str = "") -> str:
    """The name of a module's stack on a target: `03-local`, `B-local`; with the GPU, where one is chosen: `04-aws-l4`."""
    name = f"{module.zfill(2) if module.isdecimal() else module}-{target}"
    return f"{name}-{gpu}" if gpu else name


def save(paths: WorkspacePaths, deployment: Deployment, phase: Phase | None = None, error: str | None = None) -> None:
    """Store the record, in another phase where one is given."""
    deployment.phase = phase or deployment.phase
    deployment.error = error
    deployment.updated = now_utc()
    write_record(paths.deployment(deployment.stack), deployment, mode=0o600)


def load(paths: WorkspacePaths, stack: str) -> Deployment | None:
    """The record of one stack, or None where it is not deployed."""
    return read_record(paths.deployment(stack), Deployment)


def every(paths: WorkspacePaths) -> list[Deployment]:
    """The records of all stacks, by name."""
    if not paths.deployments.is_dir():
        return []
    found = (read_record(file, Deployment) for file in sorted(paths.deployments.glob("*.json")))
    return [deployment for deployment in found if deployment is not None]


def of_module(paths: WorkspacePaths, module: str) -> list[Deployment]:
    """The records of every stack of one module, the one that was touched last first."""
    found = [deployment for deployment in every(paths) if deployment.module == module]
    return sorted(found, key=lambda deployment: deployment.updated, reverse=True)


def drop(paths: WorkspacePaths, stack: str) -> None:
    """Forget a stack. Only after a sweep proved it gone."""
    paths.deployment(stack).unlink(missing_ok=True)
