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

    You may use these attributes of a request: name, prompt_tokens, generated_tokens, computed_tokens. It has
    prompt_tokens + generated_tokens - computed_tokens tokens to compute: a prompt, one token of an answer, or, after a
    preemption, everything again.
    `pages.grow(request, tokens)` lets it hold pages for `tokens` tokens in all; it returns False, and changes nothing, if too
    few pages are free. `pages.release(request)` frees its pages.

    The lesson has the reasons for the rule ("No phases" and "When pages run out"). Every step keeps these promises:

    - It computes at most `budget` tokens, and at most `max_requests` requests run.
    - A running request gets all tokens that it has to compute, or as many as earlier requests leave of the budget. It never
      gets fewer for lack of pages: then the last of the running requests is preempted instead, even if that is the request
      itself. After that, the step admits nothing.
    - A preempted request has no pages and nothing computed, keeps its answer, and is the next to join.
    - A waiting request gets what the running ones leave, and joins behind them. None overtakes another.
    """
    raise NotImplementedError("schedule: how many tokens does a request have to compute, whether it is new or not?")
