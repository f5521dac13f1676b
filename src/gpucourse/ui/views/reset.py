"""What `reset` did, on the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpucourse.ui.tables import Paragraph, View, table

if TYPE_CHECKING:
    from gpucourse.learning.reset import Reset


def reset(done: Reset) -> View:
    """Every file that was put back, and where the learner's own lies now."""
    number = done.exercise.id
    if not done.files:
        return View(title=f"{number}  reset", parts=(Paragraph("Every file is as the course has it; nothing was changed."),))
    rows = [(name, str(place) if place else "there was none") for name, place in done.files.items()]
    return View(
        title=f"{number}  reset",
        parts=(table(["put back", "yours is kept as"], rows),),
        footer=("Runs, answers and points stay.", f"Run it: gpucourse run {number}"),
    )
