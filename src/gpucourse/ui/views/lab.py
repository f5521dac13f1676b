"""Labs on the screen: what a deploy would do, and what a destroy removed and left."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from gpucourse.model.deployment import Deployment, Receipt
from gpucourse.model.node import SIMULATED
from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.tables import Block, Cell, Code, Items, Lines, Paragraph, Style, View, facts, table, text_column
from gpucourse.ui.text import format_count, shorten_path
from gpucourse.ui.views.words import count_actions

if TYPE_CHECKING:
    from pathlib import Path

    from gpucourse.labs.results import DeployResult

_SIGNS = {"create": "+", "delete": "-", "update": "~", "replace": "-/+"}
_ACTION_STYLES: dict[str, Style] = {"create": "good", "delete": "bad"}


def deploy_plan(result: DeployResult, next_step: str = "") -> View:
    """Show what a deploy would do (`--dry-run`): every resource, and the count of each action. `next_step` is the command that
    `gpucourse next` suggests; it is shown if there is nothing to deploy."""
    deployment = result.deployment
    rows = [
        (Cell(_SIGNS.get(action, action), _ACTION_STYLES.get(action, "warn")), action, address)
        for action, address in result.changes
    ]
    actions = count_actions([action for action, _ in result.changes])
    command = f"gpucourse deploy {deployment.module} --nodes {deployment.nodes_wanted}"
    command += f" --link {deployment.link}" if deployment.link else ""
    command = "the same command without --dry-run" if deployment.uses_existing_machines else command
    return View(
        title=f"Plan for module {deployment.module}",
        blocks=[
            facts(
                [
                    ("stack", deployment.stack),
                    ("template", deployment.template),
                    ("nodes", str(deployment.nodes_wanted)),
                    ("missing", Cell(deployment.lacks, "warn")),
                ]
            ),
            table(["", "action", text_column("resource")], rows),
            Items(result.healed, title="Replaced because the node does not answer"),
            Paragraph(f"{actions}." if actions else "Everything already exists: nothing to do."),
        ],
        footer=[f"No lab was changed. To do it: {command}" if actions or result.healed else "No lab was changed."],
        mode=deployment.mode,
        next="" if actions or result.healed else next_step,
    )


def destroy_result(
    receipts: Sequence[Receipt],
    folder: Path | None = None,
    *,
    not_deployed: str = "",
    deployed_labs: Sequence[Deployment] = (),
    whole: bool = False,
) -> View:
    """Show what each destroy removed, and what is left, if anything. A lab that left nothing is one line, unless `whole` is
    set.

    Without receipts, show the sentence `not_deployed`, and list the labs that are deployed.
    """
    if not receipts and deployed_labs:
        names = ", ".join(f"{lab.module} ({lab.target}{f', {lab.gpu}' if lab.gpu else ''})" for lab in deployed_labs)
        return View(blocks=[Paragraph(f"{not_deployed}; deployed: {names}.")], footer=["More about them: gpucourse status"])
    if not receipts:
        nothing = Paragraph("Nothing is deployed from this workspace, so there was nothing to destroy.")
        return View(blocks=[nothing], footer=["What a lost workspace may have left on AWS: gpucourse leaks"])
    clean = [] if whole else [receipt for receipt in receipts if not receipt.leftovers and not receipt.forgotten]
    other_parts = [part for receipt in receipts if receipt not in clean for part in _receipt(receipt)]
    modes = {receipt.mode for receipt in receipts}
    return View(
        blocks=[Lines(list(map(_say_removed, clean))), *other_parts],
        footer=[f"Receipts: {shorten_path(folder)}"] if folder is not None else [],
        mode=SIMULATED if SIMULATED in modes else "",
    )


def _say_removed(receipt: Receipt) -> Cell:
    """Return one line about a lab that left nothing behind."""
    texts = [
        f"{len(receipt.removed)} of {len(receipt.existed)} resources removed",
        _outputs(receipt),
        f"{format_count(len(receipt.ended), 'node')} had already ended" if receipt.ended else "",
        _cost(receipt),
    ]
    return Cell(f"{UNICODE.good} {receipt.stack}: {', '.join(filter(None, texts))}; nothing is left", "good")


def _cost(receipt: Receipt) -> str:
    return f"about ${Decimal(receipt.cost_usd):.2f} in all (gpucourse cost)" if receipt.cost_usd else ""


def _receipt(receipt: Receipt) -> list[Block]:
    leftovers, forgotten_items = receipt.leftovers, receipt.forgotten
    scan_result = Cell(f"{UNICODE.good} nothing is left", "good")
    if leftovers:
        scan_result = Cell(f"{UNICODE.bad} {format_count(len(leftovers), 'thing')} left", "bad")
    elif forgotten_items:
        scan_result = Cell(f"{UNICODE.bad} {format_count(len(forgotten_items), 'machine')} could not be checked", "bad")
    blocks: list[Block] = [
        facts(
            [
                ("stack", f"{receipt.stack} (module {receipt.module})"),
                ("deployed", f"{receipt.created} to {receipt.destroyed}" if receipt.created else "start time not recorded"),
                ("removed", f"{len(receipt.removed)} of {len(receipt.existed)} resources"),
                ("outputs", _outputs(receipt)),
                ("ended before", "\n".join(receipt.ended)),
                ("by scan", "\n".join(receipt.swept)),
                ("searched", ", ".join(receipt.regions)),
                ("cost", _cost(receipt)),
                ("leak scan", scan_result),
            ]
        )
    ]
    for title, items in (("Still there", leftovers), ("Forgotten, and may still be there", forgotten_items)):
        blocks.append(table(["kind", text_column("id")], [(item.kind, item.id) for item in items], title=title))
        blocks.append(Code("\n".join(item.remove for item in items), title="Remove it by hand", are_commands=True))
    return blocks


def _outputs(receipt: Receipt) -> str:
    texts = []
    if receipt.outputs_home:
        texts.append(f"outputs collected from {format_count(len(receipt.outputs_home), 'run')}")
    if receipt.outputs_discarded:
        texts.append(f"outputs discarded: {', '.join(receipt.outputs_discarded)}")
    return "; ".join(texts)
