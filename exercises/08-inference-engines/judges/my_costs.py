"""Judge my_costs.py of 8.1 by its formulas, for published models and for small ones with every combination of features."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cards import CARDS, Card

from gpucourse.judge import Case, Part, Verdict, Way

LARGEST = 1e300  # no cost is as large
WAYS = {
    "keys-only": Way(
        "the cache keeps a key and a value for each token: {result} bytes are half of {right}",
        ("else 2 * card.kv_heads", "else card.kv_heads"),
    ),
    "query-heads": Way(
        "you counted {heads} heads, but only {kv_heads} of them have a key and a value: the other query heads share these",
        ("else 2 * card.kv_heads * card.head_dim", "else 2 * card.heads * card.head_dim"),
    ),
    "one-layer": Way(
        "each of the {layers} layers keeps its own keys and values, but you counted one layer",
        ("    return int(numbers * kept * number_bytes)", "    return int(numbers * kept * number_bytes / card.layers)"),
    ),
    "latent-twice": Way(
        "keys and values are both made from one latent vector, so it is kept once: {right} bytes, not {result}",
        ("numbers = card.latent + card.rope_dim if", "numbers = 2 * (card.latent + card.rope_dim) if"),
    ),
    "latent-by-head": Way(
        "you counted a latent vector for each of {heads} heads. They all read the same one; this is why it saves so much",
        ("numbers = card.latent + card.rope_dim if", "numbers = card.heads * (card.latent + card.rope_dim) if"),
    ),
    "position-forgotten": Way(
        "the {rope_dim} numbers that carry the position are kept in addition to the latent vector: {right} bytes, not "
        "{result}",
        ("numbers = card.latent + card.rope_dim if", "numbers = card.latent if"),
    ),
    "window-ignored": Way(
        "{windowed_layers} of {layers} layers look back at {window} tokens and keep no more: {right} bytes, not {result}",
        ("card.windowed_layers * min(tokens, card.window)", "card.windowed_layers * tokens"),
    ),
    "window-always": Way(
        "the window has {window} places, but the sequence has only {tokens} tokens: a token that does not exist is not kept",
        ("card.windowed_layers * min(tokens, card.window)", "card.windowed_layers * card.window"),
    ),
    "values-not-multiplied": Way(
        "attention has two products of the same size: queries times keys, and weights times values. You counted one",
        ("return products + 4 * card.heads", "return products + 2 * card.heads"),
    ),
    "not-itself": Way(
        "with past = {past} and new = {new}, a query is multiplied by {past} + {new} keys: a new token also looks at itself "
        "and at the other new ones",
        (
            "    with_window = min(past, card.window - 1) + new\n"
            "    return (card.layers - card.windowed_layers) * (past + new)",
            "    with_window = min(past, card.window - 1)\n    return (card.layers - card.windowed_layers) * past",
        ),
    ),
    "quadratic-decode": Way(
        "one new token after {past} others has one query. The queries of the others were computed in earlier steps, and only "
        "their keys and values were kept",
        ("sum(new * count_keys", "sum((past + new) * count_keys"),
    ),
    "window-not-computed": Way(
        "in the {windowed_layers} layers with a window of {window} tokens, the new tokens are not multiplied by all "
        "{past} + {new} keys: the kernel leaves out those that none of them looks at",
        ("    with_window = min(past, card.window - 1) + new", "    with_window = past + new"),
    ),
    "weights-per-request": Way(
        "the weights are read once in a step, for all {count} requests: that is why a batch is cheap",
        ("return (weights + 2", "return (weights * len(rows) + 2"),
    ),
    "all-logits": Way(
        "you counted scores over the vocabulary for all {tokens} new tokens. Only the last token of each request needs them: "
        "the tokens that follow the others are known",
        ("2 * card.width * card.vocabulary * len(rows)", "2 * card.width * card.vocabulary * tokens"),
    ),
    "all-experts": Way(
        "you read all {experts} experts of a layer for {tokens} tokens. A token goes to {per_token} of them, and a step reads"
        " the experts to which at least one of its tokens goes",
        (
            "touched = experts_touched(card.experts, card.per_token, tokens) if card.experts else 1",
            "touched = card.experts or 1",
        ),
    ),
    "all-experts-computed": Way(
        "you multiplied each token by the weights of all {experts} experts, but only {per_token} of them compute it",
        ("(card.per_token or 1)", "(card.experts or 1)"),
    ),
    "router-forgotten": Way(
        "each token is also multiplied by a matrix of {width} x {experts}, whose scores choose its experts",
        ("3 * card.hidden * (card.per_token or 1) + card.experts)", "3 * card.hidden * (card.per_token or 1))"),
    ),
    "experts-added-up": Way(
        "{per_token} experts for each of {tokens} tokens are {result}, but there are only {experts}: two tokens may have the "
        "same expert",
        ("return experts * (1 - (1 - per_token / experts) ** tokens)", "return per_token * tokens"),
    ),
    "experts-cut-off": Way(
        "{tokens} tokens touch fewer than {result} experts on average: two of them may have the same expert, even if the layer"
        " has enough experts for all",
        ("return experts * (1 - (1 - per_token / experts) ** tokens)", "return min(experts, per_token * tokens)"),
    ),
}  # fmt: skip
PLAIN = Card(3, 48, 6, 2, 8, 100, 300, 0, "made up")
SMALL = {
    "a small model": PLAIN,
    "the same with one key head": replace(PLAIN, kv_heads=1),
    "the same with a window of 16 tokens in two layers": replace(PLAIN, window=16, windowed_layers=2),
    "the same with 12 experts": replace(PLAIN, experts=12, per_token=3),
    "the same with windows and experts": replace(PLAIN, window=16, windowed_layers=2, experts=12, per_token=3),
}
STEPS = ([(0, 5), (40, 1), (200, 1)], [(0, 32)], [(255, 1)], [(10, 20)], [(70, 1)] * 8)
Formula = Callable[..., float]


def judge(part: Part) -> None:
    """Judge cache, experts, operations and bytes, in this order: the later formulas need the earlier ones."""
    _judge_cache(part)
    _judge_experts(part)
    _judge_step(part, "operations", _compute_operations, OPERATIONS_WAYS)
    _judge_step(part, "bytes_read", _compute_bytes, BYTES_WAYS)
    part.note(
        f"the cache of {len(CARDS)} published models; operations and bytes of {len(STEPS)} steps of {len(SMALL) + 2} models"
    )


def _judge_cache(part: Part) -> None:
    cache_bytes = part.function("cache_bytes")
    cases = []
    for name, card in CARDS.items():
        for tokens in (1, 100, 8192, 131_072):
            for size in (2, 0.5) if tokens == 100 else (2,):
                case = f"{name}, {tokens:,} token{'s' * (tokens > 1)}, {size} bytes a number"
                answer = _read_number(part, part.call(cache_bytes, card, tokens, size, case=case), "cache_bytes", case)
                right = _compute_cache(card, tokens, size)
                ways = {way: _compute_cache(card, tokens, size, way) for way in CACHE_WAYS}
                values = {**_describe(card), "tokens": tokens, "result": f"{answer:,.0f}", "right": f"{right:,.0f}"}
                cases.append(Case(case, answer, right, ways, values, {"model": name, "tokens": tokens, "bytes": size}))
    part.compare(cases)


def _judge_experts(part: Part) -> None:
    touched = part.function("experts_touched")
    cases = []
    for experts, per_token, tokens in ((256, 8, 1), (8, 2, 1), (8, 2, 3), (256, 8, 64), (128, 4, 1000), (4, 4, 7)):
        case = f"{tokens} tokens, {per_token} of {experts} experts each"
        answer = _read_number(part, part.call(touched, experts, per_token, tokens, case=case), "experts_touched", case)
        ways = {"experts-added-up": per_token * tokens, "experts-cut-off": min(experts, per_token * tokens)}
        values = {"experts": experts, "per_token": per_token, "tokens": tokens, "result": f"{answer:,.0f}"}
        cases.append(Case(case, answer, _touch(experts, per_token, tokens), ways, values, {"tokens": tokens}))
    part.compare(cases, tolerance=1e-6)  # a tensor may have 32 bits


def _judge_step(part: Part, name: str, compute: Formula, ways: Sequence[str]) -> None:
    """Judge operations or bytes_read for each model and step."""
    function = part.function(name)
    models = {**SMALL, "llama-3.1-8b": CARDS["llama-3.1-8b"], "gpt-oss-120b": CARDS["gpt-oss-120b"]}
    cases = []
    for model, card in models.items():
        for rows in STEPS:
            case = f"{name} of {model}, rows {rows}" if len(rows) < 5 else f"{name} of {model}, {len(rows)} rows of {rows[0]}"
            answer = _read_number(part, part.call(function, card, list(rows), *_sizes(name), case=case), name, case)
            values = {**_describe(card), "past": max(rows)[0], "new": max(rows)[1], "count": len(rows),
                      "tokens": sum(new for _, new in rows)}  # fmt: skip
            by_way = {way: compute(card, rows, way) for way in ways}
            knobs = {"model": model, "rows": str(rows)}
            cases.append(Case(case, answer, compute(card, rows), by_way, values, knobs))
    part.compare(cases)


def _sizes(name: str) -> list[float]:
    return [2] if name == "bytes_read" else []


def _read_number(part: Part, answer: Any, name: str, case: str) -> float:
    """Return the answer as a number. Raise Verdict if it is not a number."""
    number = answer.tolist() if hasattr(answer, "tolist") else answer
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not abs(number) < LARGEST:
        kind = "None: is the return missing?" if answer is None else f"{answer!r:.40}, which is not a finite number"
        raise Verdict("failed", "no-number", f"{name} returned {kind}", case)
    return number


def _describe(card: Card) -> Mapping[str, object]:
    return {name: getattr(card, name) for name in (
        "layers", "heads", "kv_heads", "rope_dim", "window", "windowed_layers", "experts", "per_token", "width")}  # fmt: skip


CACHE_WAYS = ("keys-only", "query-heads", "one-layer", "latent-twice", "latent-by-head", "position-forgotten", "window-ignored",
              "window-always")  # fmt: skip


def _compute_cache(card: Card, tokens: int, size: float, way: str = "") -> float:
    heads = card.heads if way == "query-heads" else card.kv_heads
    numbers = (1 if way == "keys-only" else 2) * heads * card.head_dim
    if card.latent:
        numbers = card.latent + (0 if way == "position-forgotten" else card.rope_dim)
        numbers *= 2 if way == "latent-twice" else card.heads if way == "latent-by-head" else 1
    kept = {"window-ignored": tokens, "window-always": card.window}.get(way, min(tokens, card.window))
    layers = (card.layers - card.windowed_layers) * tokens + card.windowed_layers * kept
    return layers * numbers * size / (card.layers if way == "one-layer" else 1)


def _touch(experts: int, per_token: int, tokens: int) -> float:
    return experts * (1 - (1 - per_token / experts) ** tokens)


def _count_keys(card: Card, past: int, new: int, way: str) -> int:
    """Return the number of keys that a row's tokens look at, added up over all layers."""
    windowed = past if way == "window-not-computed" else min(past, card.window - 1)
    itself = 0 if way == "not-itself" else new
    return (card.layers - card.windowed_layers) * (past + itself) + card.windowed_layers * (windowed + itself)


