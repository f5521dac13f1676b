"""Choose a lab, and list what it needs from an AWS account: machines, disks, storage and hours.

A value comes from the command, otherwise from the settings, otherwise from the manifest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from gpucourse.aws.offerings import type_for, validate_region
from gpucourse.context import Context
from gpucourse.errors import MissingError, UsageError
from gpucourse.limits import MAX_LAB_HOURS, MIN_LAB_HOURS
from gpucourse.model.cloud import LabNeed, Machines, Market
from gpucourse.model.deployment import AwsDeployment
from gpucourse.model.labs import AwsLab
from gpucourse.model.manifest import Module
from gpucourse.provision.state import addresses
from gpucourse.units import format_seconds
from gpucourse.workspace import deployments
from gpucourse.workspace.paths import WorkspacePaths

if TYPE_CHECKING:
    from gpucourse.course.catalog import Catalog
    from gpucourse.labs.request import DeployRequest
    from gpucourse.workspace.settings import Settings


HEAD = Machines(instance_type="t3.medium", disk_gib=30, spot=False)  # as in terraform/stacks/slurm-cluster


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One lab with one GPU model.

    `others`: the instance types to use if the lab's own type is sold out.
    `existing`: the record of the lab, if any part of it exists.
    `former`: the record of a failed attempt that left nothing; the lab keeps the name of that attempt.
    """

    module: Module
    lab: AwsLab
    gpu: str
    need: LabNeed
    nodes: int
    market: Market
    region: str
    ttl_hours: float
    others: tuple[str, ...] = ()
    existing: AwsDeployment | None = None
    former: AwsDeployment | None = None

    @property
    def stack(self) -> str:
        """Return the name of the lab's stack in the workspace."""
        deployment = self.existing or self.former
        return deployment.stack if deployment else deployments.stack_name(self.module.id, "aws", self.gpu)

    @property
    def instance_type(self) -> str:
        """Return the instance type of the lab's GPU nodes."""
        return self.need.machines[-1].instance_type

    @property
    def with_types(self) -> tuple[str, ...]:
        """Return the other instance types that the zone must offer: the type of a head without a GPU."""
        return tuple(machines.instance_type for machines in self.need.machines[:-1])

    @property
    def head(self) -> str:
        """Return the instance type of a head without a GPU; empty if there is no such head."""
        return next(iter(self.with_types), "")

    def resize(self, nodes: int) -> Choice:
        """Return this lab with a different number of nodes."""
        return replace(self, nodes=nodes, need=self.need.with_workers(count=nodes))


def choices(context: Context, request: DeployRequest) -> list[Choice]:
    """Return the requested labs, one per GPU.

    Raises UnknownName or UsageError for an unknown or unsuitable value, MissingError for a stopped lab.
    """
    module = context.catalog.module(request.module)
    lab = _lab_of(module)
    labs = list_labs(context.paths, module.id)
    gpus = list(dict.fromkeys(gpu.lower() for gpu in request.gpu)) or [usual_gpu(context, module)]
    # If several GPUs are compared and one is sold out, its lab must not get another GPU of the comparison.
    used_gpus = {*gpus, *(deployment.cloud.gpu for deployment in labs if _may_exist(context.paths, deployment))}
    result = [_choose(context, request, module, lab, gpu, _find_existing_lab(labs, module, gpu), used_gpus) for gpu in gpus]
    if len({(choice.region, choice.market) for choice in result}) > 1:
        places = ", ".join(f"{choice.stack} ({choice.region}, {choice.market})" for choice in result)
        raise UsageError(
            f"these labs differ in region or market: {places}",
            hint=f"deploy one at a time: gpucourse deploy {module.id} --target aws --gpu {gpus[0]}",
        )
    return result


