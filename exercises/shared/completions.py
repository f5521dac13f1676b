"""The client's side of an inference engine: send one request over HTTP, stream and time it; or send many at the same moment.

TTFT is the time to the first token, from the moment the request is sent. TPOT is the mean time from one token to the next.
Both are measured by the client, and include network and queue.
"""

from __future__ import annotations

import json
import statistics
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    """The answer to one prompt. `tokens` is the engine's own count, because an event of the stream may contain several."""

    text: str
    prompt_tokens: int
    tokens: int
    ttft_s: float
    e2e_s: float
    events: int
    sent_s: float = 0.0  # on the client's clock, as are the arrivals of the events that contained tokens
    arrivals_s: tuple[float, ...] = ()

    @property
    def tpot_s(self) -> float | None:
        """Return the seconds per token after the first, or None if there was only one token."""
        return tpot(self.e2e_s, self.ttft_s, self.tokens)


class RefusedByEngine(Exception):
    """The engine answered with an error. The text is the engine's."""


def tpot(e2e_s: float, ttft_s: float, tokens: int) -> float | None:
    """Return the mean time from one token to the next: the slope of the line from the first token to the last, or None if there
    is only one token."""
    return statistics.linear_regression([1, tokens], [ttft_s, e2e_s]).slope if tokens > 1 else None


def complete(
    url: str, model: str, prompt: str | list[int], max_tokens: int, *, temperature: float = 0.0,
    watch: Callable[[int], object] | None = None, limit_s: float = 600,
) -> Answer:  # fmt: skip
    """Send one prompt (text, or the numbers of its tokens), and return its answer of up to `max_tokens` tokens.

    `watch` is called with the number of events so far, at each event with tokens. Raises RefusedByEngine if the engine refuses
    or breaks off, TimeoutError if it sends nothing for `limit_s` seconds.

    `ignore_eos` keeps the engine going when the model would stop, because only equal work can be compared.
    """
    body = {
        "model": model, "prompt": prompt, "max_tokens": max_tokens, "temperature": temperature, "ignore_eos": True,
        "stream": True, "stream_options": {"include_usage": True},
    }  # fmt: skip
    request = urllib.request.Request(f"{url}/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    texts: list[str] = []
    usage: dict[str, int] = {}
    arrivals: list[float] = []
    start = time.perf_counter()
    try:
        with urllib.request.urlopen(request, timeout=limit_s) as stream:
            for line in stream:
                if not line.startswith(b"data: {"):
                    continue
                event = json.loads(line.removeprefix(b"data: "))
                if event.get("choices"):
                    arrivals.append(time.perf_counter())
                    texts.append(event["choices"][0]["text"])
                    if watch:
                        watch(len(arrivals))
                usage = event.get("usage") or usage
    except urllib.error.HTTPError as error:
        raise RefusedByEngine(f"the engine refused the request ({error.code}): {error.read().decode()[:400]}") from None
    end = time.perf_counter()
    if not arrivals or not usage:
        raise RefusedByEngine("the engine ended the answer without a token or without its count of tokens")
    return Answer(
        "".join(texts), usage["prompt_tokens"], usage["completion_tokens"], arrivals[0] - start, end - start, len(texts),
        start, tuple(arrivals),
    )  # fmt: skip


def together(
    url: str, model: str, prompts: Sequence[str | list[int]], max_tokens: int, *, temperature: float = 0.0
) -> tuple[list[Answer], float]:
    """Send all prompts at the same time, each in a thread. Return the answers in order, and the seconds from first to last.

    Raises the error of the first request that failed.
    """
    answers: list[Answer | Exception | None] = [None] * len(prompts)
    ready = threading.Barrier(len(prompts) + 1)

    def ask_one(place: int) -> None:
        ready.wait()
        try:
            answers[place] = complete(url, model, prompts[place], max_tokens, temperature=temperature)
        except Exception as error:  # noqa: BLE001 (handed to the caller)
            answers[place] = error

    threads = [threading.Thread(target=ask_one, args=(place,)) for place in range(len(prompts))]
    for thread in threads:
        thread.start()
    ready.wait()
    start = time.perf_counter()
    for thread in threads:
        thread.join()
    wall = time.perf_counter() - start
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return [answer for answer in answers if isinstance(answer, Answer)], wall
