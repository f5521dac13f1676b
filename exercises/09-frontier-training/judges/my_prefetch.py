"""Judge my_prefetch.py of 9.6: the order of issue, for several numbers of layers and of layers ahead."""

from __future__ import annotations

from collections.abc import Sequence

from fsdp_clock import BACKWARD, COMPUTING, FORWARD, FREE, GATHER, REDUCE, Issue

from gpucourse.judge import Case, Part, Way

WAYS = {
    "forward-order-in-backward": Way(
        "backward begins with the last layer, {last}, and your first gather for it is layer {answer}: gather in the order in "
        "which the layers are needed",
        ("sequence[gathered]", "forward[gathered]"),
    ),
    "gathers-twice": Way(
        "{count} gathers for {layers} layers that are never freed after forward: in backward, their weights are still there",
        ('layers if kind == "backward" and not frees else 0', "0"),
    ),
    "too-far": Way(
        "before {kind} {layer}, {count} layers are gathered and not computed, with {ahead} ahead: gather the layer itself and "
        "the next {ahead}",
        ("place + ahead + 1", "place + ahead + 2"),
    ),
    "too-near": Way(
        "before {kind} {layer}, only {count} layers are gathered and not computed, with {ahead} ahead: gather the layer itself "
        "and the next {ahead}",
        ("place + ahead + 1", "place + max(ahead - 1, 0) + 1"),
    ),
    "never-gathered": Way(
        "{kind} {layer} is issued before a gather of the layer: it has no weights",
        ("place + ahead + 1", "place + ahead"),
    ),
    "not-freed": Way(
        "layer {layer} is not freed after forward: it takes memory until backward",
        ('if frees or kind == "backward":', 'if kind == "backward":'),
    ),
    "freed-anyway": Way(
        "layer {layer} is freed after forward, although it should stay whole",
        ('if frees or kind == "backward":', "if True:"),
    ),
    "reduce-in-forward": Way(
        "layer {layer} is reduced after its forward: its gradient does not exist yet",
        ('            if kind == "backward":\n                issues.append(("reduce", layer))\n',
         '            issues.append(("reduce", layer))\n'),
    ),
}  # fmt: skip
SIZES = ((4, 0, 1, True), (4, 0, 0, True), (5, 1, 1, True), (5, 2, 1, True), (5, 0, 2, True), (6, 3, 2, True), (3, 4, 4, True),
         (4, 0, 1, False), (4, 1, 2, False), (1, 0, 1, True))  # fmt: skip


def judge(part: Part) -> None:
    """Judge orders with few and many layers ahead, with and without freeing after forward."""
    order = part.function("order")
    for layers, forward, backward, frees in SIZES:
        kept = "" if frees else ", whole after forward"
        name = f"{layers} layers, {forward} ahead in forward, {backward} in backward{kept}"
        answer = part.call(order, layers, forward, backward, frees, case=name)
        right = _list_issues(layers, forward, backward, frees)
        if not isinstance(answer, Sequence) or not all(map(_is_issue, answer)):
            part.compare([Case(name, answer, 'a list of pairs such as ("gather", 0)')])
        issues = [(str(kind), number) for kind, number in answer]
        if issues != right:
            _name_way(part, issues, layers, {FORWARD: forward, BACKWARD: backward}, frees, name)
        place = next((place for place, pair in enumerate(zip(issues, right, strict=False)) if pair[0] != pair[1]), len(right))
        part.compare([Case(f"issue {place} of {name}", _show(issues[place : place + 1]), _show(right[place : place + 1]))])
        part.compare([Case(f"issues of {name}", len(issues), len(right))])
    part.note(f"right for {len(SIZES)} steps")


def _is_issue(issue: object) -> bool:
    return isinstance(issue, Sequence) and len(issue) == 2 and isinstance(issue[0], str) and isinstance(issue[1], int)


def _show(issues: Sequence[Issue]) -> str:
    return " ".join(f"{kind} {layer}" for kind, layer in issues) or "nothing"


def _list_issues(layers: int, forward: int, backward: int, frees: bool) -> list[Issue]:
    issues: list[Issue] = []
    for kind, sequence, ahead in ((FORWARD, [*range(layers)], forward), (BACKWARD, [*range(layers)][::-1], backward)):
        gathers = [(GATHER, layer) for layer in sequence] if frees or kind == FORWARD else []
        issues += gathers[:ahead]
        for place, layer in enumerate(sequence):
            issues += gathers[place + ahead : place + ahead + 1]
            issues += [(kind, layer)] + [(FREE, layer)] * (frees or kind == BACKWARD) + [(REDUCE, layer)] * (kind == BACKWARD)
    return issues


def _name_way(part: Part, issues: list[Issue], layers: int, ahead: dict[str, int], frees: bool, name: str) -> None:
    """Raise Verdict with the rule that the order breaks, if it breaks one that has a name."""
    turn = next((place for place, (kind, _) in enumerate(issues) if kind == BACKWARD), len(issues))
    reduced = [layer for kind, layer in issues[:turn] if kind == REDUCE]
    if reduced:
        raise part.wrong("reduce-in-forward", name, layer=reduced[0])
    gathers = [layer for kind, layer in issues if kind == GATHER]
    if not frees and len(gathers) > layers:
        raise part.wrong("gathers-twice", name, count=len(gathers), layers=layers)
    freed = [layer for kind, layer in issues[:turn] if kind == FREE]
    if frees and len(freed) < layers:
        raise part.wrong("not-freed", name, layer=next(layer for layer in range(layers) if layer not in freed))
    if not frees and freed:
        raise part.wrong("freed-anyway", name, layer=freed[0])
    _check_ahead(part, issues[:turn], layers, ahead, frees, name)
    if frees and len(gathers) > layers and gathers[layers] != layers - 1:
        raise part.wrong("forward-order-in-backward", name, last=layers - 1, answer=gathers[layers])
    _check_ahead(part, issues, layers, ahead, frees, name)


def _check_ahead(part: Part, issues: list[Issue], layers: int, ahead: dict[str, int], frees: bool, name: str) -> None:
    waiting: set[int] = set()
    remaining = dict.fromkeys(COMPUTING, layers)
    for kind, layer in issues:
        if kind == GATHER:
            waiting.add(layer)
        elif kind in COMPUTING and (frees or kind == FORWARD):
            values = {"kind": kind, "layer": layer, "count": len(waiting), "ahead": ahead[kind]}
            if layer not in waiting:
                raise part.wrong("never-gathered", name, **values)
            needed = min(ahead[kind] + 1, remaining[kind])
            if len(waiting) != needed:
                raise part.wrong("too-far" if len(waiting) > needed else "too-near", name, **values)
            waiting.discard(layer)
            remaining[kind] -= 1
