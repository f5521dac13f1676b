"""What a module's lab needs of an AWS account: converts the manifest to machines, disks, storage and hours."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from gpucourse.aws.offerings import type_for
from gpucourse.errors import UsageError
from gpucourse.model.cloud import LabNeed, Machines

if TYPE_CHECKING:
    from gpucourse.course.catalog import Catalog
    from gpucourse.model.labs import AwsLab
    from gpucourse.model.manifest import Module

HEAD = Machines(instance_type="t3.medium", disk_gib=30, spot=False)  # as in terraform/stacks/slurm-cluster


def need_of(module: Module, *, gpu: str | None = None, nodes: int | None = None, size: str | None = None) -> LabNeed:
    """Return what this module's lab needs, with another GPU, number of nodes or size of nodes if given.

    Raises UsageError for a module without a lab on AWS and for a GPU that AWS has retired, UnknownName for an unknown GPU.
    """
    lab = lab_of(module)
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
    """Return `nodes` if the module's lab may have so many. Raises UsageError."""
    most = lab_of(module).max_nodes
    if not 1 <= nodes <= most:
        takes = f"1 to {most} nodes" if most > 1 else "1 node"
        raise UsageError(
            f"--nodes {nodes}: module {module.id} takes {takes} on AWS",
            hint=f"gpucourse deploy {module.id} --target aws --nodes {max(1, min(most, nodes))}",
        )
    return nodes


def validate_size(module: Module, size: str) -> str:
    """Return `size` if the module's lab may have nodes of that size. Raises UsageError."""
    lab = lab_of(module)
    sizes = [known for known in (lab.size, lab.smaller) if known]
    if size not in sizes:
        raise UsageError(
            f"--size {size}: the nodes of module {module.id} are {' or '.join(sizes)}",
            hint=f"gpucourse deploy {module.id} --target aws --size {sizes[-1]}",
        )
    return size


def lab_of(module: Module) -> AwsLab:
    """Return the module's lab on AWS, from the manifest. Raises UsageError if it has none."""
    if module.lab.aws is None:
        raise UsageError(
            f"module {module.id} needs no cloud: its lab runs on this computer",
            hint=f"gpucourse deploy {module.id} --target local",
        )
    return module.lab.aws


def needs(catalog: Catalog, *, gpu: str | None = None) -> list[LabNeed]:
    """Return what each module with a lab on AWS needs, in the order of the course; all with one GPU if it is given."""
    return [need_of(module, gpu=gpu) for module in catalog.modules if module.lab.aws is not None]
