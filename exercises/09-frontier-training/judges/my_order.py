"""Judge my_order.py of 9.4: simulate the orders of all stages together, with one processor for each stage."""

from __future__ import annotations

from collections.abc import Sequence

from pieces import FORWARD, INPUTS, WEIGHTS, Piece, Slot, Times, count_held, predict_bubble_time, simulate

from gpucourse.judge import Case, Part, Verdict, Way

KINDS = FORWARD, INPUTS, WEIGHTS
WAYS = {
    "weights-at-once": Way(
        "every stage computes weight gradients right after input gradients, so it has none left for the gaps at the end of "
        "the step: the bubble takes {bubble:g}, but {right:g} is possible. Which stages wait at the end, and how long?",
        ("delay, waiting = stage", "delay, waiting = 0"),
    ),
    "weights-last": Way(
        "stage {stage} keeps the activations of {held} micro-batches until it computes all weight gradients at the end, but "
        "{room} are enough. Between its forwards, it has time for weight gradients",
        ("        if len(waiting) > delay:\n            order.append((\"weights\", waiting.pop(0)))\n", ""),
    ),
    "upside-down": Way(
        "you counted from the wrong end: stage 0 delays the most weight gradients, and the last stage none. Which of the two "
        "has nothing else to do at the end of a step?",
        ("delay, waiting = stage", "delay, waiting = stages - 1 - stage"),
    ),
    "too-much": Way(
        "the bubble is as small as possible, but stage {stage} holds {held} micro-batches until their weight gradients "
        "are done, although {room} are enough: it delays too many of them",
        ("delay, waiting = stage", "delay, waiting = stage + 1"),
    ),
    "too-much-and-slow": Way(
        "stage {stage} holds {held} micro-batches until their weight gradients are done, but {room} are enough, and the "
        "bubble takes {bubble:g} instead of {right:g}: weight gradients that are delayed too long fill no gap",
        ("delay, waiting = stage", "delay, waiting = stages"),
    ),
    "all-forward-first": Way(
        "stage {stage} holds {held} micro-batches, but {room} are enough: it runs {ahead} of them forward before its first "
        "input gradients. Begin with the gradients as soon as they can arrive",
        ("min(stages - stage - 1, micro_batches)", "micro_batches"),
    ),
    "warm-up-short": Way(
        "the bubble takes {bubble:g}, but {right:g} is possible: stage {stage} of {stages} runs {ahead} micro-batches forward "
        "before its first input gradients. How many can it run while the first one goes to the last stage and its gradient "
        "comes back?",
        ("min(stages - stage - 1, micro_batches)", "min(max(0, stages - stage - 2), micro_batches)"),
    ),
    "too-early": Way(
        "the bubble takes {bubble:g}, but {right:g} is possible: stage {stage} delays the weight gradients of at most "
        "{delay} micro-batches, and has nothing to do while it waits for the last gradients",
        ("delay, waiting = stage", "delay, waiting = max(0, stage - 1)"),
    ),
    "weights-first": Way(
        "stage {stage} computes the weight gradients of micro-batch {number} before its input gradients: both need the "
        "gradient that comes from the next stage, and the previous stage waits for the input gradients",
        (
            '        order.append(("inputs", number))\n        waiting.append(number)\n'
            '        if len(waiting) > delay:\n            order.append(("weights", waiting.pop(0)))\n',
            '        order += [("weights", number), ("inputs", number)]\n',
        ),
    ),
    "backward-first": Way(
        "stage {stage} computes the input gradients of micro-batch {number} before its forward: there is no gradient yet",
        ('    order = [("forward", number) for number in range(warm_up)]\n', '    order = [("inputs", 0)]\n'
         '    order += [("forward", number) for number in range(warm_up)]\n'),
    ),
    "no-warm-up": Way(
        "the stages take turns, as without micro-batches: the bubble takes {bubble:g}, but {right:g} is possible. Stage 0 "
        "must send several micro-batches before the first gradient comes back",
        ("min(stages - stage - 1, micro_batches)", "0"),
    ),
    "not-drained": Way(
        "stage {stage} computes weight gradients {count} times for {micro_batches} micro-batches: delayed ones are missing, "
        "so its gradients would be too small",
        ('    order.extend(("weights", number) for number in waiting)\n', ""),
    ),
    "deadlock": Way(
        "the stages wait for each other for ever: {waiting}. A stage must not wait for the next micro-batch if the previous "
        "stage sends it only after a gradient of this one",
        ("min(stages - stage - 1, micro_batches)", "min((stages - 1) * (stage % 2), micro_batches)"),
    ),
    "from-one": Way(
        "you numbered the micro-batches from 1: they are numbered from 0",
        ("    return order", "    return [(kind, number + 1) for kind, number in order]"),
    ),
}  # fmt: skip
PIPELINES = ((4, 8), (3, 5), (2, 4), (1, 3), (4, 4), (5, 11), (8, 16), (3, 3))  # stages, micro-batches
DURATIONS = Times(1, 1, 1), Times(10, 12, 8), Times(3, 3, 2)


def judge(part: Part) -> None:
    """Judge pipelines of several lengths, with the least and with more micro-batches, and three sets of durations."""
    order_of_stage = part.function("order_of_stage")
    for stages, micro_batches in PIPELINES:
        orders = []
        for stage in range(stages):
            name = f"stage {stage} of {stages}, {micro_batches} micro-batches"
            order = part.call(order_of_stage, stage, stages, micro_batches, case=name)
            orders.append(_check_pieces(part, order, stage, micro_batches, name))
        _check_together(part, orders, f"{stages} stages, {micro_batches} micro-batches")
    part.note(f"right for {len(PIPELINES)} pipelines; 8 micro-batches on 4 stages, with pieces of 1, end at 27 (1F1B: 33)")


