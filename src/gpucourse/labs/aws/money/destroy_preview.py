"""What a destroy will take down in the cloud, from the records alone: shown before the person is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from gpucourse.context import Context
from gpucourse.labs.aws.money import ledger
from gpucourse.model.deployment import AwsDeployment, Deployment
from gpucourse.workspace import runs


@dataclass(frozen=True, kw_only=True)
class StackCost:
    """One lab that will go: what it costs an hour (None: not known), what it has cost, the runs that end with it."""

    deployment: AwsDeployment
    per_hour: Decimal | None
    spent: Decimal
    runs: tuple[str, ...] = ()


def preview_destroy(context: Context, stacks: Sequence[Deployment]) -> list[StackCost]:
    """The labs among these that cost money."""
    paid = [deployment for deployment in stacks if isinstance(deployment, AwsDeployment)]
    if not paid:
        return []
    active = runs.under_way(context.paths)
    return [
        StackCost(
            deployment=deployment,
            per_hour=ledger.per_hour(context, deployment),
            spent=ledger.sum_costs(context, deployment.uid),
            runs=tuple(record.id for record in active if record.stack == deployment.stack),
        )
        for deployment in paid
    ]
