"""What stands under a module, a target each: the `lab` of a manifest."""

from __future__ import annotations

from pydantic import Field

from gpucourse.model.fields import Slug
from gpucourse.model.strict import Strict


class Lab(Strict):
    """What stands under a module on one target: a Terraform stack of `terraform/stacks` and how many nodes."""

    template: Slug
    nodes: int = Field(default=1, ge=1, le=64)
    max_nodes: int = Field(default=64, ge=1, le=64)


class Labs(Strict):
    """The lab of a module, a target each."""

    local: Lab
