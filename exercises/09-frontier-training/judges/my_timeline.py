"""Judge my_timeline.py of 9.6: compare timelines with an event queue, and name the rule that a wrong one breaks."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from typing import Any, NamedTuple

from fsdp_clock import BACKWARD, COMPUTING, FORWARD, FREE, GATHER, REDUCE, Issue, measure_exposure, simulate_step

from gpucourse.judge import Case, Part, Way

WAYS = {
    "does-not-wait": Way(
        "{kind} {layer} begins at {begin:g}, but its layer is whole only at {whole:g}: computing needs the layer's last "
        "gather",
        ('{"forward": "gather", "backward": "gather", "reduce": "backward", "free": "compute"}',
         '{"reduce": "backward", "free": "compute"}'),
    ),
    "gathers-at-once": Way(
        "gathers {first} and {second} overlap: they share one queue, and come one after the other",
        ("if queues[kind] in tail else []", 'if queues[kind] in tail and kind != "gather" else []'),
    ),
    "processor-waits": Way(
        "gather {layer} begins at {begin:g} but could begin at {right:g}: the processor does not wait until the computation "
        "that it issued before has ended",
        ('{"gather": "in",', '{"gather": "compute",'),
    ),
    "reduce-early": Way(
        "the gradient of layer {layer} is reduced at {begin:g}, but it is computed only at {end:g}",
        ('"reduce": "backward", "free"', '"free"'),
    ),
    "reduce-on-gather-queue": Way(
        "gather {layer} begins at {begin:g}, when a reduce has ended, but could begin at {right:g}: gathers and reduces "
        "have separate queues",
        ('"reduce": "out"}', '"reduce": "in"}'),
    ),
    "room-without-the-arriving": Way(
        "{whole} layers are in memory at once, with room for {room}: a layer takes memory from the beginning of its gather",
        ("    for number in range(room, len(gathers)):\n", "    room += 1\n    for number in range(room, len(gathers)):\n"),
    ),
    "room-ignored": Way(
        "{whole} layers are in memory at once, with room for {room}: a gather must wait until enough layers have left memory",
        ("range(room, len(gathers))", "range(0)"),
    ),
    "freed-at-issue": Way(
        "layer {layer} leaves memory at {begin:g}, but it is computed until {end:g}: the processor issues the free long "
        "before",
        ('ready if kind == "free" else', '(place + 1) * issue_s if kind == "free" else'),
    ),
    "before-its-issue": Way(
        "{kind} {layer} begins at {begin:g}, but the processor issues it only at {issued:g}",
        ("max(ready, (place + 1) * issue_s)", "ready"),
    ),
    "wrong-length": Way(
        "{kind} {layer} takes {answer:g} in your timeline, but {right:g} by `seconds`",
        ("begin + (seconds[kind][layer] if", 'begin + (seconds["forward"][layer] if'),
    ),
}  # fmt: skip


class _Step(NamedTuple):
    """An input: its name, and the four arguments."""

    name: str
    issues: list[Issue]
    seconds: dict[str, list[int]]
    room: int
    issue_s: int


def _list_issues(layers: int, forward: int, backward: int) -> list[Issue]:
    """Return the issues of a step, in order. Each layer is gathered `forward` or `backward` layers before its turn.

    The first gathers of a direction come before its first layer.
    """
    issues: list[Issue] = []
    for kind, sequence, ahead in ((FORWARD, [*range(layers)], forward), (BACKWARD, [*range(layers)][::-1], backward)):
        issues += [(GATHER, layer) for layer in sequence[:ahead]]
        for layer, later in zip(sequence, [*sequence[ahead:], *[None] * min(ahead, layers)], strict=True):
            issues += [(GATHER, later)] if later is not None else []
            issues += [(kind, layer), (FREE, layer)] + [(REDUCE, layer)] * (kind == BACKWARD)
    return issues


def _list_steps() -> list[_Step]:
    """Return steps of equal layers, then steps of uneven layers. Some have a slow processor, or room for few layers."""
    equal = {GATHER: [2] * 4, FORWARD: [1] * 4, BACKWARD: [3] * 4, REDUCE: [2] * 4}
    steps = [
        _Step("4 equal layers, none ahead", _list_issues(4, 0, 0), equal, 4, 0),
        _Step("4 equal layers, slow reduces", _list_issues(4, 0, 0), equal | {REDUCE: [7] * 4}, 4, 0),
        _Step("4 equal layers, room for 1", _list_issues(4, 0, 0), equal, 1, 0),
        _Step("4 equal layers, room for 2", _list_issues(4, 1, 1), equal, 2, 0),
        _Step("4 equal layers, a slow processor", _list_issues(4, 1, 1), equal, 3, 2),
    ]
    source = random.Random(9)
    for number in range(12):
        layers, ahead = source.randint(2, 7), (source.randint(0, 3), source.randint(0, 3))
        seconds = {kind: [source.randint(1, 9) for _ in range(layers)] for kind in (GATHER, FORWARD, BACKWARD, REDUCE)}
        name = f"step {number} of {layers} uneven layers, {ahead[0]} and {ahead[1]} ahead"
        room = max(ahead) + source.randint(1, 3)
        steps.append(_Step(name, _list_issues(layers, *ahead), seconds, room, source.choice((0, 0, 1, 2))))
    return steps


def judge(part: Part) -> None:
    """Judge all steps, the simplest first."""
    timeline, steps = part.function("timeline"), _list_steps()
    for step in steps:
        seconds = {kind: [*row] for kind, row in step.seconds.items()}
        spans = part.call(timeline, [*step.issues], seconds, step.room, step.issue_s, case=step.name)
        right = [(float(begin), float(end)) for begin, end in simulate_step(*step[1:])]
        if not _is_timeline(spans, len(right)):
            part.compare([Case(step.name, spans, f"a list of {len(right)} pairs (begin, end) of finite numbers")])
        answer = [(float(begin), float(end)) for begin, end in spans]
        _name_rule(part, step, answer, right)
        part.compare([Case(f"{issue[0]} {issue[1]}, {step.name}", list(span), list(pair))
                      for issue, span, pair in zip(step.issues, answer, right, strict=True)])  # fmt: skip
    part.note(f"equal to an event queue in {len(steps)} steps")


def _is_timeline(spans: object, count: int) -> bool:
    if not isinstance(spans, Sequence) or len(spans) != count:
        return False
    return all(
        isinstance(span, Sequence)
        and len(span) == 2
        and all(isinstance(time, (int, float)) and math.isfinite(time) for time in span)
        for span in spans
    )


def _name_rule(part: Part, step: _Step, answer: list[tuple[float, float]], right: list[tuple[float, float]]) -> None:
    """Raise Verdict with the first rule that the timeline breaks, if it breaks one that has a name."""
    whole: dict[int, float] = {}
    computed: dict[int, float] = {}
    for place, ((kind, layer), (begin, end)) in enumerate(zip(step.issues, answer, strict=True)):
        values: dict[str, Any] = {"kind": kind, "layer": layer, "begin": begin}
        if kind != FREE and abs(end - begin - step.seconds[kind][layer]) > 1e-9:
            raise part.wrong("wrong-length", step.name, **values, answer=end - begin, right=step.seconds[kind][layer])
        if kind != FREE and begin < (place + 1) * step.issue_s - 1e-9:
            raise part.wrong("before-its-issue", step.name, **values, issued=(place + 1) * step.issue_s)
        if kind in COMPUTING and begin < whole.get(layer, 0) - 1e-9:
            raise part.wrong("does-not-wait", step.name, **values, whole=whole[layer])
        if kind in (REDUCE, FREE) and begin < computed.get(layer, 0) - 1e-9:
            way = "reduce-early" if kind == REDUCE else "freed-at-issue"
            raise part.wrong(way, step.name, **values, end=computed[layer])
        if kind == GATHER:
            whole[layer] = end
        if kind in COMPUTING:
            computed[layer] = end
    _check_gathers(part, step, answer, right)


def _check_gathers(part: Part, step: _Step, answer: list[tuple[float, float]], right: list[tuple[float, float]]) -> None:
    places = [place for place, (kind, _) in enumerate(step.issues) if kind == GATHER]
    for first, second in itertools.pairwise(places):
        if answer[second][0] < answer[first][1] - 1e-9:
            raise part.wrong("gathers-at-once", step.name, first=step.issues[first][1], second=step.issues[second][1])
    count = measure_exposure(step.issues, answer).whole_at_once
    if count > step.room:
        way = "room-without-the-arriving" if count == step.room + 1 else "room-ignored"
        raise part.wrong(way, step.name, whole=count, room=step.room)
    for place in places:
        begin, earliest = answer[place][0], right[place][0]
        if begin <= earliest + 1e-9:
            continue
        values = {"layer": step.issues[place][1], "begin": begin, "right": earliest}
        before = step.issues[:place]
        if any(kind == REDUCE and answer[other][1] == begin for other, (kind, _) in enumerate(before)):
            raise part.wrong("reduce-on-gather-queue", step.name, **values)
        if any(kind in COMPUTING and answer[other][1] == begin for other, (kind, _) in enumerate(before)):
            raise part.wrong("processor-waits", step.name, **values)
        return