def list_labs(paths: WorkspacePaths, module: str) -> list[AwsDeployment]:
    """Return the module's recorded labs on AWS. Ready labs come first: a command refers to them rather than to failed
    attempts."""
    labs = [result for result in deployments.list_of_module(paths, module) if isinstance(result, AwsDeployment)]
    return sorted(labs, key=lambda result: result.phase != "ready")


def usual_gpu(context: Context, module: Module) -> str:
    """Return the GPU to use if the user typed none: from the existing lab, otherwise from the settings, otherwise from the
    module."""
    labs = list_labs(context.paths, module.id)
    return labs[0].cloud.gpu if labs else context.settings.gpu or _lab_of(module).gpu


def _find_existing_lab(labs: list[AwsDeployment], module: Module, gpu: str) -> AwsDeployment | None:
    """Return the record of the lab that has this GPU, or else of the lab that was requested with it.

    A stack keeps its name if its GPU was sold out and another was used.
    """
    name = deployments.stack_name(module.id, "aws", gpu)
    return next((deployment for deployment in labs if deployment.cloud.gpu == gpu), None) or next(
        (deployment for deployment in labs if deployment.stack == name), None
    )


def _choose(
    context: Context,
    request: DeployRequest,
    module: Module,
    lab: AwsLab,
    gpu: str,
    record: AwsDeployment | None,
    used_gpus: set[str],
) -> Choice:
    former, existing = (None, record) if record and _may_exist(context.paths, record) else (record, None)
    usual = existing.nodes_wanted if existing else lab.nodes
    nodes = usual if request.nodes is None else validate_node_count(module, request.nodes)
    size = None if request.size is None else validate_size(module, request.size)
    need = need_of(module, gpu=gpu, nodes=nodes, size=size)
    settings = context.settings
    market: Market
    if existing:
        _check_fits(request, module, existing, gpu)
        cloud = existing.cloud
        need = need.with_workers(instance_type=cloud.instance_type)
        size = cloud.instance_type.rpartition(".")[2]
        market, region, hours = cloud.market, cloud.region, cloud.ttl_hours
    else:
        market = "spot" if (settings.spot if request.spot is None else request.spot) else "on-demand"
        region = validate_region(request.region or settings.region)
        hours = _check_hours(module, settings.ttl if request.ttl_s is None else request.ttl_s)
    return Choice(
        module=module,
        lab=lab,
        gpu=gpu,
        need=need,
        nodes=nodes,
        market=market,
        region=region,
        ttl_hours=hours,
        others=_list_others(settings, size or lab.size, used_gpus),
        existing=existing,
        former=former,
    )


def _may_exist(paths: WorkspacePaths, deployment: AwsDeployment) -> bool:
    """Return whether any part of the lab may exist. A failed attempt that left nothing does not restrict the next one."""
    return deployment.phase != "failed" or bool(addresses(paths.stack(deployment.stack).state))


def _check_fits(request: DeployRequest, module: Module, existing: AwsDeployment, gpu: str) -> None:
    """Check that the request fits the existing lab. Raises UsageError or MissingError if it does not."""
    cloud = existing.cloud
    if cloud.gpu != gpu:
        raise UsageError(
            f"{existing.stack} exists already, with {cloud.gpu.upper()}, because {gpu.upper()} was sold out at the time",
            hint=f"continue with it: gpucourse deploy {module.id} --target aws --gpu {cloud.gpu}; or destroy it first: "
            f"gpucourse destroy {module.id} --gpu {cloud.gpu}",
        )
    if cloud.stopped:
        raise MissingError(f"the lab {existing.stack} is stopped", hint=f"gpucourse start {module.id}")
    market = None if request.spot is None else "spot" if request.spot else "on-demand"
    differs = [
        f"{requested} instead of {actual}"
        for requested, actual in (
            (request.region, cloud.region),
            (market, cloud.market),
            (request.size and type_for(gpu, request.size).name, cloud.instance_type),
        )
        if requested is not None and requested != actual
    ]
    if differs:
        raise UsageError(
            f"{existing.stack} exists already; {' and '.join(differs)} would need a new lab",
            hint=f"gpucourse destroy {module.id}, then deploy again",
        )
    if request.ttl_s is not None:
        end = f"{datetime.fromisoformat(cloud.expires):%Y-%m-%d %H:%M} UTC"
        raise UsageError(
            f"{existing.stack} exists already and ends at {end}; --ttl is only for a new lab",
            hint=f"gpucourse extend {module.id} 2h",
        )


