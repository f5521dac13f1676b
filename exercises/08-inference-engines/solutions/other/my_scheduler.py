"""Solve the scheduler of 8.3 with a deque: planned requests leave it at the front, preempted ones at the end."""

from __future__ import annotations

from collections import deque

from paged_engine import PagePool, Request


def schedule(waiting: list[Request], running: list[Request], pages: PagePool, budget: int, max_requests: int) -> dict[str, int]:
    """Return the tokens of each request in the next step."""
    plan: dict[str, int] = {}
    queue = deque(running)
    victims: deque[Request] = deque()

    def place(request: Request) -> bool:
        rest = request.prompt_tokens + request.generated_tokens - request.computed_tokens
        tokens = min(rest, budget - sum(plan.values()))
        if not pages.grow(request, request.computed_tokens + tokens):
            return False
        plan[request.name] = tokens
        return True

    while queue and sum(plan.values()) < budget:
        if place(queue[0]):
            queue.popleft()
            continue
        victim = queue.pop()
        pages.release(victim)
        victim.computed_tokens = 0
        victims.appendleft(victim)
        if not queue:
            break
    if victims:
        gone = {request.name for request in victims}
        running[:] = [request for request in running if request.name not in gone]
        waiting[:0] = victims
        return plan
    while waiting and len(running) < max_requests and sum(plan.values()) < budget and place(waiting[0]):
        running.append(waiting.pop(0))
    return plan
