"""Judge my_decoding.py of 1.2 with a model that counts its computations. Its scores depend on all earlier tokens."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any

from gpucourse.judge import Case, Part, Way

VOCABULARY = 50
WAYS = {
    "without-the-cache": Way(
        "the tokens are right, but {computed} tokens were computed, although {needed} are enough: each step computes the whole "
        "text again. For a text ten times as long, that is a hundred times the work. Keep one cache",
        ("model(tokens[-1:], cache)", "model(prompt + tokens, [])"),
    ),
    "everything-again": Way(
        "the cache has {held} entries for a text of {text} tokens: you computed tokens again that were already in it, so "
        "the model looked back at them twice",
        ("model(tokens[-1:], cache)", "model(prompt + tokens, cache)"),
    ),
    "cache-of-the-last-request": Way(
        "the cache had {held} entries before the prompt was computed: they belong to the previous request, and must not affect "
        "this one. Make an empty cache for each request",
        ("cache: list[int] = []", 'cache: list[int] = generate.__dict__.setdefault("cache", [])'),
    ),
    "cache-by-hand": Way(
        "you put tokens into the cache yourself. It holds the key and value of each, which only the model can compute: pass "
        "the tokens to the model, and it adds their keys and values",
        (
            "    scores = model(prompt, cache)[-1]\n    tokens",
            "    cache += prompt[:-1]\n    scores = model(prompt[-1:], cache)[-1]\n    tokens",
        ),
    ),
    "prompt-lost": Way(
        "the model was given a new token and an empty cache, so it cannot see the prompt. Pass the same cache to every call",
        ("model(tokens[-1:], cache)", "model(tokens[-1:], [])"),
    ),
    "prompt-one-by-one": Way(
        "the prompt took {calls} calls. All its tokens are known, so compute them in one call (prefill), which reads the "
        "weights once instead of once for each token",
        (
            "    scores = model(prompt, cache)[-1]\n    tokens",
            "    for token in prompt:\n        scores = model([token], cache)[-1]\n    tokens",
        ),
    ),
    "last-of-prompt-twice": Way(
        "the last token of the prompt was computed twice: the scores of the prefill already give the first token of the answer",
        (
            "    scores = model(prompt, cache)[-1]\n    tokens",
            "    model(prompt, cache)\n    scores = model(prompt[-1:], cache)[-1]\n    tokens",
        ),
    ),
    "one-too-many": Way(
        "the last token of the answer was also passed to the model. That is not needed, because the token after it is not "
        "part of the answer",
        (
            "        if len(tokens) == count:\n            return tokens\n        scores = model(tokens[-1:], cache)[-1]\n",
            "        scores = model(tokens[-1:], cache)[-1]\n        if len(tokens) == count:\n            return tokens\n",
        ),
    ),
    "first-place": Way(
        "you took the scores of the first token of the prompt, but the token after the prompt follows from its last token",
        ("scores = model(prompt, cache)[-1]", "scores = model(prompt, cache)[0]"),
    ),
    "least-likely": Way("you always took the least likely token", ("scores.index(max(scores))", "scores.index(min(scores))")),
    "prompt-in-the-answer": Way(
        "your answer begins with the prompt: return the new tokens only",
        ("            return tokens\n", "            return prompt + tokens\n"),
    ),
    "wrong-length": Way(
        "it returned {given} tokens, but {count} were asked for",
        ("if len(tokens) == count", "if len(tokens) > count"),
    ),
}
REQUESTS = (([3, 14, 15, 9, 26], 7), ([42], 4), ([7, 7, 7], 1), ([1, 2, 3, 4, 5, 6, 7, 8, 9], 2))


class Model:
    """A model whose scores depend on everything in the cache. It records every call and every token."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []
        self.held = 0
        self.at_first: list[int] = []  # what the cache held at the first call

    def __call__(self, tokens: Sequence[int], cache: list[int]) -> list[list[float]]:
        """Return, for each token, the scores of the tokens that may come after it."""
        self.at_first = self.at_first if self.calls else list(cache)
        self.calls.append(list(tokens))
        rows = []
        for token in tokens:
            cache.append(int(token))
            rows.append(score(cache))
        self.held = max(self.held, len(cache))
        return rows


