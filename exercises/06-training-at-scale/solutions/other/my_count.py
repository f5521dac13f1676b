"""Another solution of 6.2: two levels of division, each with its own collectives; it counts bytes in rounds of a ring."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

from zero_step import Counts, Plan

LEVEL = {"whole": 0, "node": 1, "all": 2}


def count(plan: Plan) -> Counts:
    """Return the bytes of a plan: list the collectives as (ranks of the ring, bytes of the whole tensor), then add up their
    rounds."""
    g, k = plan.per_node, plan.nodes
    weights, gradients, optimizer = LEVEL[plan.weights], LEVEL[plan.gradients], LEVEL[plan.optimizer]
    part = (1, g, g * k)
    calls: Counter[tuple[str, Fraction]] = Counter()
    weight_bytes, gradient_bytes = (
        Fraction(plan.parameters) * Fraction(size) for size in (plan.weight_wire, plan.gradient_wire)
    )
    if weights:
        calls["node" if weights == 1 else "all", weight_bytes] += 2 * plan.micro_batches if plan.frees else 1
    if gradients:
        calls["node" if gradients == 1 else "all", gradient_bytes] += plan.micro_batches
    else:
        calls["all", gradient_bytes] += 1 if optimizer else 2
    if gradients == 1:
        calls["across", gradient_bytes / g] += 1 if optimizer == 2 else 2
    if weights < optimizer:
        calls[("across", weight_bytes / g) if weights == 1 else ("all" if optimizer == 2 else "node", weight_bytes)] += 1
    inside = across = Fraction(0)
    for (ring, size), times in calls.items():
        ranks, crossing = {"node": (g, 0), "across": (k, k), "all": (g * k, k if k > 1 else 0)}[ring]
        per_link = times * (ranks - 1) * size / ranks  # over the whole collective, each link of the ring carries this
        across += per_link * crossing / ranks
        inside += per_link * (ranks - crossing) / ranks
    held = plan.weight / part[weights] + plan.gradient / part[gradients]
    held += plan.weight if weights and not plan.frees else 0
    moved = (plan.gradient + plan.weight) / part[optimizer] if plan.offloads else 0
    held += 0 if plan.offloads else plan.state / part[optimizer]
    return Counts(plan.parameters * held, float(inside), float(across), plan.parameters * moved)
