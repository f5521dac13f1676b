"""Show a lab that was deployed: its nodes, its cost and deadline, and how to log in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from gpucourse.model.deployment import AwsDeployment, SlurmDeployment
from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.tables import Block, Cell, Content, Table, View, facts, table, text_column, text_of
from gpucourse.ui.text import format_count, hourly
from gpucourse.ui.views.outlook import clock
from gpucourse.ui.views.words import count_nodes
from gpucourse.units import format_seconds, seconds_since

if TYPE_CHECKING:
    from pathlib import Path

    from gpucourse.labs.results import DeployResult
    from gpucourse.model.deployment import Cloud, PlacementAttempt


def deploy_result(result: DeployResult, ssh_config: Path, next_step: str = "", *, whole: bool = False) -> View:
    """Show the deployed lab, how to log in, and what to type next. For a lab on AWS, show the cost and the deadline as well.
    With `whole`, also show the stack, Terraform, the SSH configuration and the zones without capacity.
    """
    deployment = result.deployment
    cloud = deployment.cloud if isinstance(deployment, AwsDeployment) else None
    about = _list_facts(result, ssh_config, whole=whole)
    blocks: list[Block] = [facts(_list_brief(about, cloud) if cloud and not whole else about.items())]
    if isinstance(deployment, SlurmDeployment):
        from gpucourse.ui.views.cluster import describe_cluster

        blocks += describe_cluster(deployment)
    if cloud and whole:
        blocks.append(_attempts(cloud.tried))
    return View(
        headline=Cell(f"{UNICODE.good} lab of module {deployment.module} is ready: {deployment.title}", "good"),
        blocks=blocks,
        footer=[f"When you are done: gpucourse destroy {deployment.module}"],
        mode=deployment.mode,
        next=next_step,
    )


def _list_facts(result: DeployResult, ssh_config: Path, *, whole: bool) -> dict[str, Content]:
    """Return the facts about a deployed lab, and how to log in. Some values may be empty."""
    deployment = result.deployment
    cloud = deployment.cloud if isinstance(deployment, AwsDeployment) else None
    count = len(deployment.inventory.nodes) if deployment.inventory else 0
    changes = format_count(len(result.changes), "change") if result.changes else "nothing to change"
    healed = f", {len(result.healed)} {'rebuilt' if cloud else 'repaired'}" if result.healed else ""
    return {
        "nodes": f"{count_nodes(count, deployment)} ready in {format_seconds(result.seconds)} ({changes}{healed})",
        "stack": deployment.stack if whole else "",
        **(_describe_place(cloud) if cloud and whole else {}),
        "link": deployment.link,
        "terraform": deployment.terraform if whole else "",
        "ssh": f"gpucourse ssh {deployment.module} --node 0",
        "config": f"{ssh_config} (ssh -F, scp -F, rsync, editors)" if whole else "",
        "missing": Cell(deployment.lacks, "warn"),
    }


def _list_brief(about: Mapping[str, Content], cloud: Cloud) -> list[tuple[str, Content]]:
    """Return the nodes, their cost and deadline, and either how to log in or what is wrong with the lab."""
    remaining = format_seconds(max(0.0, -seconds_since(cloud.expires)))
    price = f"{hourly(Decimal(cloud.usd_per_hour))}; " if cloud.usd_per_hour else ""
    problems: dict[str, Content] = {
        "backstop": Cell(cloud.backstop, "warn"),
        "link": about["link"],
        "missing": about["missing"],
    }
    return [
        ("nodes", f"{text_of(about['nodes'])}, {cloud.instance_type} in {cloud.zone}"),
        ("costs", f"{price}ends in {remaining}, at {clock(cloud.expires)}"),
        *problems.items(),
        ("ssh", "" if any(map(text_of, problems.values())) else about["ssh"]),
    ]


def _describe_place(cloud: Cloud) -> dict[str, Content]:
    remaining_s = -seconds_since(cloud.expires)
    guard = "AWS ends the nodes ten minutes later if they have not ended themselves"
    return {
        "where": f"{cloud.zone}: {cloud.instance_type} ({cloud.gpu.upper()}, {cloud.market})",
        "costs": f"{hourly(Decimal(cloud.usd_per_hour))} ({cloud.priced})" if cloud.usd_per_hour else "",
        "ends": f"automatically in {format_seconds(max(0.0, remaining_s))}, at {clock(cloud.expires)}",
        "backstop": Cell(cloud.backstop, "warn") if cloud.backstop else guard,
    }


def _attempts(placements: Sequence[PlacementAttempt]) -> Table:
    """Return a table of the places where a lab could not be built, each with the reason."""
    rows = [(attempt.zone, attempt.instance_type, attempt.code, attempt.why) for attempt in placements]
    return table(["zone", "type", "AWS said", text_column("which means")], rows, title="Tried before")
