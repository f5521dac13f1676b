"""What stands under a module, a target each: the `lab` of a manifest."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticKnownError

from gpucourse.hardware import hardware
from gpucourse.model.fields import Slug, Strict


def _check_offered(word: str) -> str:
    choices = hardware().choices
    if word not in choices:
        *first, last = (f"'{choice}'" for choice in choices)
        raise PydanticKnownError("literal_error", {"expected": f"{', '.join(first)} or {last}"})
    return word


# A GPU that the course offers, as it is typed: l4. Complaints read like those of a Literal; the words come from the table.
GPU = Annotated[
    str, AfterValidator(_check_offered), Field(description="a GPU that exercises/shared/gpus.json offers, in small letters")
]


class Lab(Strict):
    """Simulated nodes: a Terraform stack of `terraform/stacks` and how many nodes."""

    template: Slug
    nodes: int = Field(default=1, ge=1, le=64)
    max_nodes: int = Field(default=64, ge=1, le=64)


class AwsLab(Strict):
    """A stack on AWS: how many machines of which GPU and size, and what else costs money."""

    template: Slug
    gpu: GPU = Field(default_factory=lambda: hardware().choices[0])
    size: str = Field(
        default="xlarge",
        pattern=r"^[0-9]*x?large$",
        description="the size within the GPU's family of instances, such as 2xlarge",
    )
    nodes: int = Field(default=1, ge=1, le=8, description="machines with a GPU")
    max_nodes: int = Field(default=8, ge=1, le=8)
    min_nodes: int | None = Field(
        default=None, ge=1, le=8, description="so few are taken where the quota allows no more; by default as many as `nodes`"
    )
    head: bool = Field(default=False, description="one machine without a GPU stands before them (t3.medium)")
    disk_gib: int = Field(default=120, ge=8, le=1000, description="root disk of each machine with a GPU, as the stack makes it")
    storage_gib: int = Field(default=0, ge=0, le=1000, description="what the module usually keeps on the shared file system")
    placement_group: bool = Field(default=False, description="the nodes close together, where AWS has room")


class Labs(Strict):
    """The lab of a module, a target each. With the scheduler Slurm a head stands before the nodes that are counted."""

    scheduler: Literal["slurm"] | None = None
    local: Lab
    aws: AwsLab | None = None