OPERATIONS_WAYS = ("values-not-multiplied", "not-itself", "quadratic-decode", "window-not-computed", "all-logits",
                   "all-experts-computed", "router-forgotten")  # fmt: skip


def _compute_operations(card: Card, rows: Sequence[tuple[int, int]], way: str = "") -> float:
    tokens = sum(new for _, new in rows)
    experts = (card.experts if way == "all-experts-computed" else card.per_token) or 1
    router = 0 if way == "router-forgotten" else card.experts
    layer = 2 * card.head_dim * (card.heads + card.kv_heads) + 3 * card.hidden * experts + router
    scores = sum(((past if way == "quadratic-decode" else 0) + new) * _count_keys(card, past, new, way) for past, new in rows)
    factor = 1 if way == "values-not-multiplied" else 2
    vocabulary = card.vocabulary * (tokens if way == "all-logits" else len(rows))
    return 2 * (card.width * (card.layers * layer * tokens + vocabulary) + factor * card.heads * card.head_dim * scores)


BYTES_WAYS = ("weights-per-request", "all-experts", "not-itself", "window-not-computed", "router-forgotten")


def _compute_bytes(card: Card, rows: Sequence[tuple[int, int]], way: str = "") -> float:
    tokens = sum(new for _, new in rows)
    touched: float = _touch(card.experts, card.per_token, tokens) if card.experts else 1
    if way == "all-experts":
        touched = card.experts or 1
    router = 0 if way == "router-forgotten" else card.experts
    layer = 2 * card.head_dim * (card.heads + card.kv_heads) + 3 * card.hidden * touched + router
    weights = card.width * (card.layers * layer + card.vocabulary) * (len(rows) if way == "weights-per-request" else 1)
    keys = sum(_count_keys(card, past, new, way) for past, new in rows)
    return 2 * (weights + 2 * card.kv_heads * card.head_dim * keys)
