"""The progress of a command as a tree: stages, and under each stage its resources and nodes. This module makes lines; it prints
nothing."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from rich.text import Text

from gpucourse.model.event import NodeEvent, ResourceEvent, Stage
from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.styles import line
from gpucourse.ui.text import clean_line, format_count, pad
from gpucourse.units import format_seconds

LISTED_AFTER_S = 5.0  # the parts of a stage that takes longer are listed, to show where the time went
MAX_LISTED = 8  # up to this many parts are listed one by one when their stage ends; more share one line
MAX_AT_ONCE = 40  # this many parts of a stage are listed as they end; later ones that succeed are counted
COUNTED_ACTIONS = {"create", "delete", "update", "replace"}
_DOING = {"create": "creating", "delete": "removing", "update": "changing", "replace": "replacing", "read": "reading"}
_DONE = {"create": "created", "delete": "removed", "update": "changed", "replace": "replaced", "read": "read"}
_NAMES, _MIN_NAME = 40, 20  # columns of the names, so that the times are aligned
_TIMES = 12  # columns of a time, and of the sign before the name
_BAR = 14  # columns; with `128 of 128` the line still fits into 80. rich's bar shows the remaining part only by its colour.
_GOOD, _BAD, _BROKEN_OFF = (UNICODE.good, "good"), (UNICODE.bad, "bad"), (UNICODE.absent, "warn")


@dataclass
class Resource:
    """A Terraform resource that belongs to a stage."""

    address: str
    action: str
    began: float
    seconds: float | None = None
    ok: bool = True
    detail: str = ""


@dataclass
class OpenStage:
    """A stage that has begun, and its events since then. Lines about its parts are kept in `waiting` until the first line of
    the stage has been shown (`announced`)."""

    name: str
    text: str
    began: float
    silence: str = ""
    announced: bool = False
    parts: int = 0
    waiting: list[Text] = field(default_factory=list)
    resources: dict[str, Resource] = field(default_factory=dict)
    nodes: dict[str, list[NodeEvent]] = field(default_factory=dict)

    @property
    def good_resources(self) -> list[Resource]:
        """Return the resources that are done."""
        return [resource for resource in self.resources.values() if resource.seconds is not None and resource.ok]

    @property
    def good_nodes(self) -> dict[str, list[NodeEvent]]:
        """Return the nodes without a failed step."""
        return {name: events for name, events in self.nodes.items() if all(event.ok for event in events)}


class Progress:
    """Receives the events of one command, and returns the lines that are finished and those that still change.

    A stage that succeeds quickly is one line. With `verbose`, its resources and nodes are always listed. With `at_once`, they
    are listed as soon as they end, for an output in which no lines change in place. `columns` is the maximum length of a line.
    """

    def __init__(self, *, at_once: bool = False, verbose: bool = False, columns: int = 80) -> None:
        self._names = min(_NAMES, max(_MIN_NAME, columns - _TIMES))
        self._at_once, self._verbose = at_once, verbose
        self._open: dict[str, OpenStage] = {}
        self._planned: set[str] = set()

    def stage(self, event: Stage, now: float) -> list[Text]:
        """Handle the beginning or the end of a stage. At its end, return the lines of the stage and its parts. At its
        beginning, return a line only if the user must know right away that the stage prints nothing for a while."""
        if event.seconds is None:
            new_stage = self._open[event.name] = OpenStage(event.name, event.text, now, event.silence)
            return self._announce(new_stage, []) if self._at_once and event.silence else []
        stage = self._open.pop(event.name, None) or OpenStage(event.name, event.text, now)
        if stage.resources:  # the plan is done; the count begins again for the next stack
            self._planned.clear()
        if stage.announced:
            word = "done" if event.ok else "failed"
            return [
                *self._count_unlisted(stage),
                self._render_end(word, event.seconds, _sign(event.ok), indent="  "),
            ]
        end = self._render_end(event.text, event.seconds, _sign(event.ok))
        is_listed = self._verbose or not event.ok or bool(_list_failed(stage)) or event.seconds > LISTED_AFTER_S
        return [end, *(_list_children(stage) if is_listed else [])]

    def resource(self, event: ResourceEvent, now: float) -> list[Text]:
        """Handle an event of a Terraform resource. Return the resource's line if it has to be shown now."""
        if event.state == "planned":
            if event.action in COUNTED_ACTIONS:
                self._planned.add(event.address)
            return []
        stage = self._current()
        # All resources of a lab on AWS are in this one Terraform module, so its name adds nothing.
        name = event.address.removeprefix("module.lab.")
        resources = stage.resources if stage else {}
        resource = resources.setdefault(event.address, Resource(name, event.action, now))
        if resource.action != event.action:  # replacing means removing, then creating
            resource = resources[event.address] = Resource(name, event.action, now)
        resource.detail = event.detail or resource.detail
        if event.state not in {"done", "failed"}:
            return []
        resource.seconds, resource.ok = event.seconds, event.state == "done"
        return self._part(stage, [_draw_resource(resource)], now, ok=resource.ok)

    def node(self, event: NodeEvent, now: float) -> list[Text]:
        """Handle a step of a node. Return the node's line if it has to be shown now."""
        stage = self._current()
        if stage is not None:
            stage.nodes.setdefault(event.node, []).append(event)
        return self._part(stage, _draw_node(event.node, [event]), now, ok=event.ok)

    def _part(self, stage: OpenStage | None, rows: list[Text], now: float, *, ok: bool) -> list[Text]:
        """Return the lines to show immediately about a part that has ended."""
        if stage is None:
            return rows if self._verbose or not ok else []
        if not self._at_once:
            return []
        stage.parts += 1
        if ok and stage.parts > MAX_AT_ONCE and not self._verbose:
            rows = []
        if stage.announced or self._verbose or not ok or now - stage.began > LISTED_AFTER_S:
            return self._announce(stage, rows)
        stage.waiting += rows
        return []

    def _announce(self, stage: OpenStage, rows: list[Text]) -> list[Text]:
        """Return these lines, preceded by the first line of their stage and by the lines that waited for it."""
        silence = f" ({stage.silence} {UNICODE.ellipsis})" if stage.silence else ""
        head = [] if stage.announced else [line(f"{UNICODE.dot} ", (f"{clean_line(stage.text)}{silence}", "strong"))]
        waiting, stage.waiting, stage.announced = stage.waiting, [], True
        return [*head, *waiting, *rows]

    def note_output(self) -> None:
        """Remove the notes about silence, because a rank has printed something."""
        for stage in self._open.values():
            stage.silence = ""

    def end_open_stages(self, now: float, *, has_failed: bool) -> list[Text]:
        """Return the lines of the stages that were still open when the command ended early."""
        sign = _BAD if has_failed else _BROKEN_OFF
        stages, self._open = list(self._open.values()), {}
        return [
            row
            for stage in stages
            for row in (
                *self._count_unlisted(stage),
                self._render_end(stage.text, now - stage.began, sign),
                *([] if stage.announced else _list_children(stage)),
            )
        ]

    def rows(self, now: float, height: int, width: int) -> list[Text]:
        """Return the lines that change in place, at most `height` lines of `width` columns: each stage with its time and, below
        it, the parts that most need attention."""
        spinner = UNICODE.frame(now)
        heads, rows = len(self._open), []
        room = max(0, height - heads)
        for stage in self._open.values():
            rows.append(self._draw_stage(stage, now, spinner, width))
            if stage.silence and room:
                rows.append(line((f"    {stage.silence} {UNICODE.ellipsis}", "dim")))
                room -= 1
            children = _list_failed(stage) + self._list_active(stage, now, spinner) + _list_good(stage)[::-1]
            visible_children = children if len(children) <= room else children[: max(0, room - 1)]
            rows.extend(visible_children)
            if len(visible_children) < len(children) and room:
                rows.append(line((f"    {UNICODE.ellipsis} {len(children) - len(visible_children)} more", "dim")))
            room -= min(len(children), room)
        return rows[:height]

    def _current(self) -> OpenStage | None:
        return next(reversed(self._open.values()), None)

    def _render_end(self, text: str, seconds: float, sign: tuple[str, str], indent: str = "") -> Text:
        name = pad(clean_line(text), self._names - len(indent))
        return line(indent, sign, " ", (name, "strong"), (f"{format_seconds(seconds):>10}", "dim"))

    def _draw_stage(self, stage: OpenStage, now: float, spinner: str, width: int) -> Text:
        elapsed = f" {_format_growing(now - stage.began):>9}"
        room = max(1, width - len("* ") - len(elapsed))
        bar = self._draw_bar(stage) if stage.resources else Text()
        if room - bar.cell_len < _MIN_NAME:
            bar = Text()
        name = Text(clean_line(stage.text))
        name.truncate(room - bar.cell_len, overflow="ellipsis")
        return line((spinner, "accent"), " ", pad(name.plain, min(_NAMES, room - bar.cell_len)), (elapsed, "dim"), bar)

    def _draw_bar(self, stage: OpenStage) -> Text:
        done_count = sum(resource.seconds is not None for resource in stage.resources.values())
        total = max(len(self._planned), len(stage.resources))
        full = _BAR * done_count // total
        bar = (UNICODE.bar_done * full, "good"), (UNICODE.bar_left * (_BAR - full), "dim")
        return line("  ", *bar, (f" {done_count} of {total}", "dim"))

    def _list_active(self, stage: OpenStage, now: float, spinner: str) -> list[Text]:
        rows = []
        for resource in stage.resources.values():
            if resource.seconds is None:
                name = Text(clean_line(resource.address))
                name.truncate(30, overflow="ellipsis")
                text = f"{name}  {_DOING.get(resource.action, resource.action)}"
                rows.append(_draw_part((spinner, "accent"), text, f"{_format_growing(now - resource.began):>10}"))
        return rows

    def _count_unlisted(self, stage: OpenStage) -> list[Text]:
        """If not all parts that succeeded were listed, return one line for each action, with the number of parts."""
        if not stage.announced or stage.parts <= MAX_AT_ONCE or self._verbose:
            return []
        return _summarize_good(stage)


