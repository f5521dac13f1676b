"""Labs that cost money, on the screen: the quote before the person agrees, what was tried, what exists and until when."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from gpucourse.model.deployment import AwsDeployment
from gpucourse.ui.tables import Block, Cell, Column, Content, Facts, Items, Table, View, facts, table
from gpucourse.ui.views.lab import lab_facts, say_end, say_ready
from gpucourse.units import format_seconds, seconds_since

if TYPE_CHECKING:
    from pathlib import Path

    from gpucourse.labs.aws.budget import Budget
    from gpucourse.labs.aws.plan import LabPlan
    from gpucourse.labs.results import DeployResult, PricedProposal
    from gpucourse.model.cloud import Finding, Sibling
    from gpucourse.model.deployment import Cloud, PlacementAttempt

_NEXT = {"create": "to create", "delete": "to remove", "update": "to change", "replace": "to replace"}


def quote(proposal: PricedProposal, *, command: str = "") -> View:
    """Show what is about to be built and what it costs: by line and hour, to its end, for the module's usual time; and what is
    left of the budget.

    `command`: the command that builds it, if this one only shows the quote.
    """
    plans = proposal.plans
    blocks: list[Block] = []
    for plan in plans:
        blocks += [_what(plan, several=len(plans) > 1), _lines(plan)]
    blocks.append(_sums(plans, proposal.budget))
    remarks = [*(note for plan in plans for note in plan.notes), *proposal.notes, *_warnings(proposal.findings)]
    module = plans[0].choice.module
    if proposal.later:
        later = ", ".join(choice.gpu.upper() for choice in proposal.later)
        gpus = " and ".join(plan.deployment.gpu.upper() for plan in plans)
        remarks.append(
            f"The quota allows only one of these labs at a time: {gpus} now, {later} after it. When you are done with {gpus}: "
            f"gpucourse destroy {module.id} --gpu {plans[0].deployment.gpu}, then this again with --gpu {proposal.later[0].gpu}"
        )
    if remarks:
        blocks.append(Items(tuple(Cell(text, "warn") for text in remarks), title="Good to know"))
    footer = (f"Nothing was built. Build it: {command}",) if command else ()
    return View(title=f"Module {module.id} on AWS: {module.title}", blocks=tuple(blocks), footer=footer)


def cloud_deploy_result(result: DeployResult, ssh_config: Path, next_step: str = "", *, whole: bool = False) -> View:
    """Show what is deployed now and until when, what it costs, what was tried before, how to get in, what to type next.
    `whole`: Terraform and the SSH configuration as well."""
    deployment = result.deployment
    cloud = deployment.cloud if isinstance(deployment, AwsDeployment) else None
    if cloud and not whole:
        blocks: list[Block] = [_brief_facts(result, ssh_config, cloud)]
    else:
        blocks = [lab_facts(result, ssh_config, healed="rebuilt", location=_place(cloud) if cloud else ())]
        blocks += [attempts(cloud.tried)] if cloud and cloud.tried else []
    return View(
        headline=say_ready(deployment),
        blocks=tuple(blocks),
        footer=(say_end(deployment),),
        mode=deployment.target,
        next=next_step,
    )


def attempts(placements: Sequence[PlacementAttempt]) -> Table:
    """Return a table of the places where a lab could not be built, one row each, with the reason."""
    rows = [(attempt.zone, attempt.instance_type, attempt.code, attempt.why) for attempt in placements]
    return table(["zone", "type", "AWS said", Column("which means", wrap=True)], rows, title="Tried before")


def money(amount: Decimal) -> str:
    """Format an amount in dollars and cents."""
    return f"${amount:,.2f}"


def _what(plan: LabPlan, *, several: bool) -> Block:
    actions = [action for action, _address in plan.changes]
    changes = ", ".join(f"{actions.count(action)} {_NEXT.get(action, action)}" for action in dict.fromkeys(actions))
    deployment, cloud, head = plan.deployment, plan.deployment.cloud, plan.choice.head
    return facts(
        [
            ("stack", f"{deployment.stack} in {cloud.zone}"),
            ("nodes", f"{deployment.nodes_wanted} x {cloud.instance_type} ({cloud.gpu.upper()}, {cloud.market})"),
            *((("head", f"1 x {head}, which takes the jobs"),) if head else ()),
            ("plan", f"{changes} (resources)" if changes else "everything exists already: nothing to do"),
            ("ends", f"automatically at {_clock(cloud.expires)}, in {_hours(plan.hours)}"),
            *((("if sold out", _others(plan.siblings)),) if plan.siblings else ()),
        ],
        title=cloud.gpu.upper() if several else "",
    )


def _lines(plan: LabPlan) -> Table:
    rows = [(line.what, f"{line.per_hour:.4f}", line.rate.origin) for line in plan.charges]
    rows.append(("together", f"{plan.per_hour:.4f}", ""))
    notes = tuple(dict.fromkeys(line.rate.note for line in plan.charges if line.rate.note))
    if notes:
        rows.append(("", "", "; ".join(notes)))
    return table([Column("what costs", wrap=True), Column("$/h", align="right"), Column("price from", wrap=True)], rows)


def _sums(plans: Sequence[LabPlan], budget: Budget) -> Block:
    to_the_end = sum((plan.to_the_end for plan in plans), Decimal(0))
    usually = sum((plan.usually for plan in plans), Decimal(0))
    hours = {_hours(plan.hours) for plan in plans}
    usual = {_hours(plan.choice.need.hours) for plan in plans}
    remaining = "no budget is set (budget_usd in gpucourse.yaml)"
    if budget.remaining is not None and budget.budget is not None:
        remaining = (
            f"{money(max(budget.remaining, Decimal(0)))} of {money(budget.budget)} is left, {money(budget.spent)} is spent"
        )
        remaining += f", {money(budget.reserved)} set aside for other labs until their deadlines" if budget.reserved else ""
    return facts(
        [
            ("to its end" if len(plans) == 1 else "all to their end", f"{money(to_the_end)} ({' and '.join(sorted(hours))})"),
            ("as usual", f"{money(usually)} for the {' and '.join(sorted(usual))} that the module usually takes"),
            ("budget", Cell(remaining, "bad") if budget.remaining is not None and to_the_end > budget.remaining else remaining),
        ]
    )


def _brief_facts(result: DeployResult, ssh_config: Path, cloud: Cloud) -> Facts:
    """Return the nodes, what they cost and until when, and how to get in or, instead of that, what is wrong with the lab."""
    about = dict(lab_facts(result, ssh_config, healed="rebuilt", whole=False).pairs)
    remaining = format_seconds(max(0.0, -seconds_since(cloud.expires)))
    price = f"${Decimal(cloud.usd_per_hour):.2f} an hour; " if cloud.usd_per_hour else ""
    wrong: list[tuple[str, Content]] = [("backstop", Cell(cloud.backstop, "warn"))] if cloud.backstop else []
    wrong += [(name, content) for name, content in about.items() if name not in {"nodes", "ssh"}]
    return facts(
        [
            ("nodes", f"{about['nodes']}, {cloud.instance_type} in {cloud.zone}"),
            ("costs", f"{price}ends in {remaining}, at {_clock(cloud.expires)}"),
            *(wrong or [("ssh", about["ssh"])]),
        ]
    )


def _place(cloud: Cloud) -> list[tuple[str, str | Cell]]:
    remaining_s = -seconds_since(cloud.expires)
    guard = "AWS ends the nodes ten minutes later if they have not ended themselves"
    return [
        ("where", f"{cloud.zone}: {cloud.instance_type} ({cloud.gpu.upper()}, {cloud.market})"),
        ("costs", f"${Decimal(cloud.usd_per_hour):.2f} an hour ({cloud.priced})" if cloud.usd_per_hour else ""),
        ("ends", f"automatically in {format_seconds(max(0.0, remaining_s))}, at {_clock(cloud.expires)}"),
        ("backstop", Cell(cloud.backstop, "warn") if cloud.backstop else guard),
    ]


def _others(siblings: Sequence[Sibling]) -> str:
    return ", then ".join(f"{sibling.instance_type} at {money(sibling.usd_per_hour)} an hour" for sibling in siblings)


def _warnings(findings: Sequence[Finding]) -> list[str]:
    """Return what the preflight found that does not stop the lab. The price is shown above; whether the backstop works is
    reported once it has been tried."""
    texts = [
        f"{finding.what}: {finding.detail}"
        for finding in findings
        if finding.state in {"warning", "unknown"} and finding.kind not in {"price", "backstop"}
    ]
    return [*texts, "how to fix these: gpucourse doctor --target aws"] if texts else []


def _clock(moment: str) -> str:
    """Format a time: `2026-11-21 09:15 UTC`."""
    return f"{moment[:10]} {moment[11:16]} UTC"


def _hours(hours: Decimal) -> str:
    return format_seconds(float(hours * 3600)) if hours != int(hours) else f"{int(hours)} h"
