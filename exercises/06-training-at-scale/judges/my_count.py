"""Judge my_count.py of 6.2: bytes held, sent inside and across nodes, and offloaded, compared with a simulated step."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import Any

from gpucourse.judge import Case, Part, Verdict, Way

WAYS = {
    "once-for-all-parts": Way(
        "gradients that are divided are summed after each of the {parts} micro-batches, since a rank cannot keep whole ones "
        "until the last: you count one sum for the step",
        ("p, plan.gradient_wire, plan.micro_batches)", "p, plan.gradient_wire, 1)"),
    ),
    "sums-in-every-part": Way(
        "gradients that are whole add up on their rank, and are summed over the ranks once, before the optimizer's step: you "
        "count {parts} sums",
        ('ring("all", p, plan.gradient_wire, 1 if plan.optimizer == "all" else 2)',
         'ring("all", p, plan.gradient_wire, plan.micro_batches * (1 if plan.optimizer == "all" else 2))'),
    ),
    "gathers-once": Way(
        "whole weights that are freed are gathered again for each forward and each backward of {parts} micro-batches: you "
        "count two gathers for the step",
        ("2 * plan.micro_batches if plan.frees", "2 if plan.frees"),
    ),
    "gathers-though-kept": Way(
        "whole weights that are kept until the step are gathered once: you count gathers for each micro-batch",
        ("plan.micro_batches if plan.frees else 1)", "plan.micro_batches if plan.frees else plan.micro_batches)"),
    ),
    "share-forgotten": Way(
        "whole weights that are kept are held beside the share that the optimizer updates: you count only one of the two",
        ("(1 / among[plan.weights] + copies)", "max(1 / among[plan.weights], copies)"),
    ),
    "nothing-across": Way(
        "the copies of different nodes have seen different sequences: their gradients must be summed across nodes before the "
        "step, or the copies drift apart",
        ('    if plan.gradients == "node":\n        ring("across"',
         '    if plan.gradients == "node" and plan.optimizer == "all":\n        ring("across"'),
    ),
    "across-in-every-part": Way(
        "across nodes, gradients are summed once, before the step: until then each rank adds up the sums of its node. You "
        "count it for each of {parts} micro-batches",
        ('plan.gradient_wire, 1 if plan.optimizer == "all" else 2)\n    elif',
         'plan.gradient_wire, plan.micro_batches * (1 if plan.optimizer == "all" else 2))\n    elif'),
    ),
    "whole-across": Way(
        "across nodes you send whole tensors. The ranks of a node have already divided them: each forwards only its share",
        ('ring("across", p / per_node, plan.gradient_wire', 'ring("across", p, plan.gradient_wire'),
    ),
    "half-an-all-reduce": Way(
        "a rank whose optimizer state is as large as its gradient share needs the sum of that whole share: across nodes that "
        "is an all-reduce, twice the bytes of a reduce-scatter",
        ('plan.gradient_wire, 1 if plan.optimizer == "all" else 2)\n    elif', "plan.gradient_wire, 1)\n    elif"),
    ),
    "ring-all-across": Way(
        "a ring of all ranks passes through each node in turn: of its {ranks} links only {nodes} lead to another node, "
        "and the others stay inside. You count all of them as links between nodes",
        ('"all": 1 / per_node if nodes > 1 else 0.0}', '"all": 1.0 if nodes > 1 else 0.0}'),
    ),
    "new-weights-stay": Way(
        "after the step, a rank has new weights only for the numbers that its optimizer updates: the others are still the old "
        "ones. You do not count how they arrive",
        ('        ring(plan.optimizer, p, plan.weight_wire)\n    elif plan.weights == "node" and plan.optimizer == "all":\n'
         '        ring("across", p / per_node, plan.weight_wire)\n', "        pass\n"),
    ),
    "wire-in-memory": Way(
        "narrow numbers on the wire do not make memory smaller: the shares are stored as `weight` and `gradient` say",
        ("plan.weight * (1 / among[plan.weights] + copies) + plan.gradient /",
         "plan.weight_wire * (1 / among[plan.weights] + copies) + plan.gradient_wire /"),
    ),
    "memory-on-the-wire": Way(
        "you send numbers as they are stored; on links they have `weight_wire` and `gradient_wire` bytes",
        ("        sent = times * (size - 1) / size * numbers * width\n",
         "        width = plan.weight if width == plan.weight_wire else plan.gradient\n"
         "        sent = times * (size - 1) / size * numbers * width\n"),
    ),
    "state-still-there": Way(
        "the optimizer state of this plan is in the node's memory, and takes none of the GPU's",
        ("state = 0.0 if plan.offloads else p", "state = p"),
    ),
    "offloads-everything": Way(
        "a rank offloads only the numbers whose optimizer state it has: you move all of them",
        ("offloaded = p / among[plan.optimizer] * (", "offloaded = p * ("),
    ),
    "one-direction": Way(
        "gradients go to the node's memory, and new weights come back: you count one of the two",
        ("(plan.gradient + plan.weight) if plan.offloads", "plan.gradient if plan.offloads"),
    ),
}  # fmt: skip
KINDS = ("held", "inside", "across", "offloaded")
Call = tuple[str, float, float]


def judge(part: Part) -> None:
    """Judge plans from DDP to hybrid sharding, on one and on several nodes."""
    import zero_step

    count, cases = part.function("count"), []
    for settings in _list_plans(zero_step):
        plan = zero_step.Plan(**settings)
        name = ", ".join(f"{key} {value}" for key, value in settings.items())
        answer = part.call(count, plan, case=name)
        if not isinstance(answer, tuple) or len(answer) != len(KINDS) or not all(isinstance(item, Real) for item in answer):
            raise Verdict("failed", "shape", f"count returned {answer!r}, not Counts with four numbers", name)
        right = _count(plan)
        ways = {way: _count(plan, way) for way in WAYS}
        values = {"parts": plan.micro_batches, "ranks": plan.nodes * plan.per_node, "nodes": plan.nodes}
        cases += [
            Case(f"{kind} of {name}", float(answer[place]), right[place], {way: row[place] for way, row in ways.items()},
                 values, {key: value for key, value in settings.items() if not isinstance(value, str)})
            for place, kind in enumerate(KINDS)
        ]  # fmt: skip
    part.compare(cases)
    part.note(
        f"right for {len(cases) // len(KINDS)} plans: stages, micro-batches, copies in each node, narrow numbers, offloading"
    )


def _list_plans(zero_step: Any) -> Iterator[dict[str, Any]]:
    """Return plans, the simplest first."""
    for nodes, per_node in ((1, 4), (2, 2), (3, 8), (5, 1), (1, 1)):
        base = {"parameters": 1_000_003, "nodes": nodes, "per_node": per_node}
        for division in (*zero_step.STAGES, *_hybrids()):
            yield base | division
            yield base | division | {"micro_batches": 3}
            yield base | division | {"micro_batches": 3, "frees": False}
            yield base | division | {"micro_batches": 2, "offloads": True, "weight": 2, "gradient": 2, "state": 12}
            yield base | division | {"weight_wire": 1.125, "gradient_wire": 2}


def _hybrids() -> Iterator[dict[str, str]]:
    yield {"weights": "node", "gradients": "node", "optimizer": "node"}
    yield {"weights": "node", "gradients": "node", "optimizer": "all"}
    yield {"weights": "node", "gradients": "all", "optimizer": "all"}
    yield {"weights": "whole", "gradients": "node", "optimizer": "all"}


def _play(plan: Any, way: str) -> Iterator[Call]:
    """Yield the collectives of a step: the ring, the numbers of the whole tensor, and the bytes of a number on the wire.

    An all-reduce counts as two of them. `way` is a mistake, or empty.
    """
    p, share = plan.parameters, plan.parameters / plan.per_node
    for micro_batch in range(plan.micro_batches):
        is_first, is_last = micro_batch == 0, micro_batch == plan.micro_batches - 1
        yield from _gather(plan, way, is_first=is_first)
        if plan.gradients != "whole" and (is_last or way != "once-for-all-parts"):
            yield plan.gradients, p, plan.gradient_wire
        halves = 1 if plan.optimizer == "all" else 2
        if plan.gradients == "whole" and (is_last or way == "sums-in-every-part"):
            yield from [("all", p, plan.gradient_wire)] * halves
        if plan.gradients == "node" and (is_last or way == "across-in-every-part"):
            halves = {"half-an-all-reduce": 1, "nothing-across": 2 - halves}.get(way, halves)
            yield from [("across", p if way == "whole-across" else share, plan.gradient_wire)] * halves
    if way != "new-weights-stay" and plan.weights == "whole" and plan.optimizer != "whole":
        yield plan.optimizer, p, plan.weight_wire
    if way != "new-weights-stay" and (plan.weights, plan.optimizer) == ("node", "all"):
        yield "across", share, plan.weight_wire


def _gather(plan: Any, way: str, *, is_first: bool) -> Iterator[Call]:
    """Return the gathers of whole weights in a micro-batch."""
    is_skipped = way == "gathers-once" and not is_first if plan.frees else way != "gathers-though-kept" and not is_first
    if plan.weights != "whole" and not is_skipped:
        yield from [(plan.weights, plan.parameters, plan.weight_wire)] * (2 if plan.frees else 1)


def _count(plan: Any, way: str = "") -> list[float]:
    """Return what a rank holds and moves, from the simulated step."""
    ranks = plan.nodes * plan.per_node
    division = {"whole": 1, "node": plan.per_node, "all": ranks}
    inside = across = 0.0
    for ring, numbers, wire in _play(plan, way):
        stored = plan.weight if wire == plan.weight_wire else plan.gradient
        width = stored if way == "memory-on-the-wire" else wire
        members = {"node": plan.per_node, "across": plan.nodes, "all": ranks}[ring]
        crossing = {"node": 0, "across": members, "all": plan.nodes if plan.nodes > 1 else 0}[ring]
        if way == "ring-all-across" and ring == "all" and plan.nodes > 1:
            crossing = members
        each = (members - 1) / members * numbers * width
        across += each * crossing / members
        inside += each * (members - crossing) / members
    is_twice = plan.weights != "whole" and not plan.frees
    weight, gradient = (plan.weight_wire, plan.gradient_wire) if way == "wire-in-memory" else (plan.weight, plan.gradient)
    shares = 1 / division[plan.weights] + is_twice
    shares = max(1 / division[plan.weights], is_twice) if way == "share-forgotten" else shares
    held = weight * shares + gradient / division[plan.gradients]
    held += 0 if plan.offloads and way != "state-still-there" else plan.state / division[plan.optimizer]
    moved = 0.0 if not plan.offloads else plan.gradient if way == "one-direction" else plan.gradient + plan.weight
    numbers = plan.parameters if way == "offloads-everything" else plan.parameters / division[plan.optimizer]
    return [plan.parameters * held, inside, across, numbers * moved]
