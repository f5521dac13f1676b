"""The course's resources in an AWS account, including those that no record explains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.tables import Block, Cell, Code, Items, Paragraph, View, facts, table, text_column
from gpucourse.ui.text import format_count, hourly
from gpucourse.ui.views.outlook import clock

if TYPE_CHECKING:
    from gpucourse.labs.aws.leaks import LeakScan, ScannedResource
    from gpucourse.model.cloud import CloudResource


def holdings(scan: LeakScan, *, clean: bool = False) -> View:
    """Show the labs that exist, one line each, and every leak with the command that removes it."""
    standing, other_labs, leaks, blind = (
        [thing for thing in scan.things if thing.state == state] for state in ("standing", "another's", "leak", "unknown")
    )
    elsewhere = Cell(scan.unasked, "warn") if scan.unasked else "nothing in the account's other regions"
    rate = scan.usd_per_hour
    price = "their cost is not known" if rate is None else f"they cost {hourly(rate)}"
    by_hand = [] if clean else [thing.resource.remove for thing in leaks]
    no_leaks_sentence = f"{UNICODE.good} Nothing else there has the course's tag: no leaks."
    blocks: list[Block] = [
        facts([("account", scan.account), ("searched", ", ".join(scan.regions)), ("elsewhere", elsewhere)]),
        Items(_labs(standing), title="Recorded labs"),
        Items(_labs(other_labs), title="Labs of others that have not expired: left alone"),
        table(
            ["kind", text_column("id"), "region", text_column("about")],
            [
                (
                    leak.resource.kind,
                    leak.resource.id,
                    leak.resource.region,
                    ", ".join(_describe_resource(leak.resource, scan.course)),
                )
                for leak in leaks
            ],
            title=f"{format_count(len(leaks), 'resource')} that no record accounts for; {price}",
        ),
        Code("\n".join(by_hand), title="Remove them by hand", are_commands=True),
        Paragraph("" if leaks or blind else no_leaks_sentence, "good"),
        table(
            ["kind", "region", text_column("why")],
            [(thing.resource.kind, thing.resource.region, Cell(thing.resource.note, "warn")) for thing in blind],
            title="What could not be checked",
        ),
        Code("\n".join(thing.resource.remove for thing in blind), title="Check by hand", are_commands=True),
    ]
    footer = ["Remove them all: gpucourse leaks --clean"] if leaks and not clean else []
    footer += ["If those labs are yours as well: gpucourse leaks --clean --everyone"] if other_labs else []
    return View(blocks=blocks, footer=footer)


def clean_result(count: int, leftovers: Sequence[CloudResource]) -> View:
    """Show what was removed, and what is still there."""
    if not leftovers:
        return View(blocks=[Paragraph(f"{UNICODE.good} {format_count(count, 'resource')} removed; nothing is left.", "good")])
    rows = [(thing.kind, thing.id, thing.region, thing.note) for thing in leftovers]
    return View(
        blocks=[
            table(["kind", "id", "region", text_column("why")], rows, title="Still there"),
            Code("\n".join(thing.remove for thing in leftovers), title="Remove it by hand", are_commands=True),
        ]
    )


def _describe_resource(thing: CloudResource, course: str) -> Iterator[str]:
    tags = thing.tags
    if thing.state:
        yield thing.state
    if "Module" in tags:
        yield f"module {tags['Module']}"
    if tags.get("Course", course) != course:
        owner = f" of {tags['Owner']}" if "Owner" in tags else ""
        yield f"another workspace{owner}"


def _labs(things: Sequence[ScannedResource]) -> list[str]:
    """Return one line per lab: how many instances and resources it has, its owner, and its deadline."""
    by_stack: dict[str, list[ScannedResource]] = {}
    for thing in things:
        by_stack.setdefault(thing.stack, []).append(thing)
    lines = []
    for stack, stack_things in sorted(by_stack.items()):
        tags = stack_things[0].resource.tags
        machines = sum(thing.resource.kind == "instance" for thing in stack_things)
        owner = f", of {tags['Owner']}" if "Owner" in tags else ""
        until = f", until {_format_tag_time(tags['Expires'])}" if "Expires" in tags else ""
        lines.append(
            f"{stack}: {format_count(machines, 'instance')}, {format_count(len(stack_things), 'resource')} in all{owner}{until}"
        )
    return lines


def _format_tag_time(stamp: str) -> str:
    """Format the time in a tag for a person, or return the tag unchanged if it is not a time."""
    try:
        return clock(stamp.replace("Z", "+00:00"))
    except ValueError:
        return stamp
