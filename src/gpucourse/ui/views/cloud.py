"""Show the quote of labs that cost money, before the person agrees."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from gpucourse.ui.tables import Block, Cell, Items, Table, View, facts, number_column, table, text_column
from gpucourse.ui.text import hourly, usd
from gpucourse.ui.views.outlook import clock
from gpucourse.ui.views.words import count_actions
from gpucourse.units import format_seconds

if TYPE_CHECKING:
    from gpucourse.labs.aws.budget import Budget
    from gpucourse.labs.aws.plan import LabPlan
    from gpucourse.labs.results import PricedProposal
    from gpucourse.model.cloud import Finding, Sibling


def quote(proposal: PricedProposal, *, command: str = "") -> View:
    """Show what would be built, what it costs, and what is left of the budget. Costs are shown for each item per hour, until
    the deadline, and for the module's usual time.

    `command` is the command that builds the lab, if the quote is only a preview.
    """
    plans = proposal.plans
    blocks: list[Block] = []
    for plan in plans:
        blocks += [_show_plan(plan, several=len(plans) > 1), _lines(plan)]
    blocks.append(_sums(plans, proposal.budget))
    remarks = [*(note for plan in plans for note in plan.notes), *proposal.notes, *_warnings(proposal.findings)]
    module = plans[0].choice.module
    if proposal.later:
        later_gpus = ", ".join(choice.gpu.upper() for choice in proposal.later)
        gpus = " and ".join(plan.deployment.gpu.upper() for plan in plans)
        remarks.append(
            f"The quota allows only one of these labs at a time: {gpus} now, {later_gpus} after it. "
            f"When you are done with {gpus}: gpucourse destroy {module.id} --gpu {plans[0].deployment.gpu}, "
            f"then this command again with "
            f"--gpu {proposal.later[0].gpu}"
        )
    blocks.append(Items(remarks, title="Good to know", style="warn"))
    footer = [f"Nothing was built. Build it: {command}"] if command else []
    return View(title=f"Module {module.id} on AWS: {module.title}", blocks=blocks, footer=footer)


def _show_plan(plan: LabPlan, *, several: bool) -> Block:
    changes = count_actions([action for action, _address in plan.changes])
    deployment, cloud, head = plan.deployment, plan.deployment.cloud, plan.choice.head
    return facts(
        [
            ("stack", f"{deployment.stack} in {cloud.zone}"),
            ("nodes", f"{deployment.nodes_wanted} x {cloud.instance_type} ({cloud.gpu.upper()}, {cloud.market})"),
            ("head", f"1 x {head}, which accepts the jobs" if head else ""),
            ("plan", f"{changes} (resources)" if changes else "everything already exists: nothing to do"),
            ("ends", f"automatically at {clock(cloud.expires)}, in {_hours(plan.hours)}"),
            ("if sold out", _list_siblings(plan.siblings)),
        ],
        title=cloud.gpu.upper() if several else "",
    )


def _lines(plan: LabPlan) -> Table:
    rows = [(line.what, f"{line.per_hour:.4f}", line.rate.origin) for line in plan.charges]
    rows.append(("total", f"{plan.per_hour:.4f}", ""))
    notes = tuple(dict.fromkeys(line.rate.note for line in plan.charges if line.rate.note))
    if notes:
        rows.append(("", "", "; ".join(notes)))
    return table([text_column("what costs"), number_column("$/h"), text_column("price from")], rows)


def _sums(plans: Sequence[LabPlan], budget: Budget) -> Block:
    usd_until_end = sum((plan.usd_until_end for plan in plans), Decimal(0))
    usually = sum((plan.usd_usually for plan in plans), Decimal(0))
    hours = {_hours(plan.hours) for plan in plans}
    usual = {_hours(plan.choice.need.hours) for plan in plans}
    remaining = "no budget is set (budget_usd in gpucourse.yaml)"
    if budget.remaining is not None and budget.budget is not None:
        remaining = f"{usd(max(budget.remaining, Decimal(0)))} of {usd(budget.budget)} is left; {usd(budget.spent)} is spent"
        remaining += f", {usd(budget.reserved)} set aside for other labs until their deadlines" if budget.reserved else ""
    return facts(
        [
            ("until it ends" if len(plans) == 1 else "until all end", f"{usd(usd_until_end)} ({' and '.join(sorted(hours))})"),
            ("usually", f"{usd(usually)} for the {' and '.join(sorted(usual))} that the module usually takes"),
            (
                "budget",
                Cell(remaining, "bad") if budget.remaining is not None and usd_until_end > budget.remaining else remaining,
            ),
        ]
    )


def _list_siblings(siblings: Sequence[Sibling]) -> str:
    return ", then ".join(f"{sibling.instance_type} at {hourly(sibling.usd_per_hour)}" for sibling in siblings)


def _warnings(findings: Sequence[Finding]) -> list[str]:
    """Return the findings of the preflight that do not stop the lab. Findings about prices are left out, because the prices
    are shown above. Findings about the backstop (the scheduled termination) are left out, because the deploy itself tries to
    arm it and reports the result."""
    texts = [
        f"{finding.what}: {finding.detail}"
        for finding in findings
        if finding.state in {"warning", "unknown"} and finding.kind not in {"price", "backstop"}
    ]
    return [*texts, "how to fix these: gpucourse doctor --target aws"] if texts else []


def _hours(hours: Decimal) -> str:
    return format_seconds(float(hours * 3600)) if hours != int(hours) else f"{int(hours)} h"
