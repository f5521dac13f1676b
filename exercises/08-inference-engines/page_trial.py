"""Several answers over one prompt, in pages: how far their scores are from those of each text alone, and their numbers of
pages and copies.

The prompt is computed in pieces. Then it is forked for each answer, and all answers grow together, a token in each step. The
tokens are drawn in advance. Those of the answers differ, beginning with the first token.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import paged_engine
import paged_model
import real_steps
import small_llm
import torch
import waste
from request_traces import make_trace
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

PIECE = 48  # tokens of a prompt that are computed in a step
SPARE = 3  # pages more than needed
ROOM = 3  # requests of the longest kind that fit into the pages of the engine
LONGEST_TIMED = 1024  # tokens of the cache in which `time_attention` reads
Row = dict[str, Any]


class Planned:
    """Pages that answers share, planned from the start, because all lengths are known in advance."""

    def __init__(self, size: int, *, prompt: int, answer: int, samples: int, is_shared: bool = True) -> None:
        whole, every = prompt // size if is_shared else 0, -(-(prompt + answer) // size)
        self.size, self.copies_at = size, prompt if is_shared and prompt % size else -1
        answer_pages = every - whole
        self.tables = {
            name: [*range(whole), *range(whole + answer_pages * number, whole + answer_pages * (number + 1))]
            for number, name in enumerate(name_samples(samples))
        }
        self.pages, self.lengths = whole + answer_pages * samples, dict.fromkeys(self.tables, 0)

    def extend(self, name: str, tokens: int) -> list[tuple[int, int]]:
        """Return the copies (from, to) to make before these tokens are written. Each answer but the first copies the last page
        of the prompt."""
        start = self.lengths[name]
        self.lengths[name] += tokens
        original, page = (self.tables[which][start // self.size] for which in (next(iter(self.tables)), name))
        return [(original, page)] if start == self.copies_at and page != original else []

    def slots(self, name: str, first: int, last: int) -> list[int]:
        """Return the slots of places first to last - 1."""
        return [page * self.size + place for page in self.tables[name] for place in range(self.size)][first:last]

    def fork(self, parent: str, child: str) -> None:
        """Begin the child with the parent's text."""
        self.lengths[child] = self.lengths[parent]


def name_samples(samples: int) -> list[str]:
    """Return the names of the answers."""
    return [f"answer {number}" for number in range(1, samples + 1)]


def draw_texts(prompt: int, answer: int, samples: int) -> dict[str, list[int]]:
    """Return the tokens of each answer, with the same `prompt` tokens in front."""
    source = random.Random(0)
    beginning, first = [source.randrange(256) for _ in range(prompt)], source.sample(range(256), samples)
    return {
        name: [*beginning, token, *(source.randrange(256) for _ in range(answer - 1))]
        for name, token in zip(name_samples(samples), first, strict=True)
    }


