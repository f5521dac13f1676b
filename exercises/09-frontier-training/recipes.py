"""Training with few bits: linear layers whose three products have rounded operands, in a transformer of float32."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from number_formats import FORMATS, round_to
from torch import nn
from transformer import Transformer, counting_text

BLOCK = 32  # neighbours that share a scale in a Rounded
VOCABULARY, LENGTH, SAMPLES, HEADS, LEARNING_RATE = 64, 32, 8, 4, 3e-3
Round = Callable[[torch.Tensor], torch.Tensor]
"""Rounds a matrix. A product sums over the last dimension of the matrix."""


@dataclass
class Recipe:
    """Round the operands of all products, and count the gradients that became 0 as a result."""

    name: str
    rounding: Round
    gradients: int = 0
    zeros: int = 0

    def multiply(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Return a @ b.T after rounding both, for a [m, k] and b [n, k]."""
        return self.rounding(a.contiguous()) @ self.rounding(b.contiguous()).T

    def count_zeros(self, gradient: torch.Tensor, rounded: torch.Tensor) -> None:
        """Count the numbers of a gradient that are 0 only after rounding."""
        self.gradients += int(gradient.count_nonzero())
        self.zeros += int(((gradient != 0) & (rounded == 0)).count_nonzero())


class Product(torch.autograd.Function):
    """x @ weight.T, whose backward has two more products. Master weights and the sums of a product stay in float32."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, recipe: Recipe) -> torch.Tensor:
        """Return [tokens, out] for x [tokens, in] and weight [out, in]: a sum over `in`."""
        ctx.save_for_backward(x, weight)
        ctx.recipe = recipe
        return recipe.multiply(x, weight)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:
        """Return the gradients of x, a sum over `out`, and of the weight, a sum over tokens."""
        x, weight = ctx.saved_tensors
        rounded = ctx.recipe.rounding(gradient.contiguous())
        ctx.recipe.count_zeros(gradient, rounded)
        of_x = rounded @ ctx.recipe.rounding(weight.T.contiguous()).T
        of_weight = ctx.recipe.multiply(gradient.T, x.T)
        return of_x, of_weight, None


class RoundedLinear(nn.Module):
    """A linear layer with the parameters of another, and with rounded products."""

    def __init__(self, linear: nn.Linear, recipe: Recipe) -> None:
        super().__init__()
        self.weight, self.bias, self.recipe = linear.weight, linear.bias, recipe

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        product = YourProduct if isinstance(self.recipe, YourRecipe) else Product
        result = product.apply(x.flatten(0, -2), self.weight, self.recipe)
        return result.view(*x.shape[:-1], -1) + self.bias


@dataclass(frozen=True)
class Rounded:
    """A matrix in E4M3: its codes, as float32, and a scale for every 32 neighbours of a row."""

    codes: torch.Tensor  # [rows, blocks of a row, 32]
    scales: torch.Tensor  # [rows, blocks of a row, 1]

    @property
    def nbytes(self) -> int:
        """Return the bytes of the matrix on a GPU: one for a code, and four for a scale."""
        return self.codes.numel() + 4 * self.scales.numel()

    def values(self) -> torch.Tensor:
        """Return the rounded matrix in float32."""
        return (self.codes * self.scales).flatten(1)


def cast(matrix: torch.Tensor) -> Rounded:
    """Return a float32 matrix in E4M3, with a scale for every 32 neighbours along its last dimension."""
    if not isinstance(matrix, torch.Tensor) or matrix.dim() != 2 or matrix.dtype != torch.float32 or matrix.shape[1] % BLOCK:
        form = f"{matrix.dtype} {list(matrix.shape)}" if isinstance(matrix, torch.Tensor) else type(matrix).__name__
        raise TypeError(f"cast needs a float32 matrix whose last dimension is a multiple of {BLOCK}, not {form}")
    blocks = matrix.detach().reshape(len(matrix), -1, BLOCK)
    codes, scales = scale_rows(blocks)
    return Rounded(codes, scales)


def multiply(a: Rounded, b: Rounded) -> torch.Tensor:
    """Return a @ b.T in float32, for a [m, k] and b [n, k]: the sum of every 32 products is multiplied by both scales."""
    if not isinstance(a, Rounded) or not isinstance(b, Rounded):
        raise TypeError(f"multiply needs two results of cast, not {type(a).__name__} and {type(b).__name__}")
    if a.codes.shape[1] != b.codes.shape[1]:
        shapes = f"{list(a.values().shape)} and {list(b.values().shape)}"
        raise ValueError(f"multiply sums over the last dimension of both matrices, and it differs: {shapes}")
    return a.values() @ b.values().T


def count_kept_bytes(context: Any) -> int:
    """Return the bytes of what a layer keeps for backward: a tensor, a Rounded, or a tuple of them."""
    if isinstance(context, tuple):
        return sum(map(count_kept_bytes, context))
    if not isinstance(context, (torch.Tensor, Rounded)):
        raise TypeError(
            f"forward keeps {type(context).__name__} for backward: return a tensor, a result of cast, or a tuple of them"
        )
    return context.nbytes


class YourProduct(torch.autograd.Function):
    """A linear layer whose forward and backward are those of my_step.py."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, recipe: YourRecipe) -> torch.Tensor:
        """Return the output, and count the bytes kept for backward."""
        output, ctx.context = recipe.functions.forward(x.detach(), weight.detach(), cast, multiply)
        ctx.weight, ctx.recipe = weight.detach(), recipe
        recipe.kept_bytes += count_kept_bytes(ctx.context)
        recipe.numbers += x.numel()
        return output

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:
        """Return both gradients."""
        ctx.recipe.count_zeros(gradient, cast(gradient).values())
        of_x, of_weight = ctx.recipe.functions.backward(gradient, ctx.weight, ctx.context, cast, multiply)
        return of_x, of_weight, None


