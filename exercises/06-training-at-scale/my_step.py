"""Your part of 6.1: a training step that fits into the memory of its device, and trains as the plain step does.

You will learn    which part of training's memory a step can save, which part it cannot, and what saving costs
You will produce  a `step` with at most 0.3 of the plain one's peak (0.35 for one long sequence with a large vocabulary), at
                  most 1.4 times its operations, and the same weights
Try it            gpucourse try 6.1; gpucourse run 6.1 runs it on the device of the exercise
Your part         the body of `step`; keep its name and its parameters. As delivered it is right, but runs out of memory
Reading           modules/06-training-at-scale/lesson.md, "What a step can save"
"""

from __future__ import annotations

import torch
from torch import nn


def step(model: nn.Module, batch: torch.Tensor, optimizer: torch.optim.Optimizer, device: torch.device) -> torch.Tensor:
    """Train `model` on `batch` with one step of `optimizer`, and return the mean loss over all tokens, without its graph.

    `model` is the Transformer of transformer.py, on `device`. Its parts are model.token, model.place, model.blocks (a list of
    layers), model.norm and model.scores.
    `batch` contains (sequences, length + 1) tokens in the processor's memory, for any number of sequences. The first `length`
    tokens are the input, and the last `length` are the tokens to predict. There may be a single sequence, of 1,024 tokens and
    with a vocabulary of 4,096: then, too, the step has to save most of the memory.
    """
    batch = batch.to(device)
    optimizer.zero_grad()
    scores = model(batch[:, :-1])
    loss = nn.functional.cross_entropy(scores.flatten(0, 1), batch[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    return loss.detach()
