"""What a command changed about a lab that stands, in the one shape that all of them give back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal

from gpucourse.context import Context
from gpucourse.errors import MissingError
from gpucourse.labs.aws.account import on_aws
from gpucourse.model.deployment import AwsDeployment
from gpucourse.workspace import deployments


@dataclass(frozen=True, kw_only=True)
class Changed:
    """Sentences about what is different now, and what did not go well; the lab's end (ISO 8601, UTC) and cost (USD) now."""

    stack: str
    module: str
    title: str
    changed: list[str]
    warnings: list[str] = field(default_factory=list)
    expires: str = ""
    usd_per_hour: Decimal | None = None
    next: str = ""


@contextmanager
def held(context: Context, module: str, *, gpu: str | None, verb: str) -> Iterator[AwsDeployment]:
    """The lab on AWS that is meant, with its lock held for the block. Raises as `on_aws`; StackBusy."""

    stack = on_aws(context, module, gpu=gpu, verb=verb).stack
    with context.lock(stack, f"{verb} {module}"):
        deployment = deployments.load_as(context.paths, stack, AwsDeployment)
        if deployment is None:  # another command was faster
            raise MissingError(f"{stack} was destroyed just now", hint=f"gpucourse deploy {module} --target aws")
        yield deployment
