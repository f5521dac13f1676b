"""Your part of 8.8: a router, which decides for each request which engine answers it.

You will learn    why a router that looks only at caches fails, and one that looks only at loads wastes half of its GPUs
You will produce  a router that keeps more requests within their limits than five simpler ones
Try it            gpucourse try 8.8
Your part         the body of `choose`; keep its name and parameters
Reading           modules/08-inference-engines/lesson-9-service.md
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def choose(request: Any, engines: Sequence[Any]) -> int:
    """Return the place in `engines` of the engine that answers `request`.

    `request.prompt_tokens` is the length of its prompt. The length of its answer is not known yet. For an engine,
    `engine.count_found(request)` is how many tokens of this prompt it has kept from earlier requests, so that they need not be
    computed; `engine.load_tokens()` is the work that it has to do, as a number of prompt tokens; `engine.requests()` is how
    many requests are in it.
    """
    raise NotImplementedError("choose: what does this request have to wait for on each of the engines?")
