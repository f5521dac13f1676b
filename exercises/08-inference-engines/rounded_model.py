"""A trained model whose weights, activations or cache are rounded, and how far its predictions are from the full model's."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import trained
from small_llm import Attend, Multiply, SmallModel
from trained import attend_in_rows, score_rows

SHAPE = {"width": 64, "layers": 2, "heads": 4, "kv_heads": 2, "hidden": 192}
SEQUENCES, LENGTH = 12, 128
OUTLIERS = 5, 23, 41  # channels
BEHIND = {"attention_norm": ("query", "key", "value"), "mlp_norm": ("gate", "up")}
Name = tuple[int, str]  # of a matrix: its layer, and its name there


def plant_outliers(model: SmallModel, factor: float) -> SmallModel:
    """Return an equivalent model with outliers: three channels of each norm are larger, the rows that read them smaller."""
    planted = copy.copy(model)
    planted.layers = []
    for layer in model.layers:
        changed = {name: tensor.clone() for name, tensor in layer.items()}
        for norm, names in BEHIND.items():
            for channel in OUTLIERS:
                changed[norm][channel] *= factor
                for name in names:
                    changed[name][channel] /= factor
        planted.layers.append(changed)
    return planted


def round_matrices(model: SmallModel, function: Callable[[Name, torch.Tensor], torch.Tensor]) -> SmallModel:
    """Return the model after replacing each matrix, in the shape [out, in], by function(name, matrix)."""
    rounded = copy.copy(model)
    rounded.layers = [
        {
            name: tensor if tensor.ndim == 1 else function((number, name), tensor.T.contiguous()).T.contiguous()
            for name, tensor in layer.items()
        }
        for number, layer in enumerate(model.layers)
    ]
    return rounded


def round_cache(function: Callable[[torch.Tensor], torch.Tensor]) -> Attend:
    """Return an attention that reads keys and values after function(tensor), each [tokens, heads, d]."""
    attend = attend_in_rows(LENGTH)
    return lambda layer, query, key, value: attend(layer, query, function(key), function(value))


def watch_inputs(model: SmallModel, tokens: torch.Tensor) -> dict[Name, torch.Tensor]:
    """Return the inputs by which each matrix is multiplied for these tokens, [tokens, in]."""
    inputs: dict[Name, torch.Tensor] = {}

    def watch(name: Name, source: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        inputs[name] = source
        return source @ weight

    score_rows(model, tokens[None], multiply=watch)
    return inputs


@dataclass
class Ruler:
    """Compare models with one whose predictions are the reference, on held-out text."""

    rows: torch.Tensor  # [sequences, length + 1]
    reference: torch.Tensor  # logarithms of probabilities, [tokens, vocabulary]

    @classmethod
    def of(cls, model: SmallModel, text: torch.Tensor) -> Ruler:
        """Return a ruler with the model's own predictions as the reference."""
        rows = trained.held_out_rows(text, SEQUENCES, LENGTH)
        return cls(rows, score_rows(model, rows[:, :-1]).double().log_softmax(-1))

    def measure(self, model: SmallModel, *, multiply: Multiply | None = None, attend: Attend | None = None) -> dict[str, float]:
        """Return the mean KL divergence from the reference, in thousandths of a nat, and the perplexity."""
        scores = score_rows(model, self.rows[:, :-1], multiply=multiply, attend=attend).double()
        logarithms = scores.log_softmax(-1)
        distance = (self.reference.exp() * (self.reference - logarithms)).sum(-1).mean()
        loss = torch.nn.functional.cross_entropy(scores, self.rows[:, 1:].flatten())
        return {"kl_millinats": 1e3 * float(distance), "perplexity": math.exp(float(loss))}
