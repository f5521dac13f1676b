"""What the account holds of the course, and what of it nothing explains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.tables import Cell, Code, Column, Items, Paragraph, Part, Table, View, facts, table
from gpucourse.ui.text import counted
from gpucourse.ui.views.money import hourly
from gpucourse.ui.views.outlook import clock

if TYPE_CHECKING:
    from gpucourse.labs.aws.cleanup.leaks import Held, Holdings
    from gpucourse.model.cloud import Found


def holdings(held: Holdings, *, clean: bool = False) -> View:
    """Labs that stand in one line each; every leak with the command that removes it."""
    unasked = (
        [("elsewhere", Cell(held.unasked, "warn"))]
        if held.unasked
        else [("elsewhere", "nothing in the account's other regions")]
    )
    parts: list[Part] = [facts([("account", held.account), ("looked in", ", ".join(held.regions)), *unasked])]
    for state, title in (("standing", "Labs on record"), ("another's", "Labs of others, whose time is not over: left alone")):
        lines = _labs([one for one in held.things if one.state == state])
        if lines:
            parts.append(Items(lines, title=title))
    leaks = [one for one in held.things if one.state == "leak"]
    blind = [one.found for one in held.things if one.state == "unknown"]
    if leaks:
        rate = held.usd_per_hour
        price = "what they cost is not known" if rate is None else f"they cost {hourly(rate)}"
        title = f"{counted(len(leaks), 'thing')} that no record explains; {price}"
        parts.append(_table(leaks, held.course, title))
        if not clean:
            parts.append(Code("\n".join(one.found.remove for one in leaks), title="Remove them by hand"))
    elif not blind:
        parts.append(Paragraph(f"{UNICODE.good} Nothing else there carries the course's tag: no leaks.", "good"))
    if blind:
        rows = [(one.kind, one.region, Cell(one.note, "warn")) for one in blind]
        parts.append(table(["kind", "region", Column("why", wrap=True)], rows, title="What could not be looked at"))
        parts.append(Code("\n".join(one.remove for one in blind), title="Look by hand"))
    footer = ["Remove them all: gpucourse leaks --clean"] if leaks and not clean else []
    if any(one.state == "another's" for one in held.things):
        footer.append("If those labs of others are your own: gpucourse leaks --clean --everyone")
    return View(parts=tuple(parts), footer=tuple(footer))


def cleaned(count: int, left: Sequence[Found]) -> View:
    """What went, and what is still there."""
    if not left:
        return View(parts=(Paragraph(f"{UNICODE.good} {counted(count, 'thing')} removed; nothing is left.", "good"),))
    rows = [(one.kind, one.id, one.region, one.note) for one in left]
    return View(
        parts=(
            table(["kind", "id", "region", Column("why", wrap=True)], rows, title="Still there"),
            Code("\n".join(one.remove for one in left), title="Remove it by hand"),
        )
    )


def _table(leaks: Sequence[Held], course: str, title: str) -> Table:
    rows = [
        (
            one.found.kind,
            one.found.id,
            one.found.region,
            ", ".join(_about(one.found, course)),
        )
        for one in leaks
    ]
    return table(["kind", Column("id", wrap=True), "region", Column("about", wrap=True)], rows, title=title)


def _about(found: Found, course: str) -> Iterator[str]:
    tags = found.tags
    if found.state:
        yield found.state
    if "Module" in tags:
        yield f"module {tags['Module']}"
    if tags.get("Course", course) != course:
        owner = f" of {tags['Owner']}" if "Owner" in tags else ""
        yield f"another workspace{owner}"


def _labs(things: Sequence[Held]) -> tuple[str, ...]:
    """One line a lab: what of it there is, until when."""
    by_stack: dict[str, list[Held]] = {}
    for one in things:
        by_stack.setdefault(one.stack, []).append(one)
    lines = []
    for stack, mine in sorted(by_stack.items()):
        tags = mine[0].found.tags
        machines = sum(one.found.kind == "instance" for one in mine)
        owner = f", of {tags['Owner']}" if "Owner" in tags else ""
        until = f", until {_when(tags['Expires'])}" if "Expires" in tags else ""
        lines.append(f"{stack}: {counted(machines, 'instance')}, {counted(len(mine), 'thing')} in all{owner}{until}")
    return tuple(lines)


def _when(stamp: str) -> str:
    """The tag's time for a person, or what stands there where it is none."""
    try:
        return clock(stamp.replace("Z", "+00:00"))
    except ValueError:
        return stamp
