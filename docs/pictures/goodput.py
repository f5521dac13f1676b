"""The picture of a day with interruptions, in module 9's lesson on hangs, slow jobs, corruption and accounts."""

from __future__ import annotations

from collections.abc import Callable

from docs.pictures.canvas import Canvas
from docs.pictures.sources import EXERCISES, read_data


def draw_goodput() -> Canvas:
    """Draw a made-up day with eight interruptions as a bar."""
    day = read_data(EXERCISES / "09-frontier-training" / "accounts.json")["day"]
    lost, down = (sum(one[key] for one in day) for key in ("lost_hours", "down_hours"))
    kept = 24 - lost - down
    picture = Canvas(
        "A day with eight interruptions",
        f"Of 24 hours, {kept:.1f} count, {lost:.1f} were trained and lost, and in {down:.1f} nothing ran.",
        130,
    )
    picture.heading(20, 20, f"a made-up day with {len(day)} interruptions: a goodput of {100 * kept / 24:.0f} %")
    x = 20.0
    for hours, kind in ((kept, "c"), (lost, "b"), (down, "d")):
        picture.box(x, 36, hours * 30, 34, kind)
        x += hours * 30
    picture.legend(
        90,
        (20, "c", f"counts: {kept:.1f} h"),
        (220, "b", f"trained, then lost: {lost:.1f} h"),
        (460, "d", f"nothing ran: {down:.1f} h"),
    )
    return picture


PICTURES: dict[str, Callable[[], Canvas]] = {"goodput": draw_goodput}
