"""The learner's parts of exercise 1.2 in its run: the times of recorded streams, and an answer from a real model.

You will learn    what the loop around a model has to do, and what an engine adds
You will produce  nothing directly: first_inference.py uses it for the rows `yours`
Run it            python first_inference.py --model tiny
Your part         write my_latencies.py and my_decoding.py
Reading           modules/01-basic-gpu/lesson-2-engine.md, "What an engine does"
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from completions import tpot

Row = dict[str, Any]


def find_fault(result: Row, sent_s: float, moments: list[float], tokens: int) -> str | None:
    """Return a sentence on the first of the learner's times that does not fit the stream, or None. Each time ends at a
    token."""
    figures = {key: float(result[key]) for key in ("ttft_s", "e2e_s", "tpot_s", "tok_per_s")}
    tpot_end_s = moments[0] + sum(figures["tpot_s"] for _ in range(1, tokens))
    ends = {
        "ttft_s": ("ends at {:.6f} s, but the first token came at {:.6f} s", sent_s + figures["ttft_s"], moments[0]),
        "e2e_s": ("ends at {:.6f} s, but the last token came at {:.6f} s", sent_s + figures["e2e_s"], moments[-1]),
        "tpot_s": ("puts the last token at {:.6f} s, but it came at {:.6f} s", tpot_end_s, moments[-1]),
        "tok_per_s": ("counts {:.6g} tokens in e2e_s, but there are {}", figures["tok_per_s"] * figures["e2e_s"], tokens),
    }  # fmt: skip
    for key, (text, value, right) in ends.items():
        if not abs(value - right) <= 1e-6 * (tokens if key == "tok_per_s" else moments[-1] - sent_s):
            return f"{key} {text.format(value, right)}"
    return None


def summarise_yours(_world: None, streams: list[tuple[float, list[tuple[float, int]]]]) -> Row:
    """Return a row with the median of each of the learner's times over all streams, and a sentence on a wrong time, or `right`.

    A stream has the moment when its request was sent, and the moment and the number of tokens of each event.
    """
    import my_latencies  # the learner's file, which may raise or hang: `own_part` limits its time

    results = [
        dict(my_latencies.summarise(sent_s, [(moment, count) for moment, count in events])) for sent_s, events in streams
    ]
    verdict = "right"
    for result, (sent_s, events) in zip(results, streams, strict=True):
        moments, tokens = [moment for moment, count in events if count], sum(count for _, count in events)
        verdict = find_fault(result, sent_s, moments, tokens) or verdict
    ttft, e2e, tpot_s, speed = (
        statistics.median(float(result[key]) for result in results) for key in ("ttft_s", "e2e_s", "tpot_s", "tok_per_s")
    )
    tokens = sum(count for _, count in streams[0][1])
    row = {"what": "warm, yours", "tokens": tokens, "requests": len(streams)}
    return {
        **row, "ttft_ms": 1e3 * ttft, "tpot_ms": 1e3 * tpot_s, "e2e_ms": 1e3 * e2e, "tok_per_s": speed, "verdict": verdict,
    }  # fmt: skip


class RealModel:
    """A language model as my_decoding.py calls it. It counts the tokens that it computes, and records when each call ended."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.caches: dict[int, tuple[list[int], Any]] = {}
        self.computed, self.ends = 0, []

    def __call__(self, tokens: list[int], cache: list[int]) -> list[list[float]]:
        """Return the scores after each token, and append one entry to the cache for each."""
        import torch
        from transformers import DynamicCache

        _, keys_and_values = self.caches.setdefault(id(cache), (cache, DynamicCache()))
        if keys_and_values.get_seq_length() != len(cache):
            raise ValueError("only the model adds to the cache, and nothing is taken out of it")
        ids = torch.tensor([list(tokens)], device=self.model.device)
        with torch.inference_mode():
            scores = self.model(input_ids=ids, past_key_values=keys_and_values, use_cache=True).logits[0]
        cache.extend(tokens)
        self.computed += len(tokens)
        values = scores.float().tolist()
        self.ends.append(time.perf_counter())
        return values


def decode_yours(_world: None, place: str, prompt: str, count: int) -> Row:
    """Return a row with the figures of transformers' own loop and of my_decoding.py, and the fault of the latter, or
    `right`."""
    import bench
    import my_decoding
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(1)
    device = bench.here()
    dtype = torch.float16 if device.type == "cuda" else torch.float32
    model = AutoModelForCausalLM.from_pretrained(place, dtype=dtype).to(device).eval()
    ids = AutoTokenizer.from_pretrained(place)(prompt)["input_ids"]
    settings = {"do_sample": False, "max_new_tokens": count, "min_new_tokens": count, "pad_token_id": 0}
    inputs = torch.tensor([ids], device=device)
    with torch.inference_mode():
        model.generate(inputs, attention_mask=torch.ones_like(inputs), **settings)  # the first answer is a cold one
        begin = time.perf_counter()
        reference = model.generate(inputs, attention_mask=torch.ones_like(inputs), **settings)[0, len(ids) :].tolist()
        reference_s = time.perf_counter() - begin
    real_model = RealModel(model)
    begin = time.perf_counter()
    tokens = [int(token) for token in my_decoding.generate(real_model, list(ids), count)]
    e2e_s = time.perf_counter() - begin
    min_tokens, verdict = len(ids) + count - 1, "right"
    if tokens != reference:
        places = [place for place, pair in enumerate(zip(tokens, reference, strict=False)) if pair[0] != pair[1]]
        verdict = f"it wrote {len(tokens)} tokens, and they differ from token {places[0] if places else len(tokens)} on"
    elif real_model.computed != min_tokens:
        verdict = f"the model computed {real_model.computed} tokens, although {min_tokens} are enough"
    common = {"tokens": count, "requests": 1}
    ttft_s = real_model.ends[0] - begin
    return {
        "verdict": verdict,
        "arrivals": [
            {"line": "your loop", "at_ms": 1e3 * (end_s - begin), "token": token}
            for token, end_s in enumerate(real_model.ends, start=1)
        ],
        "rows": [
            {"what": "decoding, transformers", **common, "e2e_ms": 1e3 * reference_s, "tok_per_s": count / reference_s},
            {"what": "decoding, yours", **common, "ttft_ms": 1e3 * ttft_s, "tpot_ms": 1e3 * (tpot(e2e_s, ttft_s, count) or 0.0),
             "e2e_ms": 1e3 * e2e_s, "tok_per_s": count / e2e_s, "computed": real_model.computed},
        ],
    }  # fmt: skip
