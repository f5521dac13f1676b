"""A small model of any width, and the learning rate that suits it best, for 9.7.

Blocks mix places by a running mean, and then transform each place alone. There is no attention, so hundreds of training runs
take seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from transformer import counting_text

VOCABULARY, LENGTH, BLOCKS, BATCH, BASE = 64, 16, 1, 16, 32
CHECK_RATE, CHECK_STEPS, LAST = 2.0**-8, 3, 8
Shape = tuple[int, int]
Settings = Callable[[str, Shape, Shape], tuple[float, float, float]]


def keep_standard(kind: str, shape: Shape, _base_shape: Shape) -> tuple[float, float, float]:
    """Return the standard settings: each matrix keeps the size of its input, and all have the same rate."""
    return (1.0 if kind == "embedding" else shape[0] ** -0.5), 1.0, 1.0


def list_shapes(width: int) -> dict[str, Shape]:
    """Return the shape of each matrix (inputs, outputs)."""
    shapes = {"embedding": (VOCABULARY, width), "embedding of places": (LENGTH, width)}
    for block in range(BLOCKS):
        shapes |= {f"mix {block}": (width, width), f"up {block}": (width, 4 * width), f"down {block}": (4 * width, width)}
    return shapes | {"head": (width, VOCABULARY)}


def find_kind(name: str) -> str:
    """Return embedding, hidden or head."""
    return "hidden" if name[-1].isdigit() else name.split(maxsplit=1)[0]


class WideModel(nn.Module):
    """The model, with the settings of each matrix. `rates` are the factors of the learning rate, by name."""

    def __init__(self, width: int, settings: Settings) -> None:
        super().__init__()
        source, base_shapes = torch.Generator().manual_seed(0), list_shapes(BASE)
        self.width, self.weights, self.rates, self.times = width, nn.ParameterDict(), dict[str, float](), dict[str, float]()
        for name, shape in list_shapes(width).items():
            values = settings(find_kind(name), shape, base_shapes[name])
            deviation, rate, times = check_settings(values)
            self.weights[name] = nn.Parameter(torch.randn(shape, generator=source) * deviation)
            self.rates[name], self.times[name] = rate, times

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        weights = {name: self.times[name] * weight for name, weight in self.weights.items()}
        x = weights["embedding"][tokens] + weights["embedding of places"]
        counts = torch.arange(1, LENGTH + 1)[:, None]
        for block in range(BLOCKS):
            x = x + torch.cumsum(self._norm(x) @ weights[f"mix {block}"], 1) / counts
            x = x + nn.functional.gelu(self._norm(x) @ weights[f"up {block}"]) @ weights[f"down {block}"]
        return self._norm(x) @ weights["head"]

    def _norm(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.layer_norm(x, (self.width,))


def check_settings(values: object) -> tuple[float, float, float]:
    """Return the three numbers of a matrix. Raises ValueError unless they are positive and finite."""
    if not isinstance(values, (tuple, list)) or len(values) != 3:
        raise ValueError(f"settings returned {values!r} instead of three numbers")
    deviation, rate, times = map(float, values)
    if not all(math.isfinite(value) and value > 0 for value in (deviation, rate, times)):
        raise ValueError(f"settings returned {values!r}: all three must be above 0")
    return deviation, rate, times


def train(width: int, settings: Settings, rate: float, steps: int) -> tuple[float | None, float]:
    """Return the mean loss of the last steps, or None if it is not finite, and how much three steps change the scores."""
    model = WideModel(width, settings)
    groups = [{"params": [weight], "lr": rate * model.rates[name]} for name, weight in model.weights.items()]
    optimizer, losses, change = torch.optim.Adam(groups, betas=(0.9, 0.95)), [], 0.0
    probe = counting_text(8, LENGTH, VOCABULARY, torch.Generator().manual_seed(5))[:, :-1]
    with torch.no_grad():
        before = model(probe)
    for step in range(steps):
        text = counting_text(BATCH, LENGTH, VOCABULARY, torch.Generator().manual_seed(100 + step))
        loss = nn.functional.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
        if step + 1 == CHECK_STEPS:
            with torch.no_grad():
                change = float((model(probe) - before).square().mean().sqrt())
    mean = sum(losses[-LAST:]) / len(losses[-LAST:])
    return (mean if math.isfinite(mean) else None), change


def measure(world: Any, settings: Settings, widths: list[int], rates: list[int], steps: int) -> list[dict[str, Any]]:
    """Return the rows of the training runs that this rank computes: one for each width and rate, and one check per width."""
    torch.set_num_threads(1)
    tasks = [(width, rate, steps) for width in widths for rate in rates]
    tasks += [(width, None, CHECK_STEPS) for width in sorted({*widths, 2 * max(widths)})]
    tasks.sort(key=lambda task: -task[0] * task[2])
    rows = []
    for width, rate, count in tasks[world.rank :: world.size]:
        loss, change = train(width, settings, CHECK_RATE if rate is None else 2.0**rate, count)
        rows.append({"width": width, "rate": rate, "loss": loss, "change": change})
    return rows


def measure_yours(world: Any, widths: list[int], rates: list[int], steps: int) -> list[dict[str, Any]]:
    """Return the rows of `measure` with the learner's my_widths.py."""
    import my_widths

    return measure(world, my_widths.settings, widths, rates, steps)


def find_slope(checks: list[dict[str, Any]]) -> float:
    """Return how many powers of 2 the change of the scores grows by if the width doubles (least squares)."""
    x = [math.log2(row["width"]) for row in checks]
    y = [math.log2(max(row["change"], 1e-30)) for row in checks]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    above = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return above / sum((a - mean_x) ** 2 for a in x)


def find_best(rows: list[dict[str, Any]]) -> dict[int, int]:
    """Return the power of 2 of the rate with the least loss, for each width."""
    best: dict[int, tuple[float, int]] = {}
    for row in rows:
        if row["loss"] is not None:
            best[row["width"]] = min(best.get(row["width"], (math.inf, 0)), (row["loss"], row["rate"]))
    return {width: rate for width, (_, rate) in sorted(best.items())}
