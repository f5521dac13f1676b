"""Judge my_deviation.py of B.2 on traces of known causes, by the rules of the engine (engine.c)."""

from __future__ import annotations

from collections import Counter
from typing import Any

from gpucourse.judge import Case, Part, Way

PAGE = 16
SITES = ("load_weights", "copy_prompt", "grow_cache", "allocate_logits")
WAYS = {
    "prompt-token-by-token": Way(
        "you counted a pass for each token of a prompt: all of them go through the layers together, in one pass, which also "
        "generates the first token",
        ("passes = tokens", "passes = prompt + tokens - 1"),
    ),
    "last-token-in-cache": Way(
        "you counted a page too many for a request whose tokens fill its pages exactly: the last generated token is never "
        "computed, so it has no place in the cache",
        ("(prompt + tokens - 1) // PAGE", "(prompt + tokens) // PAGE"),
    ),
    "one-norm": Way(
        "a layer launches rms_norm twice, once before the attention and once before the MLP",
        ("rms_norm=2 * layers", "rms_norm=layers"),
    ),
    "weights-not-missed": Way(
        "a trace that began after k requests lacks the blocks of the weights as well: they were loaded before the first "
        "request",
        ("observed == sum(counts[begin:], Counter())", "observed == sum(counts[begin:], counts[0])"),
    ),
    "index-from-one": Way(
        "request {index} was repeated, counted from 0: you counted from 1",
        ('"repeated", index', '"repeated", index + 1'),
    ),
    "totals": Way(
        "you compared only the total number of calls. Two traces with the same total may differ in which functions were "
        "called: compare each name",
        ("observed = Counter(trace)",
         "observed = Counter(trace)\n    counts = [Counter(calls=c.total()) for c in counts]\n    "
         "whole = sum(counts, Counter())\n    observed = Counter(calls=observed.total())"),
    ),
    "lost-as-early": Way(
        "{lost} calls are missing, but they are not those of the last request: you took every missing call for a trace that "
        "ended early",
        ('return "lost", (whole - observed).total()', 'return "early", 1'),
    ),
}  # fmt: skip
LAYERS = 5
REQUESTS = [(16, 8), (40, 3), (7, 26), (33, 16)]


def judge(part: Part) -> None:
    """Judge the explanation of each trace."""
    explain = part.function("explain")
    cases = []
    for name, requests, trace, right in _make_traces():
        answer = part.call(explain, LAYERS, list(requests), dict(trace), case=name)
        values = list(answer) if isinstance(answer, tuple) else answer
        ways = {
            "prompt-token-by-token": _explain(requests, trace, by_token=True),
            "last-token-in-cache": _explain(requests, trace, cached=0),
            "one-norm": _explain(requests, trace, norms=1),
            "weights-not-missed": _explain(requests, trace, weights_missed=False),
            "index-from-one": _explain(requests, trace, base=1),
            "totals": _explain(requests, trace, totals=True),
            "lost-as-early": ["early", 1] if right[0] == "lost" else right,
        }
        cases.append(Case(name, values, right, ways, {"index": right[1], "lost": right[1]}))
    part.compare(cases)
    part.note(f"right for {len(cases)} traces")


def _count(prompt: int, tokens: int, *, by_token: bool = False, cached: int = -1, norms: int = 2) -> Counter[str]:
    passes = prompt + tokens - 1 if by_token else tokens
    return Counter({
        "embed_tokens": passes, "rms_norm": norms * LAYERS * passes, "qkv_gemm": LAYERS * passes, "attention": LAYERS * passes,
        "mlp_gemm": LAYERS * passes, "sample_token": passes, "copy_prompt": 1,
        "grow_cache": -(-(prompt + tokens + cached) // PAGE), "allocate_logits": tokens,
    })  # fmt: skip


def _explain(
    requests: list[tuple[int, int]], trace: Counter[str], *, weights_missed: bool = True, base: int = 0, totals: bool = False,
    **mistakes: Any,
) -> list[Any]:  # fmt: skip
    """Return the right explanation of a trace, or the one of a solution with the mistakes that the keywords name."""
    weights = Counter(load_weights=LAYERS)
    counts = [weights, *(_count(*request, **mistakes) for request in requests)]

    def equal(one: Counter[str], other: Counter[str]) -> bool:
        return one.total() == other.total() if totals else one == other

    whole = sum(counts, Counter())
    if equal(trace, whole):
        return ["complete", 0]
    for begin in range(1, len(counts) + 1):
        if equal(trace, sum(counts[begin:], Counter() if weights_missed else weights)):
            return ["late", begin - 1]
    for end in range(1, len(counts)):
        if equal(trace, sum(counts[:-end], Counter())):
            return ["early", end]
    for index, request in enumerate(counts[1:]):
        if equal(trace, whole + request):
            return ["repeated", index + base]
    if not totals and trace == whole + Counter({name: count for name, count in whole.items() if name not in SITES}):
        return ["twice", 0]
    return ["lost", max(0, whole.total() - trace.total()) if totals else (whole - trace).total()]


def _make_traces() -> list[tuple[str, list[tuple[int, int]], Counter[str], list[Any]]]:
    """Return traces with their names, requests and right explanations."""
    counts = [_count(*request) for request in REQUESTS]
    weights = Counter(load_weights=LAYERS)
    whole = sum(counts, weights)
    launches = Counter({name: count for name, count in whole.items() if name not in SITES})
    last = counts[-1].total()
    traces = [
        ("all calls", whole, ["complete", 0]),
        ("begun after the weights", whole - weights, ["late", 0]),
        ("begun after two requests", counts[2] + counts[3], ["late", 2]),
        ("nothing traced", Counter(), ["late", 4]),
        ("ended before the last request", whole - counts[3], ["early", 1]),
        ("ended after the weights", weights, ["early", 4]),
        ("a request sent twice", whole + counts[1], ["repeated", 1]),
        ("the first request sent twice", whole + counts[0], ["repeated", 0]),
        ("two probes", whole + launches, ["twice", 0]),
        ("lost launches", whole - Counter(rms_norm=4, attention=3), ["lost", 7]),
        ("lost blocks", whole - Counter(allocate_logits=5), ["lost", 5]),
        ("as many lost as a request has", whole - Counter(rms_norm=last - 100, qkv_gemm=100), ["lost", last]),
    ]
    listed = [(name, REQUESTS, trace, right) for name, trace, right in traces]
    exact = [(16, 17)]  # its cache fills two pages exactly
    return [*listed, ("one request", exact, weights + _count(*exact[0]), ["complete", 0])]
