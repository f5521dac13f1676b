"""A solution of 6.2: it counts the rings among the ranks of a node, across nodes and of all ranks, and adds up their bytes."""

from __future__ import annotations

from zero_step import Counts, Plan


def count(plan: Plan) -> Counts:
    """Return the bytes of a plan, added up over the parts of a step."""
    n, per_node, nodes, p = plan.nodes * plan.per_node, plan.per_node, plan.nodes, plan.parameters
    among = {"whole": 1, "node": per_node, "all": n}
    inside = across = 0.0

    def ring(group: str, numbers: float, width: float, times: float = 1) -> None:
        """Add the bytes of an all-gather or a reduce-scatter."""
        nonlocal inside, across
        size = {"node": per_node, "across": nodes, "all": n}[group]
        sent = times * (size - 1) / size * numbers * width
        share = {"node": 0.0, "across": 1.0, "all": 1 / per_node if nodes > 1 else 0.0}[group]
        across += share * sent
        inside += (1 - share) * sent

    if plan.weights != "whole":
        ring(plan.weights, p, plan.weight_wire, 2 * plan.micro_batches if plan.frees else 1)
    if plan.gradients != "whole":
        ring(plan.gradients, p, plan.gradient_wire, plan.micro_batches)
    if plan.gradients == "node":
        ring("across", p / per_node, plan.gradient_wire, 1 if plan.optimizer == "all" else 2)
    elif plan.gradients == "whole":
        ring("all", p, plan.gradient_wire, 1 if plan.optimizer == "all" else 2)
    if plan.weights == "whole" and plan.optimizer != "whole":
        ring(plan.optimizer, p, plan.weight_wire)
    elif plan.weights == "node" and plan.optimizer == "all":
        ring("across", p / per_node, plan.weight_wire)

    copies = 1 if plan.weights != "whole" and not plan.frees else 0
    held = p * (plan.weight * (1 / among[plan.weights] + copies) + plan.gradient / among[plan.gradients])
    state = 0.0 if plan.offloads else p * plan.state / among[plan.optimizer]
    offloaded = p / among[plan.optimizer] * (plan.gradient + plan.weight) if plan.offloads else 0.0
    return Counts(held + state, inside, across, offloaded)
