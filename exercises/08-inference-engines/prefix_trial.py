"""The learner's prefix cache in the run of 8.4: for the requests of applications, and for a real model in pages.

You will learn    which operations of a prefix cache an engine needs
You will produce  nothing directly: prefix_cache.py uses it for the rows `yours`
Run it            python prefix_cache.py
Your part         my_prefix.py
Reading           modules/08-inference-engines/lesson-5-prefixes.md
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import prefixes
import torch
from paged_engine import PrefixPool, prompts_first
from paged_engine import Request as Queued
from paged_model import PagedModel, make_row
from prefixes import Request
from real_steps import SPREAD, run_for_real
from small_llm import SmallModel, score_alone

MODEL_PAGES, MODEL_SIZE = 64, 16


def use_yours(
    _world: None,
    memory: list[int],
    size: int,
    count: int,
    applications: int,
    tenants: int,
    puzzle: int,
    system: int,
    turns: int,
) -> dict[str, Any]:
    """Use the learner's cache. Return the results: `runs` for requests, `talk` for a conversation, and those of a real model.

    `runs` has for each number of pages {found, false_hits, lost}: the tokens found for each request, the number of pages with
    another text, and the number of pages that are not free at the end. `logits_off` is the largest difference of a score when
    a model computes with found pages.
    """
    torch.set_num_threads(1)
    requests = prefixes.make_requests(count, applications, tenants=tenants, puzzle=puzzle)
    talk = prefixes.make_conversation(system, turns, puzzle)
    return {
        "runs": [replay(requests, pages, size) for pages in memory],
        "talk": replay(talk, 2 * sum(len(request.prompt) + len(request.answer) for request in talk) // size + turns, size),
        **compute_with_found_pages(),
    }


def replay(requests: Sequence[Request], pages: int, size: int) -> dict[str, Any]:
    """Return `found`, `false_hits` and `lost` of the learner's cache for these requests. Two requests run at a time."""
    import my_prefix  # the learner's file, which may raise or hang: `own_part` limits its time

    cache = my_prefix.PrefixCache(pages, size)
    memory: list[tuple[str, list[int]] | None] = [None] * pages
    counts, false_hits, running = [], 0, None
    for request in requests:
        tokens = cache.start(request.name, list(request.prompt), request.tenant)
        if tokens is None:
            raise ValueError(f"start({request.name}) finds no room in {pages} pages, of which {cache.count_free()} are free")
        table = list(cache.pages(request.name))
        for number, page in enumerate(table[: int(tokens) // size]):
            false_hits += memory[page] != (request.tenant, request.prompt[: (number + 1) * size])
        counts.append(int(tokens))
        cache.computed(request.name, list(request.prompt))
        if not cache.grow(request.name, len(request.prompt) + len(request.answer)):
            raise ValueError(f"grow({request.name}) finds no room in {pages} pages, of which {cache.count_free()} are free")
        text = request.prompt + request.answer
        cache.computed(request.name, list(text))
        for number, page in enumerate(cache.pages(request.name)):
            memory[page] = (request.tenant, text[: (number + 1) * size])
        if running:
            cache.end(running)
        running = request.name
    cache.end(running)
    return {"found": counts, "false_hits": false_hits, "lost": int(pages - cache.count_free())}


def make_texts() -> list[list[int]]:
    """Return prompts that share pages in several ways: a beginning, a page after another beginning, pages in another order."""
    chance = random.Random(0)
    a, b, c, d = ([chance.randrange(256) for _ in range(MODEL_SIZE)] for _ in range(4))
    return [a + b + [1], c + d + [2], a + d + [3], d + a + b + [4], a + b + c + [5], a + b + [1]]


def compute_with_found_pages() -> dict[str, float]:
    """Return the error of the scores of an engine that reads found pages, and how many tokens it computed."""
    import my_prefix

    texts = {f"text{number}": text for number, text in enumerate(make_texts())}
    pool = PrefixPool(my_prefix.PrefixCache(MODEL_PAGES, MODEL_SIZE), MODEL_SIZE, texts)
    requests = [
        Queued(name, 1000 * number, len(text), 1, max_answer_tokens=1) for number, (name, text) in enumerate(texts.items())
    ]
    return run_for_real(prompts_first, pool, MODEL_PAGES, texts, requests)


def measure_false_hit() -> float:
    """Return the error of the scores if the second page of a text was computed after a different first page."""
    model, texts = SmallModel(spread=SPREAD), make_texts()
    paged = PagedModel(model, MODEL_PAGES, MODEL_SIZE)
    for text, table in zip(texts, ([0, 1, 2], [3, 4, 5]), strict=False):
        paged.compute([make_row(text, 0, len(text), table, MODEL_SIZE)])
    scores = paged.compute([make_row(texts[2], 2 * MODEL_SIZE, len(texts[2]), [0, 4, 6], MODEL_SIZE)])[0]
    return float((scores - score_alone(model, texts[2])).abs().max())
