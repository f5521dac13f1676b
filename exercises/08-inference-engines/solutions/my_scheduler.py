"""Solve the scheduler of 8.3 rule by rule, with an index into the list of running requests."""

from __future__ import annotations

from paged_engine import PagePool, Request


def schedule(waiting: list[Request], running: list[Request], pages: PagePool, budget: int, max_requests: int) -> dict[str, int]:
    """Return the tokens of each request in the next step."""
    plan: dict[str, int] = {}
    preempted, place = False, 0
    while place < len(running) and budget > 0:
        request = running[place]
        tokens = min(request.prompt_tokens + request.generated_tokens - request.computed_tokens, budget)
        while not pages.grow(request, request.computed_tokens + tokens):
            victim = running.pop()
            pages.release(victim)
            victim.computed_tokens = 0
            waiting.insert(0, victim)
            preempted = True
            if victim is request:
                return plan
        plan[request.name] = tokens
        budget -= tokens
        place += 1
    while waiting and budget > 0 and len(running) < max_requests and not preempted:
        request = waiting[0]
        tokens = min(request.prompt_tokens + request.generated_tokens - request.computed_tokens, budget)
        if not pages.grow(request, request.computed_tokens + tokens):
            break
        running.append(waiting.pop(0))
        plan[request.name] = tokens
        budget -= tokens
    return plan
