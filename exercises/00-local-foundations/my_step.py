"""Your part of 0.1: one step of training.

You will learn    what each line of the training loop is for, and what goes wrong without it
You will produce  a `train_step` that makes the same step as the loop of tiny_transformer.py, for any model and optimizer
Try it            gpucourse try 0.1
Your part         the body of `train_step`; keep its name and its parameters
Reading           modules/00-local-foundations/lesson.md, "The loop"
"""

from __future__ import annotations

import torch
from torch import nn


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer, tokens: torch.Tensor) -> float:
    """Make one step of training on one batch of text, and return the loss of the batch before the step.

    `tokens` are whole numbers of shape (batch, length + 1): complete pieces of text. `model(seen)` takes numbers of shape
    (batch, length) and returns scores of shape (batch, length, vocabulary): at each position, a score for every possible next
    token. The loss is the mean cross-entropy of all batch * length guesses, in nats. `optimizer` has the model's parameters.

    Return the loss as a number, so that nothing from the step stays in memory.
    """
    raise NotImplementedError("train_step: which of the tokens does the model see, and which does it have to guess?")
