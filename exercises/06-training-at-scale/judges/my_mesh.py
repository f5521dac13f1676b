"""Judge my_mesh.py of 6.3: places, groups and bytes between nodes, for several meshes, orders and node sizes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

from gpucourse.judge import Case, Part, Way

NAMES = ("dp", "pp", "tp")
Sizes = dict[str, int]
MESHES = (  # dp, pp, tp; the order of the dimensions; ranks of a node
    ((2, 2, 2), ("dp", "pp", "tp"), 4),
    ((2, 2, 2), ("tp", "pp", "dp"), 4),
    ((3, 2, 4), ("pp", "dp", "tp"), 8),
    ((2, 4, 3), ("tp", "dp", "pp"), 6),
    ((4, 3, 2), ("dp", "tp", "pp"), 4),
    ((1, 4, 2), ("pp", "tp", "dp"), 2),
    ((6, 1, 1), ("dp", "pp", "tp"), 2),
    ((3, 2, 2), ("dp", "pp", "tp"), 8),  # the last node is not full
    ((1, 1, 1), ("dp", "pp", "tp"), 1),
)
WAYS = {
    "fastest-first": Way(
        "rank {rank} is at {given}: you let the first dimension of `order` vary fastest. The last one goes up by 1 from "
        "one rank to the next",
        ("for name in reversed(order)", "for name in order"),
    ),
    "order-ignored": Way(
        "rank {rank} is at {given}, whatever `order` says: count in the given order",
        ("for name in reversed(order)", 'for name in ("tp", "pp", "dp")'),
    ),
    "no-wrap": Way(
        "rank {rank} is at {given}: a coordinate exceeds its size. After its last value a dimension begins at 0 again",
        (
            "    return place\n\n\ndef groups",
            '    place[order[1]] += sizes[order[1]] * place[order[0]]\n    return place\n\n\ndef groups',
        ),
    ),
    "same-coordinate": Way(
        "your {dimension} groups hold the ranks with the same {dimension} coordinate. It is the other way round: in a group "
        "the other two coordinates are equal, and {dimension} is what differs",
        ("for name in order if name != dimension", "for name in order if name == dimension"),
    ),
    "neighbours": Way(
        "your {dimension} groups are consecutive ranks. That is right only for the fastest dimension: the others go by "
        "larger steps",
        (
            "    return list(by_rest.values())",
            "    ranks, size = sum(by_rest.values(), []), sizes[dimension]\n"
            "    return [sorted(ranks)[at : at + size] for at in range(0, len(ranks), size)]",
        ),
    ),
    "no-ranks": Way(
        "your first group is {given}, but a group is a list of rank numbers, such as {right}",
        ("append(rank)", "append(place)"),
    ),
    "first-group": Way(
        "you returned only {count} of {all} {dimension} groups: every rank is in one",
        ("    return list(by_rest.values())", "    return list(by_rest.values())[:1]"),
    ),
    "inside-counted": Way(
        "you counted {given} bytes, but {right} cross: messages between ranks of one node stay inside it",
        ("                if rank // ranks_per_node != following // ranks_per_node:\n                    total",
         "                if rank != following:\n                    total"),
    ),
    "stages-inside": Way(
        "you counted {given} bytes, but {right} cross: what a stage sends to the next one on its own node stays inside it",
        (
            "            if rank // ranks_per_node != following // ranks_per_node:\n                total += 2 * message_bytes",
            "            if rank != following:\n                total += 2 * message_bytes",
        ),
    ),
    "all-counted": Way(
        "you counted {given} bytes, but {right} cross: only a message whose two ends are on different nodes does",
        ("    total = 0.0\n", "    total, ranks_per_node = 0.0, 1\n"),
    ),
    "evenly-over-nodes": Way(
        "you counted {given} bytes, but {right} cross: the ranks are not spread evenly over the nodes. The first node is "
        "filled with ranks_per_node ranks, then the second, and the last may hold fewer",
        (
            "    total = 0.0\n",
            "    total, world = 0.0, prod(sizes.values())\n    ranks_per_node = world / -(-world // ranks_per_node)\n",
        ),
    ),
    "one-group": Way(
        "you counted {given} bytes, but {right} cross: each dimension has several groups, and all of them communicate",
        ("        for group in groups(dimension, sizes, order):", "        for group in groups(dimension, sizes, order)[:1]:"),
    ),
    "no-ring": Way(
        "you counted {given} bytes, but {right} cross: in an all_reduce of b bytes a rank sends 2 (n - 1) / n of "
        "them, once round with parts of the sum and once round with the sum",
        ("2 * (n - 1) / n * message_bytes", "message_bytes"),
    ),
    "not-divided": Way(
        "you counted {given} bytes, but {right} cross: in each of the 2 (n - 1) steps of an all_reduce a rank sends one n-th "
        "of the bytes, not all of them",
        ("2 * (n - 1) / n * message_bytes", "2 * (n - 1) * message_bytes"),
    ),
    "half-a-ring": Way(
        "you counted {given} bytes, but {right} cross: (n - 1) / n of the bytes is one way round the ring, and an "
        "all_reduce goes round twice",
        ("2 * (n - 1) / n * message_bytes", "(n - 1) / n * message_bytes"),
    ),
    "ring-open": Way(
        "you counted {given} bytes, but {right} cross: the last rank of a ring sends to the first one",
        ("zip(group, group[1:] + group[:1], strict=True)", "itertools.pairwise(group)"),
    ),
    "ring-of-two": Way(
        "you counted {given} bytes, but {right} cross: in a ring of two ranks there are two messages in each step, one in each "
        "direction, as in any other ring",
        (
            "            for rank, following in zip(group, group[1:] + group[:1], strict=True):\n",
            "            for rank, following in zip(group[: n - (n == 2)], group[1:] + group[:1]):\n",
        ),
    ),
    "forward-only": Way(
        "you counted {given} bytes, but {right} cross: activations cross each boundary between two stages, and as many "
        "gradients come back",
        ("total += 2 * message_bytes[\"pp\"]", "total += message_bytes[\"pp\"]"),
    ),
    "pipeline-closed": Way(
        "you counted {given} bytes, but {right} cross: the last stage of a pipeline sends nothing to the first",
        ("in itertools.pairwise(group):", "in zip(group, group[1:] + group[:1], strict=True):"),
    ),
    "first-stage": Way(
        "you counted {given} bytes, but {right} cross: stages differ in what they send, and you took the first "
        "stage's for all",
        ("message_bytes[dimension][stage]", "message_bytes[dimension][0]"),
    ),
    "tp-spread": Way(
        "ORDER lets {fastest} vary fastest, so that the slices of a layer are apart, and soon on different nodes. They "
        "exchange activations 4 times per layer and micro-batch: tp must vary fastest",
        ('ORDER = ("pp", "dp", "tp")', 'ORDER = ("tp", "pp", "dp")'),
    ),
    "not-an-order": Way(
        "ORDER is {given}: it must hold each of dp, pp and tp once",
        ('ORDER = ("pp", "dp", "tp")', 'ORDER = ("pp", "tp")'),
    ),
}  # fmt: skip


def judge(part: Part) -> None:
    """Judge the three functions one after the other, then the chosen order."""
    functions = {name: part.function(name) for name in ("coordinates", "groups", "cross_node_bytes")}
    _judge_places(part, functions["coordinates"])
    for numbers, order, _ in MESHES:
        for dimension in NAMES:
            _judge_groups(part, functions["groups"], dimension, dict(zip(NAMES, numbers, strict=True)), order)
    _judge_bytes(part, functions["cross_node_bytes"])
    _judge_order(part)
    part.note(f"right for {len(MESHES)} meshes in all orders of their dimensions")


def _judge_places(part: Part, coordinates: Any) -> None:
    cases = []
    for numbers, order, _ in MESHES:
        sizes = dict(zip(NAMES, numbers, strict=True))
        for rank in range(math.prod(numbers)):
            case = f"rank {rank} of {_name(sizes)} in the order {', '.join(order)}"
            answer = part.call(coordinates, rank, dict(sizes), tuple(order), case=case)
            if _is_place(answer) and any(answer[name] >= sizes[name] for name in NAMES):
                raise part.wrong("no-wrap", case, rank=rank, given=answer)
            ignored = {("order-ignored", fixed): _place(rank, sizes, fixed) for fixed in itertools.permutations(NAMES)}
            ways = {"fastest-first": _place(rank, sizes, order[::-1]), **ignored}
            knobs = {**sizes, "order": order, "rank": rank}
            cases.append(Case(case, answer, _place(rank, sizes, order), ways, {"rank": rank}, knobs))
    part.compare(cases)


def _judge_groups(part: Part, groups: Any, dimension: str, sizes: Sizes, order: Sequence[str]) -> None:
    case = f"the {dimension} groups of {_name(sizes)} in the order {', '.join(order)}"
    answer = part.call(groups, dimension, dict(sizes), tuple(order), case=case)
    right, ranks = _groups(dimension, sizes, order), range(math.prod(sizes.values()))
    if not isinstance(answer, Sequence) or not all(isinstance(group, Sequence) for group in answer):
        part.compare([Case(case, answer, right)])
    if not all(isinstance(rank, Integral) for group in answer for rank in group):
        raise part.wrong("no-ranks", case, given=str(answer[0])[:80], right=right[0])
    sorted_answer = sorted([int(rank) for rank in group] for group in answer)
    if (
        sorted_answer != right
        and sorted_answer
        and all(group in right for group in sorted_answer)
        and len(sorted_answer) < len(right)
    ):
        raise part.wrong("first-group", case, count=len(sorted_answer), all=len(right), dimension=dimension)
    size = sizes[dimension]
    same = [[rank for rank in ranks if _place(rank, sizes, order)[dimension] == at] for at in range(size)]
    ways = {"same-coordinate": same, "neighbours": [list(ranks[at : at + size]) for at in ranks[::size]]}
    part.compare([Case(case, sorted_answer, right, ways, {"dimension": dimension})])


def _judge_bytes(part: Part, cross_node_bytes: Any) -> None:
    cases = []
    for numbers, order, ranks_per_node in MESHES:
        sizes = dict(zip(NAMES, numbers, strict=True))
        first = 1000 if ranks_per_node == 8 else 840  # three ranks do not divide 1,000 bytes
        load: dict[str, Any] = {"pp": 330, "dp": [first + 600 * stage for stage in range(sizes["pp"])]}
        load["tp"] = [1320 - 240 * stage for stage in range(sizes["pp"])]
        case = f"{_name(sizes)} in the order {', '.join(order)}, {ranks_per_node} ranks per node"
        load_copy = {kind: list(value) if isinstance(value, list) else value for kind, value in load.items()}
        answer = part.call(cross_node_bytes, dict(sizes), tuple(order), ranks_per_node, load_copy, case=case)
        flat = {kind: [load[kind][0]] * sizes["pp"] for kind in ("dp", "tp")}
        mesh, world = (sizes, order, ranks_per_node), math.prod(numbers)
        evenly = (sizes, order, world / -(-world // ranks_per_node))
        ways = {
            "inside-counted": _bytes(*mesh, load, inside=("dp", "tp")), "stages-inside": _bytes(*mesh, load, inside=("pp",)),
            "all-counted": _bytes(*mesh, load, inside=NAMES), "no-ring": _bytes(*mesh, load, factor=lambda _: 1),
            "not-divided": _bytes(*mesh, load, factor=lambda n: 2 * (n - 1)),
            "half-a-ring": _bytes(*mesh, load, factor=lambda n: (n - 1) / n), "ring-open": _bytes(*mesh, load, closed=()),
            "ring-of-two": _bytes(*mesh, load, pairs_once=True),
            "forward-only": _bytes(*mesh, {**load, "pp": load["pp"] / 2}), "first-stage": _bytes(*mesh, {**load, **flat}),
            "pipeline-closed": _bytes(*mesh, load, closed=NAMES),
            "evenly-over-nodes": _bytes(*evenly, load), "one-group": _bytes(*mesh, load, most=1),
        }  # fmt: skip
        knobs = {**sizes, "order": order, "ranks per node": ranks_per_node}
        cases.append(Case(case, answer, _bytes(*mesh, load), ways, knobs=knobs))
    part.compare(cases)


def _judge_order(part: Part) -> None:
    order = getattr(part.module, "ORDER", None)
    if not isinstance(order, Sequence) or sorted(map(str, order)) != sorted(NAMES):
        raise part.wrong("not-an-order", "ORDER", given=order)
    if order[-1] != "tp":
        raise part.wrong("tp-spread", "ORDER", fastest=order[-1])


def _name(sizes: Sizes) -> str:
    return " x ".join(f"{name} {sizes[name]}" for name in NAMES)


def _is_place(answer: Any) -> bool:
    return isinstance(answer, dict) and answer.keys() == set(NAMES) and all(isinstance(at, int) for at in answer.values())


def _place(rank: int, sizes: Sizes, order: Sequence[str]) -> Sizes:
    """Return the coordinates of a rank, looked up in the list of all places."""
    places = list(itertools.product(*(range(sizes[name]) for name in order)))
    at = dict(zip(order, places[rank], strict=True))
    return {name: at[name] for name in NAMES}


def _groups(dimension: str, sizes: Sizes, order: Sequence[str]) -> list[list[int]]:
    """Return the groups, in the order of their first ranks."""
    rank_at = {tuple(_place(rank, sizes, order).values()): rank for rank in range(math.prod(sizes.values()))}
    groups: dict[tuple[int, ...], list[int]] = {}
    for place in sorted(rank_at):
        coordinates = tuple(at for name, at in zip(NAMES, place, strict=True) if name != dimension)
        groups.setdefault(coordinates, []).append(rank_at[place])
    return sorted(groups.values())


def _count_ring_passes(ranks: int) -> float:
    return 2 * (ranks - 1) / ranks


def _bytes(
    sizes: Sizes,
    order: Sequence[str],
    ranks_per_node: float,
    message_bytes: dict[str, Any],
    *,
    factor: Callable[[int], float] = _count_ring_passes,
    inside: Sequence[str] = (),
    closed: Sequence[str] = ("dp", "tp"),
    most: int | None = None,
    pairs_once: bool = False,
) -> float:
    """Return the bytes that cross between nodes if each all_reduce of n ranks sends `factor(n)` times its bytes.

    Other values of the options describe mistakes. `inside`: dimensions whose messages inside a node count, too. `closed`:
    dimensions whose groups are closed rings. `most`: how many groups of a dimension count. `pairs_once`: a ring of two ranks
    sends in one direction only.
    """
    total = 0.0
    for name in NAMES:
        for group in _groups(name, sizes, order)[: most if name in closed else None]:
            open_ring = name not in closed or (pairs_once and len(group) == 2)
            following = group[1:] if open_ring else [*group[1:], *group[:1]]
            for rank, next_rank in zip(group, following, strict=False):
                if name not in inside and rank // ranks_per_node == next_rank // ranks_per_node:
                    continue
                stage = _place(rank, sizes, order)["pp"]
                total += 2 * message_bytes["pp"] if name == "pp" else factor(len(group)) * message_bytes[name][stage]
    return total
