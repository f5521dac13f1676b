"""Judge my_scales.py of 8.6: `smooth` by its formula, and `search` by the error of a layer's output with the chosen scales."""

from __future__ import annotations

import math
from typing import Any

import torch

from gpucourse.judge import Part, Verdict, Way, plant_ways

GROUP, TOP = 32, 15
ENOUGH = 1.01  # times the error of the best candidate


WAYS = {
    "upside-down": Way(
        "channel {channel}, the one with the largest activations, has the smallest scale. Activations are divided by the "
        "scale, so the outliers grow",
        (
            "activation.clamp(min=1e-5) ** alpha / weight.abs().amax(0).clamp(min=1e-5) ** (1 - alpha)",
            ("1 / (activation.clamp(min=1e-5) ** alpha / weight.abs().amax(0).clamp(min=1e-5) ** (1 - alpha))"),
        ),
    ),
    "powers-swapped": Way(
        "alpha belongs to the activations and 1 - alpha to the weights: with alpha 1, the weights do not count",
        (
            "activation.clamp(min=1e-5) ** alpha / weight.abs().amax(0).clamp(min=1e-5) ** (1 - alpha)",
            "activation.clamp(min=1e-5) ** (1 - alpha) / weight.abs().amax(0).clamp(min=1e-5) ** alpha",
        ),
    ),
    "multiplied": Way(
        "you multiply the two powers. A channel with large weights needs a smaller scale, as its weights are multiplied by "
        "it: divide",
        (
            "activation.clamp(min=1e-5) ** alpha / weight.abs().amax(0).clamp(min=1e-5) ** (1 - alpha)",
            "activation.clamp(min=1e-5) ** alpha * weight.abs().amax(0).clamp(min=1e-5) ** (1 - alpha)",
        ),
    ),
    "weights-of-an-output": Way(
        "you took the largest weights of the outputs. An input channel is multiplied by one column of the weight [out, in]:"
        " the maximum is over dimension 0",
        (
            "activation.clamp(min=1e-5) ** alpha / weight.abs().amax(0).clamp(min=1e-5) ** (1 - alpha)",
            ("activation.clamp(min=1e-5) ** alpha / weight.abs().amax(1)[: len(activation)].clamp(min=1e-5) ** (1 - alpha)"),
        ),
    ),
    "one-activation-for-all": Way(
        "every channel has the same activation in your formula. Each has its own maximum, and outliers are in a few of them",
        (
            "activation.clamp(min=1e-5) ** alpha / weight.abs().amax(0).clamp(min=1e-5) ** (1 - alpha)",
            (
                "activation.max().expand_as(activation).clamp(min=1e-5) ** alpha / "
                "weight.abs().amax(0).clamp(min=1e-5) ** (1 - alpha)"
            ),
        ),
    ),
    "signed-weights": Way(
        "channel {channel} has a large negative weight, and its scale ignores it: take the largest absolute weight",
        (
            "activation.clamp(min=1e-5) ** alpha / weight.abs().amax(0).clamp(min=1e-5) ** (1 - alpha)",
            "activation.clamp(min=1e-5) ** alpha / weight.amax(0).clamp(min=1e-5) ** (1 - alpha)",
        ),
    ),
    "by-the-weights": Way(
        "the scales follow the weights, and the output changes by {change:.2%} (without scales {plain:.2%}, with the best "
        "{best:.2%}). A channel matters because its inputs are large",
        ("size = inputs.abs().mean(0)", "size = weight.abs().mean(0)"),
    ),
    "change-of-the-weights": Way(
        "the output changes by {change:.2%} (without scales {plain:.2%}, with the best {best:.2%}): you compare weights. The "
        "harm of an error in a weight grows with the input that it is multiplied by",
        (
            "float((inputs @ (rough - weight).T).pow(2).mean())",
            "float((rough - weight).pow(2).mean())",
        ),
    ),
    "not-taken-back": Way(
        "the output changes by {change:.2%} (without scales {plain:.2%}, with the best {best:.2%}): your "
        "comparison does not divide by the scale after rounding, so every scale looks worse than none",
        ("round_trip(weight * scale) / scale", "round_trip(weight * scale)"),
    ),
    "divided-first": Way(
        "your comparison divides the weights by the scale before they are rounded, and multiplies afterwards. That rounds the "
        "important channels more coarsely; multiply first",
        ("round_trip(weight * scale) / scale", "round_trip(weight / scale) * scale"),
    ),
    "always-one": Way(
        "the power is always 1. The largest channels then set the steps of all others; the output changes by {change:.2%}, "
        "and by {best:.2%} with the best power",
        ("size ** (twentieth / 20)", "size**1.0"),
    ),
    "last-one": Way(
        "you return the last candidate, or the one with the largest change ({change:.2%}), not the best ({best:.2%})",
        ("if change < least:", "if True:"),
    ),
}


def judge(part: Part) -> None:
    """Judge smooth, then search."""
    torch.set_num_threads(1)
    _judge_smooth(part)
    _judge_search(part)


