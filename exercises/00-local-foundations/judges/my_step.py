"""Judges my_step.py of 0.1: makes three steps with a small model, and compares them with correct steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from gpucourse.judge import Case, Part, Verdict, Way
from gpucourse.judge.cases import same

WAYS = {
    "gradients-add-up": Way(
        "the first step is right, but the second is not: backward adds to the gradients that are already there, and nothing "
        "set them to zero. So each step also used the gradients of all earlier steps",
        ("    optimizer.zero_grad()\n", ""),
    ),
    "step-first": Way(
        "the optimizer stepped before backward had computed the gradients of this batch: it used those of the previous batch, "
        "or none at all",
        ("    loss.backward()\n    optimizer.step()\n", "    optimizer.step()\n    loss.backward()\n"),
    ),
    "gradients-erased": Way(
        "the gradients were set to zero between backward and step, so the optimizer had nothing to go by",
        ("    optimizer.zero_grad()\n    loss.backward()\n", "    loss.backward()\n    optimizer.zero_grad()\n"),
    ),
    "no-step": Way(
        "no weight changed: backward only computes the gradients, and the optimizer has to step",
        ("    optimizer.step()\n", ""),
    ),
    "no-backward": Way(
        "no gradient was computed, so the optimizer had nothing to go by: call backward on the loss first",
        ("    loss.backward()\n", ""),
    ),
    "no-shift": Way(
        "the model was asked for the token that it had just seen. It would only learn to copy, and its loss would "
        "fall to almost nothing: the next token is one place further on",
        ("tokens[:, :-1], tokens[:, 1:]", "tokens[:, :-1], tokens[:, :-1]"),
    ),
    "swapped": Way(
        "the model was shown the later tokens and asked for the earlier ones: it has to guess what comes next",
        ("inputs, targets = tokens[:, :-1], tokens[:, 1:]", "targets, inputs = tokens[:, :-1], tokens[:, 1:]"),
    ),
    "last-only": Way(
        "only the last token of each piece was guessed. One forward pass returns the scores of every position. Use them "
        "all: a step then learns from as many guesses as a piece has tokens",
        ("scores.flatten(0, 1), targets.flatten()", "scores[:, -1], targets[:, -1]"),
    ),
    "summed": Way(
        "the loss is the sum over all guesses: a batch twice as large would make steps twice as large. Take the mean",
        ("targets.flatten())", 'targets.flatten(), reduction="sum")'),
    ),
    "softmax-twice": Way(
        "the scores went through a softmax before cross_entropy, which applies a softmax itself: the loss can hardly fall",
        ("scores = model(inputs)", "scores = model(inputs).softmax(dim=-1)"),
    ),
    "loss-after": Way(
        "the step is right, but the loss is that of the model after the step: return the loss that the step was computed from",
        ("return loss.item()", "return nn.functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten()).item()"),
    ),
    "another-step": Way(
        "the loss is right, but the weights after step {step} are not: something besides one step along this batch's "
        "gradient changed them",
        ("    optimizer.step()\n", "    optimizer.step()\n    optimizer.step()\n"),
    ),
    "graph-kept": Way(
        "the step is right, but the loss is still a tensor with its whole graph. A list of the losses of all "
        "steps would keep all activations of all steps in memory: return a number, loss.item()",
        ("return loss.item()", "return loss"),
    ),
}
STEPS, TOLERANCE = 3, 1e-3
WEIGHTS = ": the weights after step "


class Model(nn.Module):
    """A model in which each position sees the mean of the tokens up to it, so no guess depends on later tokens."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.character, self.out = nn.Embedding(vocabulary, 6), nn.Linear(6, vocabulary)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return scores of shape (batch, length, vocabulary)."""
        return self.out(self.character(x).cumsum(dim=1) / torch.arange(1, x.shape[1] + 1)[:, None])


class Optimizer:
    """Gradient descent with momentum, which records its calls. Importing torch.optim would take a second."""

    def __init__(self, model: nn.Module, lr: float, momentum: float, events: list[str]) -> None:
        self.weights, self.lr, self.momentum, self.events = list(model.parameters()), lr, momentum, events
        self.param_groups = [{"params": self.weights, "lr": lr, "momentum": momentum}]
        self.speeds = [torch.zeros_like(weight) for weight in self.weights]

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget all gradients."""
        for weight in self.weights:
            weight.grad = None if set_to_none or weight.grad is None else torch.zeros_like(weight)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make a step against the gradients. A closure first computes the gradients, and its value is returned."""
        with torch.enable_grad():
            loss = closure() if closure else None
        has_gradient = any(weight.grad is not None and bool(weight.grad.any()) for weight in self.weights)
        self.events.append("step" if has_gradient else "empty step")
        for weight, speed in zip(self.weights, self.speeds, strict=True):
            if weight.grad is not None:
                weight.sub_(self.lr * speed.mul_(self.momentum).add_(weight.grad))
        return loss


