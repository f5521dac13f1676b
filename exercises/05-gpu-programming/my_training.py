"""Your part of 5.9: a training run that learns what it should, but takes many times as long as necessary.

You will learn    to find by measuring what costs time, to repair it, and to prove that the result stays the same
You will produce  a train that is at least 5 times as fast, with the same losses, accuracies and weights
Try it            gpucourse try 5.9 counts what it does; gpucourse run 5.9 times it and this version alternately
Your part         the body of `train`; keep its name and its parameters
Reading           modules/05-gpu-programming/lesson-11-slow-training.md
"""

from __future__ import annotations

import copy

import torch
from pipeline import BATCH, CLASSES, MEAN, RATE, STD, make_model, make_order
from torch import nn


def train(rows: list[list[int]], labels: list[int], epochs: int, device: torch.device):
    """Train the model of `make_model` with SGD, and return the loss of each step, the accuracy of each epoch, and the model.

    `rows`: 128 whole numbers from 0 to 255 for each sample, which are normalised with MEAN and STD.
    `labels`: the class of each sample.

    Each epoch takes the samples in the order of `make_order`, BATCH at a time, and each step calls the model once. The accuracy
    is computed from the outputs of the epoch's steps. Losses and accuracies are each a tensor or a list of numbers.
    Losses, accuracies and weights are compared with those of this version, to 0.0001. float32 is precise enough for that, but
    16 bits are not.
    """
    model = make_model().double().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    history, losses, accuracies, best = [], [], [], None
    for epoch in range(epochs):
        right = 0
        order = make_order(len(rows), epoch).tolist()
        for first in range(0, len(order), BATCH):
            places = order[first : first + BATCH]
            batch = [torch.tensor([(number - MEAN) / STD for number in rows[i]]) for i in places]
            x = torch.stack(batch).double().to(device)
            y = torch.tensor([labels[i] for i in places]).to(device)
            out = model(x)
            targets = nn.functional.one_hot(y, CLASSES).double()
            shares = [out[k].exp() / out[k].exp().sum() for k in range(len(y))]
            loss = -sum((targets[k] * shares[k].log()).sum() for k in range(len(y))) / len(y)
            optimizer.zero_grad()
            loss.backward(retain_graph=True)
            optimizer.step()
            losses.append(loss.item())
            history.append(loss)
            guesses = [max(range(CLASSES), key=lambda c, k=k: out[k, c].item()) for k in range(len(y))]
            right += sum(guesses[k] == int(y[k]) for k in range(len(y)))
            best = copy.deepcopy(model.state_dict())
        accuracies.append(100 * right / len(order))
    model.load_state_dict(best)
    return losses, accuracies, model
