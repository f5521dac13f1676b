"""The measurements of 8.5: steps with random acceptance, texts with guesses, times, and the same with the learner's parts."""

from __future__ import annotations

import functools
import importlib
import math
import operator
import random
from typing import Any

import bench
import chi_square
import torch
import trained
from cards import CARDS
from drafts import Draft, LookupDraft, ModelDraft, PairDraft, choose_likeliest, round_weights, speculate
from small_llm import SmallModel
from step_clock import PAGE, Clock

COINS, ROUGH_BITS, LARGEST_GAMMA, STEPS = 30_000, 3, 16, 64
PROMPTS, PROMPT, APART = 6, 100, 2500  # texts that are continued, bytes of each, bytes from the start of one to the next
BATCHES = 1, 4, 16, 64, 256, 512
LARGE_SHAPE = {"width": 64, "layers": 2, "heads": 4, "kv_heads": 2, "hidden": 192}
SMALL_SHAPE = {"width": 32, "layers": 1, "heads": 2, "kv_heads": 1, "hidden": 64}
SEED = 5
Models = tuple[SmallModel, SmallModel, torch.Tensor]  # the large one, the small one, and the text


def toss(alpha: float, gamma: int, source: torch.Generator) -> tuple[float, float]:
    """Return the mean tokens of a step and its standard error, over COINS steps in which a random number accepts each guess."""
    accepted = torch.rand(COINS, gamma, generator=source) < alpha
    tokens = 1 + accepted.long().cumprod(1).sum(1).double()
    return float(tokens.mean()), float(tokens.std()) / math.sqrt(COINS)


def make_rows(alpha: float) -> tuple[list[float], list[float]]:
    """Return two distributions of four tokens with the overlap `alpha` (0.5 to 1): the small model's and the large model's."""
    moved = 1 - alpha
    return [0.25] * 4, [0.25 + 0.6 * moved, 0.25 + 0.4 * moved, 0.25 - 0.5 * moved, 0.25 - 0.5 * moved]


def list_drafts(models: Models) -> dict[str, Draft]:
    """Return the four drafts."""
    large, small, text = models
    return {
        "pairs of bytes": PairDraft(text),
        "small model": ModelDraft(small),
        f"itself in {ROUGH_BITS} bits": ModelDraft(round_weights(large, ROUGH_BITS)),
        "the text itself": LookupDraft(),
    }


def cut_prompts(text: torch.Tensor) -> list[list[int]]:
    """Return pieces of the held-out text."""
    starts = range(len(text) - trained.HELD_OUT, len(text), APART)
    return [text[start : start + PROMPT].tolist() for start in starts][:PROMPTS]


def write_texts(
    models: Models, prompts: list[list[int]], tokens: int, gamma: int, choose: Any = choose_likeliest, *, greedy: bool = True
) -> list[dict[str, Any]]:
    """Return a row for each draft: the steps and guesses for `tokens` tokens after each prompt, and the tokens themselves."""
    rows = []
    for name, draft in list_drafts(models).items():
        texts = [
            speculate(models[0], draft, prompt, tokens, gamma, choose, greedy=greedy, seed=SEED + number)
            for number, prompt in enumerate(prompts)
        ]
        written = [token for text in texts for token in text.tokens[:tokens]]
        rows.append({"draft": name, **functools.reduce(operator.add, texts).describe(), "text": written})
    return rows


def race(step_ns: int, draft_ns: int, alone_ns: int, gamma: int, tokens: float) -> float:
    """Return the speed with `gamma` guesses per step, divided by the speed without guesses, over STEPS steps.

    `alone_ns` is the time of a step without guesses, `tokens` the mean number of tokens of a step with them.
    """
    now_ns, written = 0, 0.0
    for _ in range(STEPS):
        for _ in range(gamma):
            now_ns += draft_ns
        now_ns += step_ns
        written += tokens
    return written * alone_ns / now_ns


