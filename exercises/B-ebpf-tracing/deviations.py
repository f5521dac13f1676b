"""Make traces of the stand-in that deviate from the log of its requests, and let the learner's part explain them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

import stand_in
import tracers

REQUESTS = 3
SITES = ("load_weights", "copy_prompt", "grow_cache", "allocate_logits")


def trace_cases(tracer: tracers.Tracer, layers: int, seed: int) -> tuple[list[tuple[int, int]], list[dict[str, Any]]]:
    """Return the requests of the log, and traces with their true causes.

    The first four are recorded: the tracer is attached late or detached early, or a request is sent twice. For the last two, a
    recorded trace is changed as if there were a second probe, or a full buffer.
    """
    chance = random.Random(seed)
    tokens = chance.sample(range(3, 20), REQUESTS)
    requests = [(chance.randint(5, 60), count) for count in tokens]
    late, early, repeated = chance.randrange(REQUESTS), chance.randrange(1, REQUESTS), chance.randrange(REQUESTS)
    complete = _trace(tracer, layers, seed, [], requests, [])
    sent_twice = [request for index, request in enumerate(requests) for _ in range(1 + (index == repeated))]
    cases = [
        {"cause": ("complete", 0), "trace": complete},
        {"cause": ("late", late), "trace": _trace(tracer, layers, seed, requests[:late], requests[late:], [], load=False)},
        {"cause": ("early", early), "trace": _trace(tracer, layers, seed, [], requests[:-early], requests[-early:])},
        {"cause": ("repeated", repeated), "trace": _trace(tracer, layers, seed, [], sent_twice, [])},
        {"cause": ("twice", 0), "trace": {**complete, **{name: 2 * complete[name] for name in _list_kernels(complete)}}},
    ]
    lost = Counter(chance.choices(_list_kernels(complete), k=chance.randint(3, 9)))
    cases.append({"cause": ("lost", lost.total()), "trace": {name: count - lost[name] for name, count in complete.items()}})
    chance.shuffle(cases)
    return requests, cases


def _trace(
    tracer: tracers.Tracer, layers: int, seed: int, before: list[tuple[int, int]], during: list[tuple[int, int]],
    after: list[tuple[int, int]], *, load: bool = True,
) -> dict[str, int]:  # fmt: skip
    """Return the counts of a trace of the requests `during`, in an engine that also computes those before and after."""
    with stand_in.Engine(layers=layers, seed=seed, tracer=tracer) as engine:
        if not load:
            engine.load()
        for request in before:
            engine.request(*request)
        with tracers.trace(tracer, engine) as counters:
            if load:
                engine.load()
            for request in during:
                engine.request(*request)
        for request in after:
            engine.request(*request)
    return {**counters.kernels, **{name: site.calls for name, site in counters.sites.items()}}


def _list_kernels(trace: Mapping[str, int]) -> list[str]:
    return [name for name in trace if name not in SITES]


def count_launches(trace: Mapping[str, int]) -> int:
    """Return the number of kernel launches in a trace."""
    return sum(trace[name] for name in _list_kernels(trace))


def explain_all(_world: object, layers: int, requests: list[list[int]], traces: list[dict[str, int]]) -> list[list[Any]]:
    """Return the learner's [cause, number] for each trace. own_part.py calls this function in a separate process."""
    import my_deviation  # imported here, so that a mistake in it ends only this process

    log = [(prompt, tokens) for prompt, tokens in requests]
    return [list(my_deviation.explain(layers, list(log), dict(trace))) for trace in traces]
