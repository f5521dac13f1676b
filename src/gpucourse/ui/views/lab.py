"""Labs on the screen: what a deploy would do, what it did, what a destroy left."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from gpucourse.model.deployment import Deployment, Receipt
from gpucourse.model.node import SIMULATED
from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.tables import Block, Cell, Code, Column, Content, Facts, Items, Lines, Paragraph, Style, View, facts, table
from gpucourse.ui.text import format_count, shorten_path
from gpucourse.units import format_seconds

if TYPE_CHECKING:
    from pathlib import Path

    from gpucourse.labs.results import DeployResult

_SIGNS = {"create": "+", "delete": "-", "update": "~", "replace": "-/+"}


def deploy_plan(result: DeployResult) -> View:
    """Show what a deploy would do (`--dry-run`): every resource, and the count of each action."""
    deployment = result.deployment
    rows = [(Cell(_SIGNS.get(action, action), _action_style(action)), action, address) for action, address in result.changes]
    blocks: list[Block] = [
        facts(
            [
                ("stack", deployment.stack),
                ("template", deployment.template),
                ("nodes", str(deployment.nodes_wanted)),
                _say_missing(deployment),
            ]
        )
    ]
    if rows:
        blocks.append(table(["", "action", Column("resource", wrap=True)], rows))
    if result.healed:
        blocks.append(Items(tuple(result.healed), title="Replaced because the node does not answer"))
    blocks.append(Paragraph(_count_actions([action for action, _ in result.changes])))
    command = f"gpucourse deploy {deployment.module} --nodes {deployment.nodes_wanted}"
    command += f" --link {deployment.link}" if deployment.link else ""
    command = "the same without --dry-run" if deployment.uses_existing_machines else command
    footer = (f"Nothing was changed. Do it: {command}",)
    return View(title=f"Plan for module {deployment.module}", blocks=tuple(blocks), footer=footer, mode=deployment.mode)


def deploy_result(result: DeployResult, ssh_config: Path, next_step: str = "", *, whole: bool = False) -> View:
    """Show what is deployed now, how to get in, what to type next. `whole`: Terraform and the SSH configuration as well."""
    deployment = result.deployment
    return View(
        headline=say_ready(deployment),
        blocks=(lab_facts(result, ssh_config, healed="repaired", whole=whole),),
        footer=(say_end(deployment),),
        mode=deployment.mode,
        next=next_step,
    )


def say_ready(deployment: Deployment) -> Cell:
    """Return `✓ lab of module 3 is ready: Parallel computing`."""
    return Cell(f"{UNICODE.good} lab of module {deployment.module} is ready: {deployment.title}", "good")


def say_end(deployment: Deployment) -> str:
    """Return a sentence with the command that ends the lab."""
    return f"When you are done: gpucourse destroy {deployment.module}"


def lab_facts(
    result: DeployResult, ssh_config: Path, *, healed: str, location: Sequence[tuple[str, Content]] = (), whole: bool = True
) -> Facts:
    """Return what a deploy made and how to get in. `healed` says what was done to nodes that were unhealthy; `location` comes
    after the stack's name. `whole`: the stack, Terraform and the SSH configuration as well."""
    deployment = result.deployment
    count = len(deployment.inventory.nodes) if deployment.inventory else 0
    did = [format_count(len(result.changes), "change")] if result.changes else ["nothing to change"]
    if result.healed:
        did.append(f"{len(result.healed)} {healed}")
    return facts(
        [
            ("nodes", f"{count} ready in {format_seconds(result.seconds)} ({', '.join(did)})"),
            ("stack", deployment.stack if whole else ""),
            *location,
            ("link", deployment.link),
            ("terraform", deployment.terraform if whole else ""),
            ("ssh", f"gpucourse ssh {deployment.module} --node 0"),
            ("config", f"{ssh_config} (ssh -F, scp -F, rsync, editors)" if whole else ""),
            _say_missing(deployment),
        ]
    )