def _list_failed(stage: OpenStage) -> list[Text]:
    rows = [_draw_resource(resource) for resource in stage.resources.values() if not resource.ok]
    good_nodes = stage.good_nodes
    return rows + [row for name, events in stage.nodes.items() if name not in good_nodes for row in _draw_node(name, events)]


def _list_good(stage: OpenStage) -> list[Text]:
    rows = [_draw_resource(resource) for resource in stage.good_resources]
    return rows + [row for name, events in stage.good_nodes.items() for row in _draw_node(name, events)]


def _list_children(stage: OpenStage) -> list[Text]:
    """Return the lines of all parts at the end of their stage. If many succeeded, these share one line for each action."""
    has_many = len(stage.good_resources) > MAX_LISTED or len(stage.good_nodes) > MAX_LISTED
    return (_summarize_good(stage) if has_many else _list_good(stage)) + _list_failed(stage)


def _summarize_good(stage: OpenStage) -> list[Text]:
    """Return one line for each action on resources and for each step of nodes. Each line names the slowest resource or node."""
    rows = []
    resources, nodes = stage.good_resources, stage.good_nodes
    for action in dict.fromkeys(resource.action for resource in resources):
        times = [(resource.seconds or 0.0, resource.address) for resource in resources if resource.action == action]
        rows.append(_draw_times(f"{format_count(len(times), 'resource')} {_DONE.get(action, action)}", times))
    for step in dict.fromkeys(event.step for events in nodes.values() for event in events):
        times = [(event.seconds, name) for name, events in nodes.items() for event in events if event.step == step]
        middle = f"median {format_seconds(statistics.median(seconds for seconds, _ in times))}, "
        rows.append(_draw_times(f"{format_count(len(times), 'node')}: {clean_line(step)}", times, middle))
    return rows


