"""Use the learner's my_costs.py in the run of 8.1, on the steps that the run has counted.

You will learn    how your costs compare with what the run has counted
You will produce  nothing directly: token_costs.py uses it for the columns `yours`
Run it            python token_costs.py
Your part         my_costs.py
Reading           modules/08-inference-engines/lesson-2-costs.md
"""

from __future__ import annotations

from typing import Any

from cards import Card

Step = tuple[dict[str, Any], list[tuple[int, int]], float]


def compute_yours(
    _world: None, steps: list[Step], caches: list[tuple[dict[str, Any], int, float]], experts: list[tuple[int, int, int]]
) -> dict[str, Any]:
    """Return the learner's costs: {operations, read, held} of each step, the bytes of each cache, the experts of each batch.

    A step has the fields of its card, its rows (past, new), and the bytes of a number. A cache has a card, the tokens, and the
    bytes of a number.
    """
    import my_costs  # the learner's file, which may raise or hang: `own_part` limits its time

    results = []
    for fields, rows, size in steps:
        card, pairs = Card(**fields), [(past, new) for past, new in rows]
        held = [float(my_costs.cache_bytes(card, past + new, size)) for past, new in pairs]
        costs = {"operations": my_costs.operations(card, list(pairs)), "read": my_costs.bytes_read(card, list(pairs), size)}
        results.append({"held": sum(held), **{name: float(cost) for name, cost in costs.items()}})
    return {
        "steps": results,
        "caches": [float(my_costs.cache_bytes(Card(**fields), tokens, size)) for fields, tokens, size in caches],
        "experts": [float(my_costs.experts_touched(*case)) for case in experts],
    }
