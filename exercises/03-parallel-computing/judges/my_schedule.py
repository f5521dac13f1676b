"""Judge my_schedule.py of 3.6: replay the orders of all stages together, with one processor for each stage."""

from __future__ import annotations

from collections.abc import Sequence

from gpucourse.judge import Case, Part, Way

Piece = tuple[str, int]
FORWARD, BACKWARD = "forward", "backward"
SECONDS = {FORWARD: 1.0, BACKWARD: 2.0}  # a backward takes about twice as long
WAYS = {
    "one-rank-at-a-time": Way(
        "stage {stage} runs each micro-batch backward before it starts the next one. So the stages take turns, as without "
        "micro-batches, and the bubble is {bubble:.0%}, but {right:.0%} is possible. Run some forward first",
        ("warm_up = min(stages - stage - 1, micro_batches)", "warm_up = 0"),
    ),
    "gpipe": Way(
        "this is GPipe: all micro-batches go forward before the first comes back. Its bubble is right, but stage {stage} holds "
        "the activations of {held}, although {room} are enough: this memory is what 1F1B saves",
        ("warm_up = min(stages - stage - 1, micro_batches)", "warm_up = micro_batches"),
    ),
    "too-many": Way(
        "stage {stage} of {stages} holds {held} micro-batches, but {room} are allowed: it warms up with too many. When it "
        "has sent one for each later stage, the first is already on its way back",
        ("stages - stage - 1", "stages - stage"),
    ),
    "too-few": Way(
        "the bubble is {bubble:.0%}, but {right:.0%} is possible: stage {stage} holds at most {held}, although it may hold "
        "{room}, and waits for the first to come back. It needs one for each later stage, and the one that it is working on",
        ("min(stages - stage - 1, micro_batches)", "min(max(stages - stage - 2, 0), micro_batches)"),
    ),
    "upside-down": Way(
        "you counted the stages from the wrong end: the first stage waits longest for its first micro-batch to come back, so "
        "it warms up with the most, and the last with none",
        ("stages - stage - 1", "stage"),
    ),
    "backward-first": Way(
        "stage {stage} runs micro-batch {number} backward before it ran forward there: no gradient can be computed yet",
        (
            '        order.append(("forward", warm_up + number))\n        order.append(("backward", number))\n',
            '        order.append(("backward", number))\n        order.append(("forward", warm_up + number))\n',
        ),
    ),
    "deadlock": Way(
        "the stages wait for each other for ever: {waiting}. A stage must send a micro-batch back before it waits for the "
        "next one, if the previous stage sends the next one only after that",
        ("stages - stage - 1", "(stages - 1) * (stage % 2)"),
    ),
    "out-of-order": Way(
        "stage {stage} sends its micro-batches back in a different order from that in which they arrived: its neighbour waits "
        "for the oldest, and the bubble is {bubble:.0%}, but {right:.0%} is possible",
        (
            '("backward", number) for number in range(micro_batches - warm_up, micro_batches)',
            '("backward", number) for number in reversed(range(micro_batches - warm_up, micro_batches))',
        ),
    ),
    "not-drained": Way(
        "stage {stage} has {count} backward passes for {micro_batches} micro-batches: those that ran forward in the warm-up "
        "must run backward, too, after the last forward",
        (
            "    order.extend((\"backward\", number) for number in range(micro_batches - warm_up, micro_batches))\n",
            "",
        ),
    ),
    "warm-up-too-long": Way(
        "stage {stage} of {stages} starts micro-batch {number}, but there are only {micro_batches}, numbered from 0. How long "
        "is the warm-up of a stage that has more later stages than there are micro-batches?",
        ("min(stages - stage - 1, micro_batches)", "stages - stage - 1"),
    ),
    "from-one": Way(
        "you numbered the micro-batches from 1: they are numbered from 0",
        ("    return order", "    return [(kind, number + 1) for kind, number in order]"),
    ),
}  # fmt: skip
PIPELINES = ((4, 8), (3, 5), (2, 4), (1, 3), (2, 1), (4, 4), (5, 11), (4, 2))  # stages, micro-batches


def judge(part: Part) -> None:
    """Judge pipelines of several lengths, with more and with fewer micro-batches than stages."""
    order_of_stage = part.function("order_of_stage")
    for stages, micro_batches in PIPELINES:
        orders = []
        for stage in range(stages):
            name = f"stage {stage} of {stages}, {micro_batches} micro-batches"
            order = part.call(order_of_stage, stage, stages, micro_batches, case=name)
            orders.append(_check_pieces(part, order, stage, stages, micro_batches, name))
        _check_together(part, orders, micro_batches, f"{stages} stages, {micro_batches} micro-batches")
    part.note(f"right for {len(PIPELINES)} pipelines; 4 stages and 8 micro-batches leave a bubble of {3 / 11:.0%}")


