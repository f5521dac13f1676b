"""The training of 5.9: data, a model, the order of the samples, and the provided training, in which each fault can be
repaired.

my_training.py imports the constants, `make_model` and `make_order` from here.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection
from typing import Any

import torch
from torch import nn

BATCH, RATE, FEATURES, CLASSES, HIDDEN = 32, 0.05, 128, 10, 128
MEAN, STD = 127.5, 73.6  # of whole numbers from 0 to 255 that are equally frequent
FAULTS = {
    1: "numbers normalised in Python, each epoch",
    2: "everything in float64",
    3: "the loss read in each step",
    4: "a list that keeps each graph",
    5: "accuracy counted in Python, by sample",
    6: "all weights copied in each step",
    7: "graphs retained after backward",
    8: "loss summed in Python, by sample",
}
Outcome = tuple[Any, Any, nn.Module]  # losses of all steps, accuracy of each epoch in percent, the model
Train = Callable[[list[list[int]], list[int], int, torch.device], Outcome]
watchers: list[Callable[[nn.Module], None]] = []  # each is called with every new model


def make_data(samples: int, seed: int) -> tuple[list[list[int]], list[int]]:
    """Return rows of whole numbers from 0 to 255 as lists, like the pixels of a file, and a class for each row."""
    source = torch.Generator().manual_seed(seed)
    rows = torch.randint(0, 256, (samples, FEATURES), generator=source)
    teacher = torch.randn(FEATURES, CLASSES, generator=torch.Generator().manual_seed(0))
    labels = ((rows.float() - MEAN) / STD @ teacher).argmax(dim=1)
    return rows.tolist(), labels.tolist()


def make_model() -> nn.Module:
    """Return two linear layers on the CPU in float32, with the same weights at every call."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(FEATURES, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES))
    for show in watchers:
        show(model)
    return model


def make_order(samples: int, epoch: int) -> torch.Tensor:
    """Return the order in which an epoch takes its samples: each number from 0 to samples - 1 once, on the CPU."""
    return torch.randperm(samples, generator=torch.Generator().manual_seed(epoch))


def train_delivered(
    rows: list[list[int]], labels: list[int], epochs: int, device: torch.device, repairs: Collection[int] = ()
) -> Outcome:
    """Run the training of my_training.py as delivered, but repair the faults in `repairs`. Return the outcome."""
    precision = torch.float32 if 2 in repairs else torch.float64
    model = make_model().to(precision).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    history: list[Any] = []
    losses: list[Any] = []
    accuracies, best = [], None
    whole = (torch.tensor(rows, dtype=precision).sub_(MEAN).div_(STD)).to(device) if 1 in repairs else None
    for epoch in range(epochs):
        right_count: Any = 0
        order = make_order(len(rows), epoch).tolist()
        for first in range(0, len(order), BATCH):
            places = order[first : first + BATCH]
            x = whole[places] if whole is not None else _normalise(rows, places, precision).to(device)
            y = torch.tensor([labels[i] for i in places]).to(device)
            out = model(x)
            loss = nn.functional.cross_entropy(out, y) if 8 in repairs else _sum_losses(out, y, precision)
            optimizer.zero_grad()
            loss.backward(retain_graph=7 not in repairs)
            optimizer.step()
            losses.append(loss.detach() if 3 in repairs else loss.item())
            history.append(loss.detach() if 4 in repairs else loss)
            right_count = right_count + (out.argmax(dim=1) == y).sum() if 5 in repairs else right_count + _count_right(out, y)
            best = None if 6 in repairs else copy.deepcopy(model.state_dict())
        accuracies.append(100 * float(right_count) / len(order))
    if best is not None:
        model.load_state_dict(best)
    return torch.stack(losses) if 3 in repairs else losses, accuracies, model


def _normalise(rows: list[list[int]], places: list[int], precision: torch.dtype) -> torch.Tensor:
    batch = [torch.tensor([(number - MEAN) / STD for number in rows[i]]) for i in places]
    return torch.stack(batch).to(precision)


def _sum_losses(out: torch.Tensor, y: torch.Tensor, precision: torch.dtype) -> torch.Tensor:
    targets = nn.functional.one_hot(y, CLASSES).to(precision)
    shares = [out[k].exp() / out[k].exp().sum() for k in range(len(y))]
    return -sum((targets[k] * shares[k].log()).sum() for k in range(len(y))) / len(y)


def _count_right(out: torch.Tensor, y: torch.Tensor) -> int:
    guesses = [max(range(CLASSES), key=lambda c, k=k: out[k, c].item()) for k in range(len(y))]
    return sum(guesses[k] == int(y[k]) for k in range(len(y)))