def _check_pieces(part: Part, order: object, stage: int, micro_batches: int, name: str) -> list[Slot]:
    """Return the order as slots. Raises Verdict unless it contains each piece once, and after what it needs on its stage."""
    is_list = isinstance(order, Sequence) and all(_is_pair(piece) for piece in order)
    if not is_list:
        part.compare([Case(name, order, 'a list of pairs such as ("inputs", 0)')])
    pairs = [(str.__str__(kind), number) for kind, number in order]  # type: ignore[attr-defined]  # an enum of texts is text
    right = [(kind, number) for kind in KINDS for number in range(micro_batches)]
    if set(pairs) == {(kind, number + 1) for kind, number in right}:
        raise part.wrong("from-one", name)
    places = {pair: place for place, pair in reversed([*enumerate(pairs)])}
    for number in range(micro_batches):
        if places.get((INPUTS, number), len(pairs)) < places.get((FORWARD, number), len(pairs)):
            raise part.wrong("backward-first", name, stage=stage, number=number)
    count = sum(kind == WEIGHTS for kind, _ in pairs)
    if count < micro_batches and sorted(map(str, pairs)) == sorted(
        map(str, [*right[: 2 * micro_batches], *_list_weights(pairs)])
    ):
        raise part.wrong("not-drained", name, stage=stage, count=count, micro_batches=micro_batches)
    part.compare([Case(f"the pieces of {name}, sorted", sorted(map(str, pairs)), sorted(map(str, right)))])
    for number in range(micro_batches):
        if places[WEIGHTS, number] < places[INPUTS, number]:
            raise part.wrong("weights-first", name, stage=stage, number=number)
    return [(Piece(str(kind), stage, int(number)),) for kind, number in pairs]


def _is_pair(piece: object) -> bool:
    return isinstance(piece, Sequence) and len(piece) == 2 and isinstance(piece[0], str) and isinstance(piece[1], int)


def _list_weights(pairs: Sequence[tuple[object, object]]) -> list[tuple[object, object]]:
    return [pair for pair in pairs if pair[0] == WEIGHTS]


def _check_together(part: Part, orders: list[list[Slot]], name: str) -> None:
    """Judge the stages together: they must end, keep to the limit of micro-batches, and leave the bubble of the formula.

    Raises Verdict.
    """
    stages = len(orders)
    held, delays = [count_held(order) for order in orders], [_count_delayed(order) for order in orders]
    for times in DURATIONS:
        try:
            bubble = simulate(orders, stages, times.of).bubble
        except ValueError as error:
            waiting = str(error).partition(": ")[2].split("; ")
            raise part.wrong("deadlock", name, waiting=", ".join(waiting[:2])) from None
        right = predict_bubble_time("zb-h1", stages, times)
        fullest = max(range(stages), key=held.__getitem__)
        is_slow, is_full = bubble > right, held[fullest] > stages
        if not is_slow and not is_full:
            continue
        values = {"bubble": float(bubble), "right": float(right), "held": held[fullest], "room": stages, "stage": fullest}
        if is_slow and _count_ahead(orders[0]) < 2 <= stages:
            raise part.wrong("no-warm-up", name, **values)
        if is_slow and delays[0] > delays[-1]:
            raise part.wrong("upside-down", name)
        if is_slow and not any(delays):
            raise part.wrong("weights-at-once", name, **values)
        ahead = _count_ahead(orders[fullest])
        if ahead > stages:
            raise part.wrong("all-forward-first", name, **values, ahead=ahead)
        if is_full:
            is_last = all(slot[0].kind == WEIGHTS for slot in orders[fullest][-held[fullest] :])
            way = "weights-last" if is_last else "too-much-and-slow" if is_slow else "too-much"
            raise part.wrong(way, name, **values)
        _explain_gap(part, orders, name, values)


def _explain_gap(part: Part, orders: list[list[Slot]], name: str, values: dict[str, float | int]) -> None:
    """Raise the verdict on orders with too large a bubble. It names a stage with too few early forwards or late weights."""
    stages = len(orders)
    starts, delays = [_count_ahead(order) for order in orders], [_count_delayed(order) for order in orders]
    stage = max(range(stages), key=lambda number: stages - number - starts[number])
    if starts[stage] < stages - stage:
        raise part.wrong("warm-up-short", name, **values | {"stage": stage, "stages": stages, "ahead": starts[stage]})
    stage = max(range(stages), key=lambda number: number - delays[number])
    if delays[stage] < stage:
        raise part.wrong("too-early", name, **values | {"stage": stage, "delay": delays[stage]})
    text = (
        f"the bubble takes {values['bubble']:g}, but {values['right']:g} is possible: where does a stage wait for a gradient?"
    )
    raise Verdict("failed", "other", text, name)


def _count_delayed(order: Sequence[Slot]) -> int:
    """Return the largest number of micro-batches whose inputs are done and whose weights wait while a later forward runs."""
    count = most = 0
    for slot in order:
        kind = slot[0].kind
        count += (kind == INPUTS) - (kind == WEIGHTS)
        most = max(most, count - (kind == INPUTS))
    return most


def _count_ahead(order: Sequence[Slot]) -> int:
    """Return how many forward passes come before the first input gradient."""
    return next(place for place, slot in enumerate(order) if slot[0].kind == INPUTS)
