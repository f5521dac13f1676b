"""Judges my_costs.py of B.2 on requests of several sizes, by the rules of the engine (engine.c)."""

from __future__ import annotations

from typing import Any

from gpucourse.judge import Case, Part, Way

PAGE = 16
WAYS = {
    "prompt-token-by-token": Way(
        "you counted one pass for each token of the prompt: all of them go through the layers together, in one pass. This is "
        "why reading a prompt of {prompt} tokens is faster than generating as many",
        ("passes = tokens", "passes = prompt + tokens - 1"),
    ),
    "a-pass-too-many": Way(
        "you counted one pass more than there are tokens: the pass over the prompt already makes the first token",
        ("passes = tokens", "passes = tokens + 1"),
    ),
    "one-norm": Way(
        "a layer launches rms_norm twice, once before the attention and once before the MLP",
        ("2 * layers * passes", "layers * passes"),
    ),
    "sampled-once": Way(
        "sample_token is launched for every token, as the next pass needs its result",
        ('"sample_token": passes', '"sample_token": 1'),
    ),
    "one-layer": Way(
        "you counted only one layer: a pass goes through all {layers}",
        ('"qkv_gemm": layers * passes,\n        "attention": layers * passes,\n        "mlp_gemm": layers * passes,',
         '"qkv_gemm": passes,\n        "attention": passes,\n        "mlp_gemm": passes,'),
    ),
    "last-token-in-cache": Way(
        "with {prompt} + {tokens} tokens you count one page too many. The last generated token has no keys and values, because "
        "no pass computes it: what the passes compute fills its pages exactly there",
        ("cached_tokens = prompt + tokens - 1", "cached_tokens = prompt + tokens"),
    ),
    "rounded-down": Way(
        "{prompt} tokens of prompt and {tokens} more fill the last page only in part, but the whole page is allocated",
        ("-(-cached_tokens // PAGE)", "cached_tokens // PAGE"),
    ),
    "keys-alone": Way(
        "a page holds keys and values: you counted only one of the two",
        ("2 * layers * PAGE * width * 2", "layers * PAGE * width * 2"),
    ),
    "page-of-one-layer": Way(
        "a page holds the keys and values of all {layers} layers, but yours contains only those of one layer",
        ("2 * layers * PAGE * width * 2", "2 * PAGE * width * 2"),
    ),
    "logits-kept": Way(
        "you assumed that the engine keeps one buffer for the logits. A good engine would; this one allocates a new one for "
        "every token, which the trace is meant to show",
        ('(tokens, tokens * 4 * vocabulary)', '(1, 4 * vocabulary)'),
    ),
}  # fmt: skip
REQUESTS = [(4, 16, 8), (6, 1, 1), (9, 100, 33), (5, 17, 16), (6, 16, 17), (7, 15, 2), (4, 48, 1)]  # layers, prompt, tokens
WIDTH, VOCABULARY = 320, 33000


def judge(part: Part) -> None:
    """Judge both functions on every request."""
    launches, blocks = part.function("count_launches"), part.function("count_blocks")
    launch_cases, block_cases = [], []
    for layers, prompt, tokens in REQUESTS:
        name = f"{layers} layers, a prompt of {prompt}, {tokens} tokens"
        values = {"layers": layers, "prompt": prompt, "tokens": tokens}
        answer = part.call(launches, layers, prompt, tokens, case=name)
        launch_cases.append(Case(name, _sort_by_name(answer), *_launches(layers, prompt, tokens), values))
        answer = part.call(blocks, layers, WIDTH, VOCABULARY, prompt, tokens, case=name)
        block_cases.append(Case(name, _sort_by_name(answer), *_blocks(layers, prompt, tokens), values))
    part.compare(launch_cases)
    part.compare(block_cases)
    part.note(f"right for {len(REQUESTS)} requests, from one token to {max(tokens for _, _, tokens in REQUESTS)}")


def _sort_by_name(answer: Any) -> Any:
    """Return the result sorted by name, with lists instead of tuples, so that a Counter equals a dictionary."""
    if not isinstance(answer, dict):
        return answer
    return {name: list(value) if isinstance(value, tuple) else value for name, value in sorted(answer.items(), key=str)}


def _launches(layers: int, prompt: int, tokens: int) -> tuple[Any, dict[str, Any]]:
    """Return the right launches, and the launches of every wrong way."""

    def count(passes: int, *, norms: int = 2, samples: int | None = None, deep: int = layers) -> dict[str, int]:
        return {
            "attention": deep * passes, "embed_tokens": passes, "mlp_gemm": deep * passes, "qkv_gemm": deep * passes,
            "rms_norm": norms * layers * passes, "sample_token": passes if samples is None else samples,
        }  # fmt: skip

    ways = {
        "prompt-token-by-token": count(prompt + tokens - 1),
        "a-pass-too-many": count(tokens + 1),
        "one-norm": count(tokens, norms=1),
        "sampled-once": count(tokens, samples=1),
        "one-layer": count(tokens, deep=1),
    }
    return count(tokens), ways


def _blocks(layers: int, prompt: int, tokens: int) -> tuple[Any, dict[str, Any]]:
    """Return the right blocks, and the blocks of every wrong way."""
    cached_tokens, page = prompt + tokens - 1, 2 * layers * PAGE * WIDTH * 2

    def count(pages: int, page_bytes: int = page, logits: int = tokens) -> dict[str, list[int]]:
        return {
            "allocate_logits": [logits, logits * 4 * VOCABULARY], "copy_prompt": [1, 4 * prompt],
            "grow_cache": [pages, pages * page_bytes], "load_weights": [layers, layers * 12 * WIDTH * WIDTH * 2],
        }  # fmt: skip

    pages = -(-cached_tokens // PAGE)
    ways = {
        "last-token-in-cache": count(-(-(cached_tokens + 1) // PAGE)),
        "rounded-down": count(cached_tokens // PAGE),
        "keys-alone": count(pages, page // 2),
        "page-of-one-layer": count(pages, page // layers),
        "logits-kept": count(pages, logits=1),
    }
    return count(pages), ways
