"""Two schedulers of earlier engines: whole batches, and prompts before everything else.

Neither knows how long an answer will be, so both reserve pages for the longest one that is allowed, and never take pages back.
"""

from __future__ import annotations

from engine_sim import PagePool, Request

LONGEST_ANSWER = 512
STATIC_BATCH = 16


def static(waiting: list[Request], running: list[Request], pages: PagePool, budget: int, max_requests: int) -> dict[str, int]:
    """Begin a batch when all answers of the last batch are complete. Its first step has whole prompts, whatever the budget."""
    del budget
    if not running:
        while waiting and len(running) < min(max_requests, STATIC_BATCH) and _reserve(waiting[0], pages):
            running.append(waiting.pop(0))
    return {request.name: _count_rest(request) for request in running}


def prompts_first(
    waiting: list[Request], running: list[Request], pages: PagePool, budget: int, max_requests: int
) -> dict[str, int]:
    """Compute whole prompts as soon as requests may join; other answers continue in the steps without a prompt.

    A prompt longer than `budget` has a step of its own.
    """
    plan: dict[str, int] = {}
    while waiting and len(running) < max_requests:
        tokens = _count_rest(waiting[0])
        if (plan and sum(plan.values()) + tokens > budget) or not _reserve(waiting[0], pages):
            break
        running.append(waiting.pop(0))
        plan[running[-1].name] = tokens
    return plan or {request.name: 1 for request in running}


def _reserve(request: Request, pages: PagePool) -> bool:
    return pages.grow(request, request.prompt_tokens + LONGEST_ANSWER)


def _count_rest(request: Request) -> int:
    return request.prompt_tokens + request.generated_tokens - request.computed_tokens