def follow_answers(
    pages: Any, count: int, *, page: int, prompt: int, answer: int, samples: int, is_shared: bool = True,
    attend: paged_model.PagedAttention = paged_model.gather,
) -> Row:  # fmt: skip
    """Compute the answers in a cache of `count` pages. Return the largest difference of their scores from those of each text
    alone, the number of copies, and the pages that they use at the end."""
    model = small_llm.SmallModel(spread=real_steps.SPREAD)
    paged = paged_model.PagedModel(model, count, page, attend)
    texts = draw_texts(prompt, answer, samples)
    names = list(texts)
    scores, copied = {name: list[torch.Tensor]() for name in names}, 0

    def compute(pieces: dict[str, tuple[int, int]]) -> None:
        nonlocal copied
        rows, copies = [], list[tuple[int, int]]()
        for name, (first, last) in pieces.items():
            copies += pages.extend(name, last - first)
            table = [slot // page for slot in pages.slots(name, 0, last)[::page]]
            rows.append(paged_model.Row(texts[name][first:last], pages.slots(name, first, last), table, last))
        for source, target in copies:
            paged.copy_page(source, target)
        results = paged.compute(rows)
        copied += len(copies)
        for name, row in zip(pieces, results, strict=True):
            scores[name].append(row)

    together = names[:1] if is_shared else names
    for first in range(0, prompt, PIECE):
        compute(dict.fromkeys(together, (first, min(prompt, first + PIECE))))
    for name in names:
        if name not in together:
            pages.fork(names[0], name)
            scores[name] = scores[names[0]][-1:]
    for place in range(prompt, prompt + answer):
        compute(dict.fromkeys(names, (place, place + 1)))
    held = len({slot // page for name in names for slot in pages.slots(name, 0, prompt + answer)})
    off = max(_find_difference(model, texts[name], torch.stack(scores[name][-answer - 1 :]), answer) for name in names)
    return {"logits_off": off, "copies": copied, "pages": held}


def _find_difference(model: small_llm.SmallModel, text: Sequence[int], scores: torch.Tensor, answer: int) -> float:
    """Return the largest difference of the scores after the prompt and after each token of the answer; infinite for NaN."""
    tokens = torch.tensor(text)
    cache = small_llm.ContiguousCache(len(model.layers))
    alone = model.forward(tokens, torch.arange(len(text)), cache.attend, rows=slice(-answer - 1, None))
    off = float((scores - alone).abs().max())
    return off if off == off else float("inf")


def try_pages(_world: object, *, page: int, prompt: int, answer: int, samples: int, requests: int, longest: int) -> Row:
    """Return the results of the learner's my_pages.py in both experiments."""
    import my_pages

    torch.set_num_threads(1)
    count = Planned(page, prompt=prompt, answer=answer, samples=samples).pages + SPARE
    pages = my_pages.Pages(count, page)
    row = follow_answers(pages, count, page=page, prompt=prompt, answer=answer, samples=samples)
    for name in name_samples(samples):
        pages.free(name)
    row["pages_lost"] = int(count - pages.count_free())
    count = waste.AT_ONCE * -(-longest // page)
    used, empty = waste.follow(draw_requests(requests, longest), waste.OwnPages(my_pages.Pages(count, page), count, page))
    engine = run_engine(page, lambda count: waste.OwnPages(my_pages.Pages(count, page), count, page))
    return row | {"used_percent": used, "empty_places": empty, "engine": engine}


def run_engine(
    page: int, make_pool: Callable[[int], paged_engine.PagePool], attend: paged_model.PagedAttention | None = None
) -> Row:
    """Return the results of seven requests on the engine with a pool of pages, and how many pages are lost at the end."""
    requests = [replace(request, max_answer_tokens=request.answer_tokens) for request in real_steps.REAL]
    count = ROOM * -(-max(request.prompt_tokens + request.answer_tokens for request in requests) // page)
    pool = make_pool(count)
    row = real_steps.run_for_real(paged_engine.prompts_first, pool, count, real_steps.draw_prompts(), requests, attend)
    return row | {"pages_lost": count - pool.count_free()}


def draw_requests(requests: int, longest: int) -> list[Any]:
    """Return requests of the trace `chat`, none longer than `longest` tokens."""
    trace = make_trace("chat", requests, 1.0)
    for request in trace:
        request.answer_tokens = min(request.answer_tokens, longest // 2)
        request.prompt_tokens = min(request.prompt_tokens, longest - request.answer_tokens)
    return trace


class LargestTensor(TorchDispatchMode):
    """Record the size, in numbers, of the largest tensor that an operation creates. Views do not count."""

    def __init__(self, *inputs: torch.Tensor) -> None:
        super().__init__()
        self.numbers, self._inputs = 0, {tensor.untyped_storage().data_ptr() for tensor in inputs}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for tensor in tree_iter(result):
            if isinstance(tensor, torch.Tensor) and tensor.untyped_storage().data_ptr() not in self._inputs:
                self.numbers = max(self.numbers, tensor.untyped_storage().nbytes() // tensor.element_size())
        return result


def count_allowed(tokens: int, heads: int, dim: int, size: int) -> int:
    """Return how many numbers the largest tensor of attention over pages needs: a page's scores, its keys, or the queries."""
    return heads * max(tokens * size, size * dim, tokens * dim)


def try_attention(_world: object, *, page: int, prompt: int, answer: int, samples: int, device: str) -> Row:
    """Return the results of the learner's my_paged.py with the planned pages of all answers and in the engine, and its times
    on `device`."""
    import my_paged

    torch.set_num_threads(1)
    largest = [0.0]

    def attend(q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, table: list[int], length: int) -> torch.Tensor:
        with LargestTensor(q, keys, values) as record:
            out = my_paged.attend(q, keys, values, table, length)
        largest[0] = max(largest[0], record.numbers / count_allowed(*q.shape, page))
        return out

    sizes = {"prompt": prompt, "answer": answer, "samples": samples}
    planned = Planned(page, **sizes)
    row = follow_answers(planned, planned.pages, page=page, **sizes, attend=attend)
    engine = run_engine(page, lambda count: paged_engine.PagePool(count, page), attend)
    return {
        "logits_off": max(row["logits_off"], engine["logits_off"]), "largest": largest[0],
        "times_us": time_attention(my_paged.attend, device),
    }  # fmt: skip


def time_attention(attend: paged_model.PagedAttention, device: str) -> dict[int, float]:
    """Return the median microseconds in which one new token reads LONGEST_TIMED tokens, for each of several page sizes."""
    source = torch.Generator().manual_seed(0)
    times = {}
    for size in (8, 16, 64, 256):
        pages = LONGEST_TIMED // size
        q, keys, values = (
            torch.randn(*shape, generator=source).to(device)
            for shape in ((1, 8, 64), (pages, size, 2, 64), (pages, size, 2, 64))
        )
        table = torch.randperm(pages, generator=source).tolist()
        seconds = []
        for _ in range(9):
            start = time.perf_counter()
            attend(q, keys, values, table, LONGEST_TIMED)
            if device == "cuda":
                torch.cuda.synchronize()
            seconds.append(time.perf_counter() - start)
        times[size] = sorted(seconds[2:])[3] * 1e6
    return times