def time_batches(clock: Clock, context: int, draft_percent: int, tokens_of: list[float]) -> list[dict[str, Any]]:
    """Return a row for each batch: for each gamma, the simulated speed divided by the speed without guesses.

    `tokens_of` has the mean tokens of a step with 0, 1, ... guesses. A guess takes `draft_percent` of the model's own step.
    """
    rows = []
    for batch in BATCHES:
        alone_ns = clock.ns([(context, 1)] * batch)
        draft_ns = alone_ns * draft_percent // 100
        step_ns = [clock.ns([(context, gamma + 1)] * batch) for gamma in range(len(tokens_of))]
        speedups = [
            race(step, draft_ns, alone_ns, gamma, tokens)
            for gamma, (tokens, step) in enumerate(zip(tokens_of, step_ns, strict=True))
        ]
        fits = batch * context <= PAGE * clock.pages()
        row = {"context": context, "batch": batch, "fits": fits, "sim_speedups": speedups}
        rows.append(row | {"step_ns": step_ns, "draft_ns": draft_ns})
    return rows


def time_products(device: torch.device, counts: list[int]) -> list[dict[str, Any]]:
    """Return a row for each number of tokens: the time of the products of one layer of Llama-3.1-8B in bfloat16 on this GPU.

    The weights of a layer are larger than a GPU's L2 cache, and it is emptied before each measurement.
    """
    card = CARDS["llama-3.1-8b"]
    heads = (card.heads + 2 * card.kv_heads) * card.head_dim
    shapes = (
        (card.width, heads),
        (card.heads * card.head_dim, card.width),
        (card.width, 2 * card.hidden),
        (card.hidden, card.width),
    )
    weights = [torch.randn(shape, device=device, dtype=torch.bfloat16) for shape in shapes]
    rows = []
    for count in counts:
        inputs = [torch.randn(count, len(weight), device=device, dtype=torch.bfloat16) for weight in weights]

        def multiply(inputs: list[torch.Tensor] = inputs) -> None:
            for source, weight in zip(inputs, weights, strict=True):
                source @ weight

        seconds = bench.measure(multiply, device, flush=bench.cache_flush(device))
        rows.append({"tokens": count, **bench.spread_ms(seconds)})
    return rows


# --- in the processes of the learner's parts -----------------------------------------------------------------------------


def load(path: str) -> Models:
    """Return the models that the run has trained."""
    models = torch.load(path, weights_only=True)
    large, small = (SmallModel(dtype=torch.float32, **shape) for shape in (LARGE_SHAPE, SMALL_SHAPE))
    for model, tensors in ((large, models["large"]), (small, models["small"])):
        for tensor, value in zip(model.tensors(), tensors, strict=True):
            tensor.copy_(value)
    return large, small, models["text"]


def save(path: str, models: Models) -> None:
    """Write the models for the process of the learner's part."""
    large, small, text = models
    torch.save({"large": large.tensors(), "small": small.tensors(), "text": text}, path)


def use_verify(
    _world: Any, path: str, prompts: list[list[int]], tokens: int, gamma: int, alpha: float, samples: int
) -> dict[str, Any]:
    """Return the results of the learner's rule: texts at both temperatures, tokens of steps, and counts of short texts."""
    torch.set_num_threads(1)
    part = importlib.import_module("my_accept")

    def verify(*arguments: Any) -> list[int]:
        return [int(token) for token in part.verify(*arguments)]

    models = load(path)
    q, p = make_rows(alpha)
    source = random.Random(SEED)
    lengths = []
    for _ in range(COINS // 3):
        guesses = source.choices(range(4), q, k=gamma)
        lengths.append(len(verify(guesses, [q] * gamma, [p] * (gamma + 1), source.random)))
    mean = sum(lengths) / len(lengths)
    deviation = math.sqrt(sum((length - mean) ** 2 for length in lengths) / (len(lengths) - 1))
    counts, _, _ = chi_square.count_texts(verify, samples, 2, SEED)
    return {
        "greedy": write_texts(models, prompts, tokens, gamma, verify),
        "sampled": write_texts(models, prompts, tokens, gamma, verify, greedy=False),
        "tokens_per_step": mean, "standard_error": deviation / math.sqrt(len(lengths)), "counts": counts.tolist(),
    }  # fmt: skip


def use_formulas(_world: Any, alpha: float, batches: list[dict[str, Any]], largest: int) -> dict[str, Any]:
    """Return the results of the learner's formulas: the tokens of steps with 0 to `largest` guesses, and a number of guesses
    for each batch."""
    module = importlib.import_module("my_speedup")
    expected = [float(module.expected_tokens(alpha, gamma)) for gamma in range(largest + 1)]
    return {
        "expected": expected,
        "best": [
            int(module.best_gamma(alpha, lambda tokens, row=row: row["step_ns"][tokens - 1], row["draft_ns"], largest))
            for row in batches
        ],
    }