def _judge_smooth(part: Part) -> None:
    smooth = part.function("smooth")
    source = torch.Generator().manual_seed(3)
    activation = torch.rand(24, generator=source) + 0.5
    activation[[5, 17]] *= 40
    weight = torch.randn(40, 24, generator=source) * (0.5 + torch.rand(24, generator=source))
    weight[2, 5] = -9.0
    dead, dead_weight = activation.clone(), weight.clone()
    dead[3], dead_weight[:, 8] = 0.0, 0.0
    settings = [(activation, weight, alpha) for alpha in (0.5, 0.0, 0.8, 1.0)] + [(dead, dead_weight, 0.5)]
    names = [f"smooth, alpha {alpha}" for *_, alpha in settings[:-1]] + ["smooth, channels of zeros"]
    results = []
    for name, (largest, matrix, alpha) in zip(names, settings, strict=True):
        result = part.call(smooth, largest.clone(), matrix.clone(), alpha, case=name)
        results.append(_read_scale(result, 24, name))
    rights = [
        largest.clamp(min=1e-5) ** alpha / matrix.abs().amax(0).clamp(min=1e-5) ** (1 - alpha)
        for largest, matrix, alpha in settings
    ]
    if all(map(is_close, results, rights)):
        return
    for way, module in plant_ways(WAYS, __file__):
        if all(is_close(result, module.smooth(*setting)) for result, setting in zip(results, settings, strict=True)):
            raise part.wrong(way, names[0], channel=5)
    at = next(at for at, pair in enumerate(zip(results, rights, strict=True)) if not is_close(*pair))
    channel = int((results[at] - rights[at]).abs().nan_to_num(nan=torch.inf).argmax())
    text = f"channel {channel} has the scale {float(results[at][channel]):g} instead of {float(rights[at][channel]):g}"
    raise Verdict("failed", "other", text, names[at])


def make_layers() -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Return pairs of weights [96, 64] and inputs [128, 64] by name. In the last pair, channels with large inputs have small
    weights."""
    layers = {}
    for spread, power in ((1.0, 0.0), (1.5, 0.0), (0.5, 0.0), (1.5, 0.7)):
        source = torch.Generator().manual_seed(int(10 * spread))
        sizes = torch.exp(spread * torch.randn(64, generator=source))
        inputs = torch.randn(128, 64, generator=source) * sizes
        inputs[:, 9] = 0.0  # a channel that never has an input
        name = f"search, inputs that differ by a factor of about {math.exp(spread):.1f}" + ", and small weights" * (power > 0)
        layers[name] = torch.randn(96, 64, generator=source) / sizes**power, inputs
    return layers


class Observer:
    """Round to 4 bits in groups of 32, and remember the first numbers of each matrix, relative to its size."""

    def __init__(self) -> None:
        self.matrices: set[tuple[float, ...]] = set()

    def __call__(self, weight: torch.Tensor) -> torch.Tensor:
        """Return the weights after rounding."""
        self.matrices.add(tuple(round(number, 4) for number in (10 * weight / weight.norm())[0, :4].tolist()))
        return round_trip(weight)


def _judge_search(part: Part) -> None:
    search = part.function("search")
    layers, scales, observers, failure = make_layers(), [], [], None
    notes = []
    for case, (weight, inputs) in layers.items():
        observers.append(Observer())
        scales.append(_read_scale(part.call(search, weight.clone(), inputs.clone(), observers[-1], case=case), 64, case))
        change, size = measure(weight, inputs, scales[-1]), inputs.abs().mean(0).clamp(min=1e-5)
        candidates = [measure(weight, inputs, size ** (twentieth / 20)) for twentieth in range(21)]
        notes.append(f"{100 * candidates[0]:.1f} to {100 * change:.1f} %")
        if change > ENOUGH * min(candidates) and failure is None:
            failure = case, change, candidates[0], min(candidates)
    if failure is None:
        part.note(f"rounding to 4 bits changes four outputs less with your scales: {', '.join(notes)}")
        return
    case, change, plain, best = failure
    for way, module in plant_ways(WAYS, __file__):
        planted_observers = [Observer() for _ in layers]
        planted = [module.search(*layer, observer) for layer, observer in zip(layers.values(), planted_observers, strict=True)]
        is_same_search = [observer.matrices for observer in observers] == [observer.matrices for observer in planted_observers]
        if is_same_search and all(
            is_close(mine / mine.mean(), other / other.mean()) for mine, other in zip(scales, planted, strict=True)
        ):
            raise part.wrong(way, case, change=change, plain=plain, best=best)
    text = (
        f"with your scales the output changes by {change:.2%}; without scales by {plain:.2%}, and with the best candidate by "
    )
    raise Verdict("failed", "other", f"{text}{best:.2%}", case)


def round_trip(weight: torch.Tensor) -> torch.Tensor:
    """Return the weights after rounding to 4 bits in groups of 32."""
    groups = weight.view(len(weight), -1, GROUP)
    low, high = groups.amin(-1, keepdim=True).clamp(max=0), groups.amax(-1, keepdim=True).clamp(min=0)
    step = ((high - low) / TOP).clamp(min=1e-12)
    zero = (-low / step).round()
    return (((groups / step).round() + zero).clamp(0, TOP) - zero).mul(step).view(weight.shape)


def measure(weight: torch.Tensor, inputs: torch.Tensor, scale: torch.Tensor) -> float:
    """Return the error of the output after rounding with these scales, relative to the output."""
    output = inputs @ weight.T
    return float((inputs @ (round_trip(weight * scale) / scale).T - output).norm() / output.norm())


def _read_scale(scale: Any, channels: int, case: str) -> torch.Tensor:
    if scale is None:
        raise Verdict("failed", "no-answer", "it returned None: is the return missing?", case)
    if not isinstance(scale, torch.Tensor) or list(scale.shape) != [channels]:
        form = list(scale.shape) if isinstance(scale, torch.Tensor) else type(scale).__name__
        raise Verdict("failed", "other", f"it returned {form}, not a tensor of {channels} scales, one for each input", case)
    if not bool((scale.isfinite() & (scale > 0)).all()):
        channel = int((~(scale.isfinite() & (scale > 0))).nonzero()[0])
        text = f"channel {channel} has the scale {float(scale[channel]):g}: weights are multiplied and divided by it"
        raise Verdict("failed", "other", text, case)
    return scale.float()


def is_close(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Return whether two tensors of scales agree within rounding."""
    return torch.allclose(left, right, rtol=1e-3, atol=1e-9)
