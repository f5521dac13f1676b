"""Your part of 5.2: turn a training loop that is good on a CPU into one that is good on a GPU and still runs everywhere.

You will learn    what has to move and when, what makes the processor wait for the GPU, how to train as well in 16 bits as in 32
You will produce  a loop that moves model and data, never reads a value on its way, and trains in mixed precision
Try it            gpucourse try 5.2; gpucourse run 5.2 measures it on the device of the exercise, too
Your part         the body of `train`; keep its name and its parameters. As delivered it runs on a CPU, whatever `device` says
Reading           modules/05-gpu-programming/lesson-3-pytorch.md
"""

from __future__ import annotations

import torch
from torch import nn

RATE = 1e-3
CLIP = 0.25  # the largest norm that the gradients of a step may have, all together


def train(
    model: nn.Module,
    inputs: list[list[float]],
    labels: list[int],
    batch_size: int,
    device: torch.device,
    steps: int,
    dtype: torch.dtype,
) -> torch.Tensor:
    """Train `model` for `steps` steps of AdamW on `device`, and return the loss of each step, as a tensor of `steps` numbers.

    In every format, the true gradients of a step are clipped to a norm of CLIP before the optimizer uses them.
    Step s takes batch_size rows from row s * batch_size on, modulo the number of rows, which is a multiple of batch_size. With
    `dtype` float32, everything is float32. float16 and bfloat16 mean mixed precision: matrix products in 16 bits, parameters in
    float32.
    `model`, `inputs` and `labels` are on the CPU at the beginning. The caller reads the losses after the end.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    losses = []
    for step in range(steps):
        first = step * batch_size % len(inputs)
        x = torch.tensor(inputs[first : first + batch_size])
        y = torch.tensor(labels[first : first + batch_size])
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor(losses)
