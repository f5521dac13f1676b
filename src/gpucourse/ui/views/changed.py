"""The changes that a command made to an existing lab."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.tables import Cell, Items, View, facts
from gpucourse.ui.text import hourly, usd
from gpucourse.ui.views.outlook import clock

if TYPE_CHECKING:
    from gpucourse.labs.results import ChangeResult, Extension


def change_result(change: ChangeResult, next_step: str = "") -> View:
    """Show every change in a sentence, then the warnings. `next_step` is the command that `gpucourse next` suggests."""
    return View(
        headline=Cell(f"{UNICODE.good} {change.title}", "good"),
        blocks=[
            Items(change.changed),
            Items(change.warnings, title="Warnings", style="warn"),
            facts([("costs", hourly(change.usd_per_hour)), ("ends at", clock(change.expires) if change.expires else "")]),
        ],
        footer=[f"Useful now: {change.next}"] if change.next and change.next != next_step else [],
        next=next_step,
    )


def more_time(extension: Extension) -> View:
    """Show what more time costs, and whether the budget allows it."""
    about = facts(
        [
            ("stack", extension.deployment.stack),
            ("ends at", f"{extension.expires:%Y-%m-%d %H:%M} UTC instead of {extension.before:%H:%M}"),
            ("costs", hourly(extension.usd_per_hour)),
            ("added", usd(extension.usd_added)),
            ("until it ends", usd(extension.usd_to_end)),
            ("budget left", None if extension.left is None else usd(extension.left) if extension.left > 0 else "nothing"),
        ]
    )
    return View(title="More time than the budget allows" if extension.above_budget else "More time", blocks=[about])