def destroy_result(
    receipts: Sequence[Receipt],
    folder: Path | None = None,
    *,
    not_deployed: str = "",
    deployed_labs: Sequence[Deployment] = (),
    whole: bool = False,
) -> View:
    """Show what each destroy removed, and the proof that nothing is left, or what is left. A lab of which nothing is left is
    one line; with `whole`, everything is shown.

    Without a receipt: `not_deployed`, which says what is not deployed, and the `deployed_labs` that are.
    """
    if not receipts and deployed_labs:
        names = ", ".join(f"{lab.module} ({lab.target}{f', {lab.gpu}' if lab.gpu else ''})" for lab in deployed_labs)
        return View(blocks=(Paragraph(f"{not_deployed}; deployed: {names}."),), footer=("More about them: gpucourse status",))
    if not receipts:
        nothing = Paragraph("Nothing is deployed from this workspace, so there was nothing to destroy.")
        return View(blocks=(nothing,), footer=("What a lost workspace may have left on AWS: gpucourse leaks",))
    clean = [] if whole else [receipt for receipt in receipts if not receipt.leftovers and not receipt.forgotten]
    blocks: list[Block] = [Lines(tuple(map(_say_removed, clean)))] if clean else []
    blocks += [part for receipt in receipts if receipt not in clean for part in _receipt(receipt)]
    footer = (f"Receipts: {shorten_path(folder)}",) if folder is not None else ()
    modes = {receipt.mode for receipt in receipts}
    return View(blocks=tuple(blocks), footer=footer, mode=SIMULATED if SIMULATED in modes else "")


def _say_missing(deployment: Deployment) -> tuple[str, Content]:
    return "missing", Cell(deployment.lacks, "warn") if deployment.lacks else ""


def _say_removed(receipt: Receipt) -> Cell:
    """Return one line about a lab of which nothing is left."""
    texts = [f"{len(receipt.removed)} of {len(receipt.existed)} resources removed"]
    texts += [outputs] if (outputs := _outputs(receipt)) else []
    texts += [f"{format_count(len(receipt.ended), 'node')} had ended before"] if receipt.ended else []
    texts += [_cost(receipt)] if receipt.cost_usd else []
    return Cell(f"{UNICODE.good} {receipt.stack}: {', '.join(texts)}; nothing is left", "good")


def _cost(receipt: Receipt) -> str:
    return f"about ${Decimal(receipt.cost_usd):.2f} in all (gpucourse cost)" if receipt.cost_usd else ""


def _receipt(receipt: Receipt) -> list[Block]:
    leftovers, forgotten = receipt.leftovers, receipt.forgotten
    scan_result = Cell(f"{UNICODE.good} nothing is left", "good")
    if leftovers:
        scan_result = Cell(f"{UNICODE.bad} {format_count(len(leftovers), 'thing')} left", "bad")
    elif forgotten:
        scan_result = Cell(f"{UNICODE.bad} {format_count(len(forgotten), 'machine')} could not be checked", "bad")
    blocks: list[Block] = [
        facts(
            [
                ("stack", f"{receipt.stack} (module {receipt.module})"),
                ("deployed", f"{receipt.created} to {receipt.destroyed}" if receipt.created else "start time not recorded"),
                ("removed", f"{len(receipt.removed)} of {len(receipt.existed)} resources"),
                ("outputs", _outputs(receipt)),
                ("ended before", "\n".join(receipt.ended)),
                ("by scan", "\n".join(receipt.swept)),
                ("looked in", ", ".join(receipt.regions)),
                ("cost", _cost(receipt)),
                ("leak scan", scan_result),
            ]
        )
    ]
    for title, items in (("Still there", leftovers), ("Forgotten, and may still be there", forgotten)):
        if items:
            rows = [(item.kind, item.id) for item in items]
            blocks.append(table(["kind", Column("id", wrap=True)], rows, title=title))
            blocks.append(Code("\n".join(item.remove for item in items), title="Remove it by hand"))
    return blocks


def _outputs(receipt: Receipt) -> str:
    texts = []
    if receipt.outputs_home:
        texts.append(f"outputs collected from {format_count(len(receipt.outputs_home), 'run')}")
    if receipt.outputs_discarded:
        texts.append(f"outputs discarded: {', '.join(receipt.outputs_discarded)}")
    return "; ".join(texts)


def _count_actions(actions: Sequence[str]) -> str:
    if not actions:
        return "Everything exists already: nothing to do."
    words = {"create": "to create", "delete": "to remove", "update": "to change", "replace": "to replace"}
    counts = [f"{actions.count(action)} {words.get(action, action)}" for action in dict.fromkeys(actions)]
    return f"{', '.join(counts)}."


def _action_style(action: str) -> Style:
    styles: dict[str, Style] = {"create": "good", "delete": "bad"}
    return styles.get(action, "warn")
