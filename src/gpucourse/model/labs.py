"""The labs of a module, one for each target: the key `lab` of a manifest."""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, Field, model_validator

from gpucourse.hardware import hardware
from gpucourse.limits import MAX_NODES
from gpucourse.model.fields import Slug, Strict, check_choice

# A GPU that the course offers, as typed: l4. Errors read like those of a Literal, but the values come from the hardware table.
GPU = Annotated[
    str,
    AfterValidator(lambda word: check_choice(word, hardware().choices)),
    Field(description="a GPU that exercises/shared/gpus.json offers, in lower case"),
]


AnyLab = TypeVar("AnyLab", "Lab", "AwsLab")


class Lab(Strict):
    """Simulated nodes: a folder of `terraform/stacks` and the number of nodes."""

    template: Slug = Field(description="the folder in terraform/stacks; `simulated` is built in, for simulated nodes")
    nodes: int = Field(default=1, ge=1, le=MAX_NODES, description="how many nodes there are unless the learner says otherwise")
    max_nodes: int = Field(
        default=MAX_NODES, ge=1, le=MAX_NODES, description="the maximum number of nodes that a learner may request"
    )

    @model_validator(mode="after")
    def _check_order(self) -> Lab:
        return _check_most(self)


class AwsLab(Strict):
    """A stack on AWS: the number of machines, their GPU and size, and other things that cost money."""

    template: Slug = Field(description="the folder in terraform/stacks")
    gpu: GPU = Field(default_factory=lambda: hardware().choices[0])
    size: str = Field(
        default="xlarge",
        pattern=r"^[0-9]*x?large$",
        description="the size within the GPU's family of instances, such as 2xlarge",
    )
    smaller: str | None = Field(
        default=None,
        pattern=r"^[0-9]*x?large$",
        description="a size with fewer vCPUs that is enough, offered if the quota allows no more (`deploy --size`)",
    )
    nodes: int = Field(default=1, ge=1, le=8, description="machines with a GPU")
    max_nodes: int = Field(default=8, ge=1, le=8, description="the maximum number of nodes that a learner may request")
    min_nodes: int | None = Field(
        default=None,
        ge=1,
        le=8,
        description="the minimum number of nodes, used if the quota allows no more; by default, the same as `nodes`",
    )
    head: bool = Field(default=False, description="add one machine without a GPU as the head (t3.medium)")
    disk_gib: int = Field(default=120, ge=8, le=1000, description="root disk of each machine with a GPU, as in the stack")
    storage_gib: int = Field(default=0, ge=0, le=1000, description="what the module usually keeps on the shared file system")
    placement_group: bool = Field(default=False, description="the nodes are close together, if AWS has the capacity")

    @model_validator(mode="after")
    def _check_order(self) -> AwsLab:
        if self.min_nodes is not None and self.min_nodes > self.nodes:
            raise ValueError(f"min_nodes ({self.min_nodes}) is above nodes ({self.nodes})")
        return _check_most(self)


def _check_most(lab: AnyLab) -> AnyLab:
    if lab.nodes > lab.max_nodes:
        raise ValueError(f"nodes ({lab.nodes}) is above max_nodes ({lab.max_nodes})")
    return lab


class Labs(Strict):
    """The labs of a module, one for each target. With Slurm as the scheduler, a lab also has a head, which `nodes` does not
    count.
    """

    scheduler: Literal["slurm"] | None = Field(
        default=None, description="slurm: the nodes are a Slurm cluster, with a head in front of them"
    )
    local: Lab = Field(description="simulated nodes on the learner's computer")
    aws: AwsLab | None = Field(default=None, description="machines on AWS; without it the module has no lab there")