def _draw_times(text: str, times: list[tuple[float, str]], middle: str = "") -> Text:
    slowest, name = max(times)
    return _draw_part(_GOOD, text, f"  {middle}slowest {format_seconds(slowest)} ({clean_line(name)})")


def _draw_resource(resource: Resource) -> Text:
    word = _DONE.get(resource.action, resource.action) if resource.ok else "failed"
    detail = f"  {clean_line(resource.detail)}" if resource.detail and not resource.ok else ""
    text = f"{clean_line(resource.address)}  {word}"
    return _draw_part(_sign(resource.ok), text, f"{format_seconds(resource.seconds or 0.0):>10}").append(detail, "bad")


def _draw_node(name: str, events: list[NodeEvent]) -> list[Text]:
    is_good = all(event.ok for event in events)
    steps = f" {UNICODE.dot} ".join(map(_describe_step, events))
    rows = [line("  ", _sign(is_good), " ", pad(clean_line(name), 8), (f"  {steps}", "dim" if is_good else ""))]
    details = [clean_line(event.detail) for event in events if not event.ok and event.detail]
    return rows + [line("      ", (text, "bad")) for text in details]


def _describe_step(event: NodeEvent) -> str:
    note = f" ({clean_line(event.detail)})" if event.detail and event.ok else ""
    return f"{clean_line(event.step)}{'' if event.ok else ' failed'} {format_seconds(event.seconds)}{note}"


def _format_growing(seconds: float) -> str:
    """Format a time that is still growing, in tenths of a second: the eye cannot follow a finer step."""
    return f"{seconds:.1f} s" if seconds < 120 else format_seconds(seconds)


def _sign(ok: bool) -> tuple[str, str]:
    return _GOOD if ok else _BAD


def _draw_part(sign: tuple[str, str], text: str, detail: str) -> Text:
    return line("  ", sign, " ", pad(text, _NAMES - 2), (detail, "dim"))
