"""`deploy`: a record first, then Terraform, then the readiness ladder. Run again, it heals what died."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from gpucourse.context import Context
from gpucourse.errors import GpucourseError, Interrupted, StorageError, UsageError
from gpucourse.labs.lab import open_lab
from gpucourse.labs.local import lab as simulated
from gpucourse.labs.readiness import climb
from gpucourse.labs.slurm_readiness import wait_for_slurm
from gpucourse.model.deployment import Deployment, LocalDeployment
from gpucourse.model.event import stage
from gpucourse.model.manifest import Module
from gpucourse.units import now_utc
from gpucourse.workspace import deployments
from gpucourse.workspace.exercises import all_names, ensure_copies
from gpucourse.workspace.settings import Target


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What the learner typed after `deploy`. None and empty: the settings of the workspace decide, then the module.

    What begins with `gpu` is about labs that cost money; several GPUs are several labs.
    """

    module: str
    nodes: int | None = None
    target: Target | None = None
    dry_run: bool = False
    link: str | None = None
    unpack_slurm: bool = False
    gpu: tuple[str, ...] = ()
    spot: bool | None = None
    region: str | None = None
    ttl_s: float | None = None
    ssh_cidr: str = ""
    over_budget: bool = False


@dataclass(frozen=True, kw_only=True)
class Deployed:
    """What `deploy` did, or with `--dry-run` would do. `changes` are (action, address)."""

    deployment: Deployment
    changes: list[tuple[str, str]]
    dry_run: bool
    seconds: float
    healed: list[str]


def deploy(context: Context, wish: Wish) -> Deployed:
    """Stand up the lab of a module, or bring it back to health, or to another number of nodes.

    Raises UsageError for a wrong module or count, MissingError without Terraform, TerraformFailed, UnreachableError.
    """
    began = time.monotonic()
    module, nodes = context.catalog.module(wish.module), wish.nodes
    target = wish.target or context.settings.target
    stack = deployments.stack_name(module.id, target)
    _check_count(module, nodes)

    with context.lock(stack, f"deploy {module.id}"):
        before = deployments.load_as(context.paths, stack, LocalDeployment)
        deployment = before or _new(context, module, stack)
        if nodes or not before:
            deployment.nodes_wanted = nodes or module.lab.local.nodes
        simulated.choose(context, deployment, module.lab.scheduler, wish.link, unpack=wish.unpack_slurm)
        if wish.dry_run:
            return _rehearse(context, deployment, fresh=before is None, began=began)
        ensure_copies(context.paths, context.folders.exercises, all_names(context.folders.exercises))
        with recorded(context, deployment):
            lab = open_lab(context, deployment)
            lab.prepare(context.watch)
            sick = lab.sick() if before else []
            with stage(context.watch, "plan", "planning"):
                changes = lab.plan(context.watch, sick)
            with stage(context.watch, "apply", f"building {stack}"):
                deployment.inventory = lab.up(context.watch)
            deployment.terraform = lab.describe()
            deployments.save(context.paths, deployment)
            with stage(context.watch, "ready", "waiting until every node is ready"):
                climb(context, lab.paths, deployment.inventory)
                if deployment.has_slurm:
                    wait_for_slurm(context, deployment.inventory, looks=lab.inspect)
        return Deployed(
            deployment=deployment,
            changes=changes,
            dry_run=False,
            seconds=time.monotonic() - began,
            healed=list(sick),
        )


def _check_count(module: Module, nodes: int | None) -> None:
    most = module.lab.local.max_nodes
    if nodes is not None and not 1 <= nodes <= most:
        raise UsageError(
            f"--nodes {nodes}: module {module.id} takes 1 to {most} nodes",
            hint=f"gpucourse deploy {module.id} --nodes {max(1, min(most, nodes))}",
        )


def _new(context: Context, module: Module, stack: str) -> LocalDeployment:
    now = now_utc()
    return LocalDeployment(
        stack=stack,
        uid=f"{context.workspace.id}-{uuid.uuid4().hex[:12]}",
        module=module.id,
        title=module.title,
        template=module.lab.local.template,
        phase="creating",
        created=now,
        updated=now,
        nodes_wanted=module.lab.local.nodes,
    )


def _rehearse(context: Context, deployment: Deployment, *, fresh: bool, began: float) -> Deployed:
    lab = open_lab(context, deployment)
    try:
        sick = [] if fresh else lab.sick()
        changes = lab.plan(context.watch, sick)
    finally:
        if fresh:
            lab.forget_if_empty()
    return Deployed(deployment=deployment, changes=changes, dry_run=True, seconds=time.monotonic() - began, healed=sick)


@contextmanager
def recorded(context: Context, deployment: Deployment) -> Iterator[None]:
    """The record stands before anything is created, and says how it went whatever happens in the block."""
    deployments.save(context.paths, deployment, "creating")
    try:
        yield
    except BaseException as error:
        what = error.what if isinstance(error, GpucourseError) else str(error) or type(error).__name__
        # On a full disk the older record stays: it says `creating`, and `destroy` takes that as well.
        with suppress(StorageError):
            deployments.save(context.paths, deployment, "failed", error=what)
        if isinstance(error, Interrupted | KeyboardInterrupt):
            raise Interrupted(
                f"deploying {deployment.stack} was interrupted; what was built so far is recorded",
                hint=f"gpucourse deploy {deployment.module} goes on, gpucourse destroy {deployment.module} takes it down",
            ) from error
        raise
    deployments.save(context.paths, deployment, "ready")
