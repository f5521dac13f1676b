"""What a destroy will take down on AWS, from the records alone: shown before the user confirms."""

from __future__ import annotations

from collections.abc import Sequence

from gpucourse.context import Context
from gpucourse.labs.aws.money import ledger
from gpucourse.labs.results import StackCost
from gpucourse.model.deployment import AwsDeployment, Deployment
from gpucourse.workspace import runs


def preview_destroy(context: Context, stacks: Sequence[Deployment]) -> list[StackCost]:
    """Return the labs among these that cost money."""
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
