"""Your part of 6.2: what a rank holds and moves under a plan that no table lists.

You will learn    to derive memory and traffic from what a step does, instead of from a formula
You will produce  one function, which agrees to the byte with what the ranks of your run hold and send under nine plans
Try it            gpucourse try 6.2
Your part         the body of `count`; keep its name and parameter, and add functions as you like
Reading           modules/06-training-at-scale/lesson-4-counting.md, "Plans between the stages"
"""

from __future__ import annotations

from zero_step import Counts, Plan


def count(plan: Plan) -> Counts:
    """Return the bytes that one rank holds, sends inside its node, sends across nodes, and offloads, in one step of the plan.

    `Plan` and `Counts` in zero_step.py say what each number means, and what a step does. Do not round. A ring of one rank sends
    nothing, and with one node nothing crosses.
    """
    raise NotImplementedError("count: how often is each collective called, among which ranks, and with how many bytes?")
