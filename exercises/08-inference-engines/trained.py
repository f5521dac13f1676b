"""Small language models that learn in seconds from the source files of Python's standard library. A byte is a token.

Models with random weights predict nothing: no guess is accepted, and rounding changes nothing that matters. These models can
continue Python's source well enough for both.
"""

from __future__ import annotations

import math
import sysconfig
from pathlib import Path
from typing import Any

import torch
from small_llm import Attend, Multiply, SmallModel

FILES, HELD_OUT = 60, 20_000  # files that are read; bytes at the end of the text from which no model learns
BATCH, LENGTH, LEARNING_RATE = 16, 64, 6e-3


def read_text() -> torch.Tensor:
    """Return the first source files of Python's library as tokens, one after the other. Raises FileNotFoundError if there are
    too few."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    files = sorted(folder.glob("*.py"))[:FILES]
    data = b"".join(file.read_bytes() for file in files)
    if len(data) < 5 * HELD_OUT:
        text = f"{folder} has too few source files to learn from ({len(data):,} bytes); use a Python with its library in files"
        raise FileNotFoundError(text)
    return torch.frombuffer(bytearray(data), dtype=torch.uint8).long()


def attend_in_rows(length: int) -> Attend:
    """Return an attention function that treats the flat tokens as separate sequences of `length` tokens."""

    def attend(_layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        shared = query.shape[1] // key.shape[1]
        q, k, v = (tensor.view(-1, length, *tensor.shape[1:]).transpose(1, 2) for tensor in (query, key, value))
        k, v = k.repeat_interleave(shared, 1), v.repeat_interleave(shared, 1)
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(0, 1)

    return attend


def score_rows(
    model: SmallModel, rows: torch.Tensor, *, multiply: Multiply | None = None, attend: Attend | None = None
) -> torch.Tensor:
    """Return the scores [sequences × length, vocabulary] of the tokens that follow each token of `rows` [sequences, length]."""
    sequences, length = rows.shape
    places = torch.arange(length).repeat(sequences)
    return model.forward(rows.flatten(), places, attend or attend_in_rows(length), multiply=multiply)


def train(text: torch.Tensor, *, steps: int, seed: int = 0, **shape: Any) -> SmallModel:
    """Return a model of this shape (see SmallModel) after `steps` steps of AdamW on the text without its held-out end."""
    model = SmallModel(dtype=torch.float32, spread=0.06, seed=seed, **shape)
    source = torch.Generator().manual_seed(seed)
    weights = [tensor.requires_grad_() for tensor in model.tensors()]
    optimizer = torch.optim.AdamW(weights, lr=LEARNING_RATE, weight_decay=0.01, betas=(0.9, 0.95))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, steps, pct_start=0.1)
    for _ in range(steps):
        starts = torch.randint(len(text) - HELD_OUT - LENGTH - 1, (BATCH,), generator=source)
        rows = torch.stack([text[start : start + LENGTH + 1] for start in starts.tolist()])
        loss = torch.nn.functional.cross_entropy(score_rows(model, rows[:, :-1]), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    for tensor in weights:
        tensor.requires_grad_(False)
    return model


def held_out_rows(text: torch.Tensor, sequences: int, length: int) -> torch.Tensor:
    """Return the first sequences of the held-out text, [sequences, length + 1]: the last token of each is only predicted."""
    end = text[-HELD_OUT:]
    return torch.stack([end[number * length : number * length + length + 1] for number in range(sequences)])


@torch.no_grad()
def perplexity(model: SmallModel, text: torch.Tensor, *, sequences: int = 32, length: int = 128) -> float:
    """Return the perplexity for held-out text: e to the mean cross-entropy of a token."""
    rows = held_out_rows(text, sequences, length)
    return math.exp(float(torch.nn.functional.cross_entropy(score_rows(model, rows[:, :-1]), rows[:, 1:].flatten())))
