"""Solve the router of 8.8 by the sum of two shares: of the prompt that an engine lacks, and of the largest load."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def choose(request: Any, engines: Sequence[Any]) -> int:
    """Return the place of the engine with the lowest sum, the first of several."""
    busiest = max(engine.load_tokens() for engine in engines) + 1
    scores = []
    for engine in engines:
        missing = 1 - engine.count_found(request) / request.prompt_tokens
        scores.append(missing + engine.load_tokens() / busiest)
    return scores.index(min(scores))