def _check_pieces(part: Part, order: object, stage: int, stages: int, micro_batches: int, name: str) -> list[Piece]:
    """Return the order as a list of pairs. Raises Verdict unless it contains each forward and each backward once."""
    right = [(kind, number) for kind in SECONDS for number in range(micro_batches)]
    listed = isinstance(order, Sequence) and all(isinstance(piece, Sequence) and len(piece) == 2 for piece in order)
    if order is None or not listed:
        part.compare([Case(name, order, 'a list of pairs such as ("forward", 0)')])
    pieces = [(kind, number) for kind, number in order]  # type: ignore[attr-defined]
    if set(pieces) == {(kind, number + 1) for kind, number in right}:
        raise part.wrong("from-one", name)
    beyond = [number for kind, number in pieces if kind == FORWARD and isinstance(number, int) and number >= micro_batches]
    if beyond and micro_batches < stages - stage - 1:
        raise part.wrong("warm-up-too-long", name, stage=stage, stages=stages, number=beyond[0], micro_batches=micro_batches)
    back = sum(kind == BACKWARD for kind, _ in pieces)
    if back < micro_batches == len(pieces) - back:
        raise part.wrong("not-drained", name, stage=stage, count=back, micro_batches=micro_batches)
    part.compare([Case(f"the pieces of {name}, sorted", sorted(map(str, pieces)), sorted(map(str, right)))])
    for at, (kind, number) in enumerate(pieces):
        if kind == BACKWARD and (FORWARD, number) not in pieces[:at]:
            raise part.wrong("backward-first", name, stage=stage, number=number)
    return pieces


def _check_together(part: Part, orders: list[list[Piece]], micro_batches: int, name: str) -> None:
    """Judge the stages together: they must end, keep to the limit of micro-batches, and have the bubble of the formula. Raises
    Verdict."""
    stages = len(orders)
    in_flight, most = [_count_held(order) for order in orders], [min(stages - stage, micro_batches) for stage in range(stages)]
    over = [stage for stage in range(stages) if in_flight[stage] > stages - stage]
    if over and in_flight == most[::-1]:
        raise part.wrong("upside-down", name)
    seconds, stuck = _replay(orders)
    if stuck:
        raise part.wrong("deadlock", name, waiting=", ".join(stuck[:2]))
    if over:
        stage = over[-1]
        way = "gpipe" if in_flight[stage] == micro_batches > stages - stage + 1 else "too-many"
        raise part.wrong(way, name, stage=stage, stages=stages, held=in_flight[stage], room=stages - stage)
    share = 1 - micro_batches * sum(SECONDS.values()) / seconds
    right = (stages - 1) / (micro_batches + stages - 1)
    if share > right + 1e-9:
        stage = next((number for number in range(stages) if in_flight[number] < most[number]), 0)
        mixed = [number for number, order in enumerate(orders) if _is_mixed(order)]
        way = "out-of-order" if mixed else "one-rank-at-a-time" if max(in_flight) == 1 else "too-few"
        stage = mixed[0] if mixed else stage
        raise part.wrong(way, name, stage=stage, bubble=share, right=right, held=in_flight[stage], room=most[stage])


def _replay(orders: list[list[Piece]]) -> tuple[float, list[str]]:
    """Return when the last stage is done, with a separate processor for each stage. Also return the places where stages are
    stuck for ever."""
    end_times: dict[tuple[int, str, int], float] = {}
    free, at = [0.0] * len(orders), [0] * len(orders)
    moved = True
    while moved:
        moved = False
        for stage, order in enumerate(orders):
            while at[stage] < len(order):
                kind, number = order[at[stage]]
                source = stage - 1 if kind == FORWARD else stage + 1
                if 0 <= source < len(orders) and (source, kind, number) not in end_times:
                    break
                free[stage] = max(free[stage], end_times.get((source, kind, number), 0.0)) + SECONDS[kind]
                end_times[stage, kind, number] = free[stage]
                at[stage] += 1
                moved = True
    stuck = [f"stage {stage} at {' '.join(map(str, order[place]))}" for stage, (order, place)
             in enumerate(zip(orders, at, strict=True)) if place < len(order)]  # fmt: skip
    return max(free), stuck


def _is_mixed(order: list[Piece]) -> bool:
    back = [number for kind, number in order if kind == BACKWARD]
    return back != [number for kind, number in order if kind == FORWARD]


def _count_held(order: list[Piece]) -> int:
    """Return the largest number of micro-batches that a stage holds at the same time."""
    count = most = 0
    for kind, _ in order:
        count += 1 if kind == FORWARD else -1
        most = max(most, count)
    return most
