"""Your part of 8.3: the decision that an engine makes before every step.

You will learn    why prompts and answers need no separate phases, what a budget is for, and what preemption costs
You will produce  a scheduler by the rule of vLLM's engine V1; its plans run by a clock and on a real model
Try it            gpucourse try 8.3
Your part         the body of `schedule`; keep its name and parameters
Reading           modules/08-inference-engines/lesson-4-scheduler.md
"""

from __future__ import annotations

from paged_engine import PagePool, Request


def schedule(waiting: list[Request], running: list[Request], pages: PagePool, budget: int, max_requests: int) -> dict[str, int]:
    """Return how many tokens each request computes in the next step: {"r0007": 64}. Change the two lists as you decide.

    Of a request you may use: name, prompt_tokens, generated_tokens, computed_tokens. It has prompt_tokens + generated_tokens -
    computed_tokens tokens to compute: a prompt, one token of an answer, or, after a preemption, everything again.
    `pages.grow(request, tokens)` lets it hold pages for `tokens` tokens in all; it returns False, and changes nothing, if too
    few pages are free. `pages.release(request)` frees its pages.

    1. First the running requests, in their order. Each gets the tokens that it has to compute, as long as `budget` (the tokens
    of this step) is not used up. It needs pages for the computed and the new tokens. While they are missing, preempt
       the last running request: release its pages, set its computed_tokens to 0, and put it at the front of `waiting`. If that
       was the request itself, the plan is complete.
    2. Unless a request was preempted in this step: waiting requests join the end of `running`, in their order and counted in
    the same way, while budget, pages and `max_requests` (running requests) allow it. No request overtakes another.
    """
    raise NotImplementedError("schedule: how many tokens does a request have to compute, whether it is new or not?")
