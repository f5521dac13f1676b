"""`deploy`: find the target of the request, and record the lab before and after it is built."""

from __future__ import annotations

import shlex
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from gpucourse.errors import GpucourseError, Interrupted, StorageError, UsageError
from gpucourse.labs.request import DeployRequest
from gpucourse.labs.target import Target, find_target, load_targets
from gpucourse.model.deployment import Deployment
from gpucourse.units import now_utc
from gpucourse.workspace import deployments
from gpucourse.workspace.locate import Workspace
from gpucourse.workspace.paths import WorkspacePaths

if TYPE_CHECKING:
    from gpucourse.model.manifest import Module
    from gpucourse.workspace.settings import Settings


D = TypeVar("D", bound=Deployment)


def choose_target(settings: Settings, request: DeployRequest) -> Target[Any, Any]:
    """Return the target that the request names, otherwise the target that its flags imply, otherwise the one in the settings.

    Raises UsageError for flags that only another target has, MissingError for a target that is not installed.
    """
    typed, targets = request.flags, load_targets()
    implied = next((target.name for target in targets if target.implied_by & set(typed)), None)
    chosen_target = find_target(request.target or implied or settings.target)
    for target in targets:
        if flags := [flag for flag in typed if flag in target.flags - chosen_target.flags]:
            words = [word for flag in flags for word in typed[flag]]
            example = [] if target.implied_by & set(flags) else target.example
            raise UsageError(
                f"{', '.join(flags)}: only for {target.serves}",
                hint=shlex.join(["gpucourse", "deploy", request.module, "--target", target.name, *words, *example]),
            )
    return chosen_target


def make_record(workspace: Workspace, kind: Callable[..., D], module: Module, stack: str, *, template: str, nodes: int) -> D:
    """Return a new record of a lab that is about to be built. The record is not stored yet."""
    now = now_utc()
    return kind(
        stack=stack,
        uid=f"{workspace.id}-{uuid.uuid4().hex[:12]}",
        module=module.id,
        title=module.title,
        template=template,
        phase="creating",
        created=now,
        updated=now,
        nodes_wanted=nodes,
    )


@contextmanager
def record_outcome(paths: WorkspacePaths, deployment: Deployment) -> Iterator[None]:
    """Record the deployment before anything is created, and its outcome after the block, even if the block fails."""
    deployments.save(paths, deployment, "creating")
    try:
        yield
    except BaseException as error:
        is_interrupted = isinstance(error, Interrupted | KeyboardInterrupt)
        problem = error.what if isinstance(error, GpucourseError) else str(error) or type(error).__name__
        # On a full disk the older record stays: its state is `creating`, and `destroy` accepts that as well.
        with suppress(StorageError):
            deployments.save(paths, deployment, "failed", error="interrupted" if is_interrupted else problem)
        if is_interrupted:
            raise Interrupted(
                f"deploying {deployment.stack} was interrupted; what was built so far is recorded",
                hint=f"gpucourse deploy {deployment.module} continues, gpucourse destroy {deployment.module} takes it down",
            ) from error
        raise
    deployments.save(paths, deployment, "ready")