def _check_hours(module: Module, seconds: float) -> float:
    hours = float(Decimal(str(seconds)) / 3600)
    if not MIN_LAB_HOURS <= hours <= MAX_LAB_HOURS:
        raise UsageError(
            f"a lab may exist for {MIN_LAB_HOURS * 60:.0f} minutes to {MAX_LAB_HOURS:.0f} hours, not {format_seconds(seconds)}",
            hint=f"gpucourse deploy {module.id} --target aws --ttl 4h; gpucourse extend gives a lab more time",
        )
    return round(hours, 4)


def _list_others(settings: Settings, size: str, used_gpus: set[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(type_for(gpu, size).name for gpu in settings.other_gpus if gpu not in used_gpus))


def need_of(module: Module, *, gpu: str | None = None, nodes: int | None = None, size: str | None = None) -> LabNeed:
    """Return the machines, disks, storage and hours that this module's lab needs. `gpu`, `nodes` and `size` replace values of
    the manifest.

    Raises UsageError for a module without a lab on AWS and for a GPU that AWS has retired, UnknownName for an unknown GPU.
    """
    lab = _lab_of(module)
    kind = type_for(gpu or lab.gpu, size or lab.size)
    smaller = type_for(gpu or lab.gpu, lab.smaller).name if lab.smaller else ""
    workers = Machines(instance_type=kind.name, count=nodes or lab.nodes, disk_gib=lab.disk_gib, disk_mb_s=500)
    return LabNeed(
        module=module.id,
        title=module.title,
        machines=(HEAD, workers) if lab.head else (workers,),
        storage_gib=lab.storage_gib,
        hours=Decimal(str(module.hours)),
        smaller="" if smaller == kind.name else smaller,
    )


def validate_node_count(module: Module, nodes: int) -> int:
    """Return `nodes`. Raises UsageError if the module's lab cannot have that many."""
    max_nodes = _lab_of(module).max_nodes
    if not 1 <= nodes <= max_nodes:
        node_range = f"1 to {max_nodes} nodes" if max_nodes > 1 else "1 node"
        raise UsageError(
            f"--nodes {nodes}: module {module.id} accepts {node_range} on AWS",
            hint=f"gpucourse deploy {module.id} --target aws --nodes {max(1, min(max_nodes, nodes))}",
        )
    return nodes


def validate_size(module: Module, size: str) -> str:
    """Return `size`. Raises UsageError if the module's lab cannot have nodes of that size."""
    lab = _lab_of(module)
    sizes = [option for option in (lab.size, lab.smaller) if option]
    if size not in sizes:
        raise UsageError(
            f"--size {size}: the nodes of module {module.id} are {' or '.join(sizes)}",
            hint=f"gpucourse deploy {module.id} --target aws --size {sizes[-1]}",
        )
    return size


def _lab_of(module: Module) -> AwsLab:
    """Return the module's lab on AWS, from the manifest. Raises UsageError if it has none."""
    if module.lab.aws is None:
        raise UsageError(
            f"module {module.id} needs no cloud: its lab runs on this computer",
            hint=f"gpucourse deploy {module.id} --target local",
        )
    return module.lab.aws


def needs(catalog: Catalog, *, gpu: str | None = None) -> list[LabNeed]:
    """Return the needs of each module that has a lab on AWS, in the order of the course. `gpu` replaces the GPU of every
    module."""
    return [need_of(module, gpu=gpu) for module in catalog.modules if module.lab.aws is not None]