@dataclass
class YourRecipe(Recipe):
    """The layers of my_step.py, and the bytes that they keep for the numbers of all inputs."""

    functions: Any = None
    kept_bytes: int = 0
    numbers: int = 0


@dataclass
class TensorScale:
    """Rounds to E4M3 with one scale for a whole matrix, by which its largest number becomes 448. Keeps the scales."""

    scales: list[float] = field(default_factory=list)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Return the values of the matrix after rounding."""
        self.scales.append(max(float(x.abs().amax()), 1e-30) / FORMATS["E4M3"].largest)
        scale = self.scales[-1]
        return round_to(x / scale, "E4M3") * scale


def round_unscaled(x: torch.Tensor) -> torch.Tensor:
    """Return the numbers of E4M3 without any scale."""
    return round_to(x, "E4M3")


def round_bfloat16(x: torch.Tensor) -> torch.Tensor:
    """Return the numbers of bfloat16."""
    return round_to(x, "bfloat16")


def scale_rows(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the codes in E4M3 of a matrix, as float32, and the scale of each row, [rows, 1]."""
    scale = x.abs().amax(-1, keepdim=True).clamp(min=1e-30) / FORMATS["E4M3"].largest
    return round_to(x / scale, "E4M3"), scale


def measure_your_products(functions: Any) -> float:
    """Return the largest error of the products of my_step.py against a GPU's rule, relative to the largest number of each."""
    source = torch.Generator().manual_seed(6)
    x, weight, gradient = (
        torch.randn(shape, generator=source) * torch.exp2(torch.randint(-6, 7, (shape[0], 1), generator=source))
        for shape in ((64, 96), (128, 96), (64, 128))
    )
    output, context = functions.forward(x.clone(), weight.clone(), cast, multiply)
    count_kept_bytes(context)
    results = output, *functions.backward(gradient.clone(), weight.clone(), context, cast, multiply)
    worst = 0.0
    for result, (a, b) in zip(results, ((x, weight), (gradient, weight.T), (gradient.T, x.T)), strict=True):
        right = multiply(cast(a), cast(b))
        worst = max(worst, float((result - right).abs().amax() / right.abs().amax()))
    return worst


def measure_products() -> float:
    """Return the largest error of a layer's three products against a GPU's rule, relative to their largest number.

    A GPU multiplies codes, sums, and multiplies each sum by the scales of its row and its column.
    """
    source = torch.Generator().manual_seed(5)
    x, weight, gradient = (
        torch.randn(shape, generator=source) * torch.exp2(torch.randint(-6, 7, (shape[0], 1), generator=source))
        for shape in ((64, 96), (128, 96), (64, 128))
    )
    x, weight = x.requires_grad_(), weight.requires_grad_()
    recipe = Recipe("rows", lambda matrix: torch.mul(*scale_rows(matrix)))
    output = Product.apply(x, weight, recipe)
    output.backward(gradient)
    worst = 0.0
    with torch.no_grad():
        for result, a, b in ((output, x, weight), (x.grad, gradient, weight.T), (weight.grad, gradient.T, x.T)):
            (codes, scale), (other_codes, other_scale) = scale_rows(a), scale_rows(b)
            right = codes @ other_codes.T * scale * other_scale.T
            worst = max(worst, float((result - right).abs().amax() / right.abs().amax()))
    return worst


def train(recipe: Recipe | None, steps: int, width: int, layers: int) -> dict[str, Any]:
    """Train a transformer and return its loss in the first step, its mean loss in the last quarter of the steps, the
    percentage of gradients that became 0, and the bytes that a linear layer keeps for each number of its input.

    Without a recipe, everything is float32. All recipes begin with the same weights.
    """
    torch.manual_seed(0)
    model = Transformer(VOCABULARY, LENGTH, width, HEADS, layers)
    for block in model.blocks if recipe is not None else ():
        for holder, name in ((block.attention, "qkv"), (block.attention, "out"), (block.mlp, "up"), (block.mlp, "down")):
            setattr(holder, name, RoundedLinear(getattr(holder, name), recipe))
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
    losses = []
    for step in range(steps):
        text = counting_text(SAMPLES, LENGTH, VOCABULARY, torch.Generator().manual_seed(1000 + step))
        loss = nn.functional.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    last = losses[-max(1, steps // 4) :]
    zeros = None if recipe is None else 100 * recipe.zeros / max(1, recipe.gradients)
    kept_bytes = (
        recipe.kept_bytes / recipe.numbers if isinstance(recipe, YourRecipe) else 4.0
    )  # the course's layers keep float32
    return {
        "loss_first": losses[0], "loss_last": sum(last) / len(last), "zero_gradients_percent": zeros, "kept_bytes": kept_bytes,
    }  # fmt: skip