def score(text: Sequence[int]) -> list[float]:
    """Return the scores of the tokens that may come after a text. All scores are different."""
    return [zlib.crc32(bytes([*text, token])) / 2**32 for token in range(VOCABULARY)]


def judge(part: Part) -> None:
    """Judge the tokens of each request, then the computations for them."""
    generate = part.function("generate")
    for prompt, count in REQUESTS:
        case = f"{count} token{'s' * (count > 1)} after a prompt of {len(prompt)}"
        model, prompt_copy = Model(), list(prompt)
        tokens = part.call(generate, model, prompt_copy, count, case=case)
        tokens = tokens.tolist() if hasattr(tokens, "tolist") else list(tokens) if isinstance(tokens, tuple) else tokens
        computed = sum(map(len, model.calls))
        if model.at_first == prompt[: len(model.at_first)] != [] or model.held > computed + len(model.at_first):
            raise part.wrong("cache-by-hand", case)
        _judge_tokens(part, prompt, count, model, tokens, case)
        _judge_work(part, prompt, count, model, case)
        part.compare([Case(f"the prompt that it was given for {case}, afterwards", prompt_copy, prompt)])
    part.note(
        f"{len(REQUESTS)} answers, each token computed once: {len(prompt) + count - 1} in {count} calls for the last answer"
    )


def _judge_tokens(part: Part, prompt: list[int], count: int, model: Model, answer: Any, case: str) -> None:
    right = _write(prompt, count, score)
    if answer == right:
        return
    if answer == prompt + right:
        raise part.wrong("prompt-in-the-answer", case)
    if model.at_first:
        raise part.wrong("cache-of-the-last-request", case, held=len(model.at_first))
    text = len(prompt) + count
    if model.held > text:
        way = "last-of-prompt-twice" if [prompt[-1:]] == model.calls[1:2] and model.held == text else "everything-again"
        raise part.wrong(way, case, held=model.held, text=text)
    if len(model.calls) > 1 and model.calls[1] == prompt[-1:] and model.calls[0] == prompt and answer[:1] != prompt[-1:]:
        raise part.wrong("last-of-prompt-twice", case)
    if isinstance(answer, list) and len(answer) != count:
        raise part.wrong("wrong-length", case, given=len(answer), count=count)
    ways = {
        "first-place": _write(prompt, count, score, first=prompt[:1]),
        "least-likely": _write(prompt, count, lambda text: [-value for value in score(text)]),
        "prompt-lost": _forget(prompt, count),
    }
    part.compare([Case(case, answer, right, ways)])


def _judge_work(part: Part, prompt: list[int], count: int, model: Model, case: str) -> None:
    computed, necessary = sum(map(len, model.calls)), len(prompt) + count - 1
    if model.calls[0] != prompt:
        raise part.wrong("prompt-one-by-one", case, calls=len(model.calls) - count + 1)
    if computed == necessary + 1 and len(model.calls) == count + 1:
        raise part.wrong("one-too-many", case)
    if computed > necessary:
        raise part.wrong("without-the-cache", case, computed=computed, needed=necessary)


def _write(
    prompt: list[int], count: int, scores_of: Callable[[list[int]], list[float]], first: list[int] | None = None
) -> list[int]:
    """Return `count` tokens, always the likeliest one. If `first` is given, it replaces the prompt in the choice of the first
    token."""
    tokens: list[int] = []
    for _ in range(count):
        scores = scores_of(first if first and not tokens else prompt + tokens)
        tokens.append(scores.index(max(scores)))
    return tokens


def _forget(prompt: list[int], count: int) -> list[int]:
    """Return the tokens that result if each token after the first is computed with an empty cache."""
    tokens = _write(prompt, 1, score)
    while len(tokens) < count:
        scores = score(tokens[-1:])
        tokens.append(scores.index(max(scores)))
    return tokens
