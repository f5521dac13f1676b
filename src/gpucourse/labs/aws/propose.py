"""Proposing a lab on AWS: examines, plans and prices everything, and builds nothing.

with propose(context, request) as proposal:   what would be built, and for how much
    ...                                       show it, ask
    build(context, proposal)                  exactly that (labs.aws.build)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from gpucourse.aws.money import usd_over
from gpucourse.context import Context
from gpucourse.labs.aws.budget import read_budget
from gpucourse.labs.aws.cheapest import replace_any_gpu
from gpucourse.labs.aws.choice import Choice, choices
from gpucourse.labs.aws.plan import LabPlan, make_plan, survey
from gpucourse.labs.aws.take_down import find_unmanaged
from gpucourse.labs.request import DeployRequest
from gpucourse.labs.results import PricedProposal
from gpucourse.model.event import stage


@dataclass(kw_only=True)
class AwsProposal(PricedProposal):
    """What `deploy` is about to do. `over_budget`: allow more than is left. `command`: what was typed."""

    over_budget: bool
    command: str

    @property
    def fresh(self) -> bool:
        """Return whether nothing of these labs exists yet."""
        return all(plan.fresh for plan in self.plans)


@contextmanager
def propose(context: Context, request: DeployRequest) -> Iterator[AwsProposal]:
    """Check, plan and price the labs, with the locks of their stacks held for the block. A lab that is not built by its end
    leaves nothing.

    Raises UsageError and UnknownName for unknown names and values, MissingError with everything that blocks it, CloudError,
    TerraformFailed.
    """
    request, notes = replace_any_gpu(context, request)
    plans: list[LabPlan] = []
    with ExitStack() as held:
        for stack in sorted(choice.stack for choice in choices(context, request)):
            held.enter_context(context.lock(stack, f"deploy {request.module}"))
        try:
            proposal = _make_proposal(context, request, choices(context, request), plans)
            proposal.notes[:0] = notes
            yield proposal
        finally:
            for plan in plans:
                if plan.fresh:
                    plan.lab.terraform.discard_if_empty()


def _make_proposal(context: Context, request: DeployRequest, wanted: list[Choice], plans: list[LabPlan]) -> AwsProposal:
    """Return the proposal; `plans` gets each plan before Terraform writes anything for it."""
    facts = survey(context, request, wanted)
    now, notes = facts.fit.now, list(facts.fit.notes)
    notes += [f"prices could not be refreshed: {reason}; those of an earlier day are used" for reason in facts.book.complaints]
    budget = read_budget(context, {choice.stack for choice in now})
    for choice in now:
        plan = make_plan(context, choice, facts)
        plans.append(plan)
        _plan_with_terraform(context, plan)
        plan.allowed += tuple(
            sibling.instance_type
            for sibling in plan.siblings
            if request.over_budget or budget.allows(usd_over(sibling.usd_per_hour, plan.hours))
        )
        if plan.forgotten:
            lost = "does not know all of it" if plan.lab.terraform.addresses() else "is lost"
            text = f"Terraform's state {lost}, so what exists of it is removed and rebuilt; outputs are collected first"
            notes.append(f"{choice.stack}: {text}")
    return AwsProposal(
        plans=plans,
        later=facts.fit.later,
        findings=facts.findings,
        budget=budget,
        notes=notes,
        over_budget=request.over_budget,
        command=request.command,
    )


def _plan_with_terraform(context: Context, plan: LabPlan) -> None:
    plan.lab.terraform.prepare(context.watch)
    stack = plan.deployment.stack
    with stage(context.watch, f"plan {stack}", f"planning {stack}"):
        plan.changes = plan.lab.terraform.plan(context.watch)
    plan.forgotten = not plan.fresh and plan.deployment.inventory is not None and _is_forgotten(plan)


def _is_forgotten(plan: LabPlan) -> bool:
    """Return whether Terraform would create something that exists. The account is queried only if it would create a node."""
    if not plan.lab.terraform.addresses():
        return True
    makes_nodes = any(action in {"create", "replace"} and "aws_instance" in address for action, address in plan.changes)
    return makes_nodes and bool(find_unmanaged(plan.lab))