@dataclass(frozen=True)
class Setting:
    """One case: the size of the model and of its batches, and the optimizer's momentum."""

    name: str
    vocabulary: int
    shape: tuple[int, int]
    momentum: float

    def steps(self, step: Callable[..., Any]) -> tuple[list[Any], list[str]]:
        """Return the loss and the weights after each of three steps, and the calls during these steps."""
        torch.manual_seed(self.vocabulary)
        model, events = Model(self.vocabulary), list[str]()
        optimizer = Optimizer(model, 0.5, self.momentum, events)
        for weight in model.parameters():
            weight.register_hook(lambda _: events.append("backward"))
        rows = []
        for tokens in torch.randint(self.vocabulary, (STEPS, *self.shape)):
            loss = step(model, optimizer, tokens.clone())
            rows.append([loss, [weight.detach().clone() for weight in model.parameters()]])
        return rows, events


SETTINGS = (
    Setting("1 piece of 1 token", 5, (1, 2), 0.0),
    Setting("1 piece of 6 tokens", 5, (1, 7), 0.0),
    Setting("3 pieces of 6 tokens", 7, (3, 7), 0.0),
    Setting("3 pieces of 6 tokens, with momentum", 7, (3, 7), 0.9),
    Setting("4 pieces of 9 tokens, with momentum", 11, (4, 10), 0.9),
)


def judge(part: Part) -> None:
    """Judge the losses and all weights of three steps in each setting."""
    torch.set_num_threads(1)
    train_step = part.function("train_step")
    cases = []
    for setting in SETTINGS:
        answer, events = part.call(setting.steps, train_step, case=setting.name)
        right, _ = setting.steps(make_step())
        _name_what_is_missing(part, setting.name, events, answer, right)
        if any(isinstance(loss, torch.Tensor) and loss.requires_grad for loss, _ in answer) and same(answer, right, TOLERANCE):
            raise part.wrong("graph-kept", setting.name)
        cases += _list_cases(setting, answer, right)
    try:
        part.compare(cases, tolerance=TOLERANCE)
    except Verdict as verdict:
        case, _, step = verdict.case.rpartition(WEIGHTS)
        if verdict.way == "other" and case:
            raise part.wrong("another-step", case, step=step) from None
        raise
    part.note(f"{STEPS} steps in {len(SETTINGS)} settings: losses and all weights are right")


def _list_cases(setting: Setting, answer: list[Any], right: list[Any]) -> list[Case]:
    """Return the loss and the weights of each step as cases. Each case includes the values of every wrong way."""
    ways = {name: setting.steps(step)[0] for name, step in VARIANTS.items()}
    knobs = {"pieces": setting.shape[0], "tokens": setting.shape[1] - 1, "momentum": setting.momentum}
    cases = []
    for step in range(STEPS):
        for place, (kind, count) in enumerate(((": the loss of step ", "step"), (WEIGHTS, "after step"))):
            of_ways = {way: rows[step][place] for way, rows in ways.items()}
            name = f"{setting.name}{kind}{step + 1}"
            cases.append(Case(name, answer[step][place], right[step][place], of_ways, knobs={**knobs, count: step + 1}))
    return cases


def _name_what_is_missing(part: Part, case: str, events: list[str], answer: list[Any], right: list[Any]) -> None:
    """If the weights are wrong after the first step, name the mistake that the order of calls shows."""
    if all(torch.allclose(weights, its, rtol=1e-3) for weights, its in zip(answer[0][1], right[0][1], strict=True)):
        return
    if "backward" not in events:
        raise part.wrong("no-backward", case)
    if events == ["backward"] * len(events) and all(map(torch.equal, answer[0][1], answer[-1][1])):
        raise part.wrong("no-step", case)
    if events[0] != "backward":
        raise part.wrong("step-first", case)
    if "step" not in events:
        raise part.wrong("gradients-erased", case)


def make_step(
    *,
    zero: bool = True,
    input_places: slice = slice(None, -1),
    target_places: slice = slice(1, None),
    places: slice = slice(None),
    reduction: str = "mean",
    softmax: bool = False,
    loss_after_step: bool = False,
) -> Callable[..., float]:
    """Return a step that is right, or wrong in one way."""

    def loss_of(model: nn.Module, tokens: torch.Tensor) -> torch.Tensor:
        scores, targets = model(tokens[:, input_places])[:, places], tokens[:, target_places][:, places]
        scores = scores.softmax(dim=-1) if softmax else scores
        return nn.functional.cross_entropy(scores.flatten(0, 1), targets.flatten(), reduction=reduction)

    def step(model: nn.Module, optimizer: Optimizer, tokens: torch.Tensor) -> float:
        loss = loss_of(model, tokens)
        if zero:
            optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return (loss_of(model, tokens) if loss_after_step else loss).item()

    return step


VARIANTS = {
    "gradients-add-up": make_step(zero=False),
    "no-shift": make_step(target_places=slice(None, -1)),
    "swapped": make_step(input_places=slice(1, None), target_places=slice(None, -1)),
    "last-only": make_step(places=slice(-1, None)),
    "summed": make_step(reduction="sum"),
    "softmax-twice": make_step(softmax=True),
    "loss-after": make_step(loss_after_step=True),
}
