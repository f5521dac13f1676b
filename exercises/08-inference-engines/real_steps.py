"""Requests on the course's engine with a small model: each step of a plan is one forward pass over pages.

Every score is compared with that of the same text alone, computed in one pass without pages and without other requests.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import engine_sim
import paged_engine
import paged_model
import small_llm
import torch

SPREAD = 0.3  # of the weights: the scores of the next tokens are then far apart
REAL = tuple(
    paged_engine.Request(f"r{number}", number * 30, prompt, answer)
    for number, (prompt, answer) in enumerate(((40, 60), (25, 70), (33, 50), (60, 40), (10, 30), (70, 25), (12, 80)))
)
REAL_PAGES = 14  # too few for all of them
REAL_SETTINGS = {"budget": 64, "max_requests": 5}


class Ticks:
    """A clock whose steps all take the same time."""

    def ns(self, _rows: Any) -> int:
        """Return how long a step takes."""
        return 60


def draw_prompts() -> dict[str, list[int]]:
    """Return the prompts of REAL."""
    source = random.Random(0)
    return {request.name: [source.randrange(256) for _ in range(request.prompt_tokens)] for request in REAL}


def run_for_real(
    schedule: paged_engine.Schedule, pool: paged_engine.PagePool, pages: int, texts: dict[str, list[int]],
    requests: Sequence[paged_engine.Request] = REAL, attend: paged_model.PagedAttention | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Answer requests with a scheduler and a pool of `pages` pages. `texts` has the prompts, and then the answers as well.

    Return the requests that got different tokens from those computed alone, the largest difference of a score, the smallest gap
    between the best two scores, and how often requests were preempted and tokens computed again.
    """
    model = small_llm.SmallModel(spread=SPREAD)
    runner = paged_model.Runner(paged_model.PagedModel(model, pages, pool.page_size, attend), pool, texts)
    wrong, computed, off, gap = set[str](), 0, 0.0, float("inf")

    def choose(name: str, scores: torch.Tensor) -> int:
        nonlocal off, gap
        alone = small_llm.score_alone(model, texts[name])
        off = max(off, float((scores - alone).abs().nan_to_num(float("inf")).max()))
        best, second = alone.topk(2).values.tolist()
        gap = min(gap, best - second)
        if int(scores.argmax()) != int(alone.argmax()):
            wrong.add(name)
        return int(scores.argmax())

    def observe(step: paged_engine.Step) -> None:
        nonlocal computed
        computed += sum(step.plan.values())
        runner.compute(step, choose)

    run = engine_sim.simulate(requests, schedule, Ticks(), pages=pages, pool=pool, **REAL_SETTINGS, observe=observe)
    return {
        "tokens_off": len(wrong), "logits_off": off, "smallest_gap": gap, "computed_tokens": computed,
        "real_preempted": sum(request.preemptions for request in run.requests),
        "real_again": sum(request.recomputed_tokens for request in run.requests),
    }  # fmt: skip
