"""A transformer in stages and slices, with the share of each rank on a mesh of copies (dp), stages (pp) and slices (tp)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from transformer import Transformer, counting_text

DIMENSIONS = ("dp", "pp", "tp")
VOCABULARY = 64
PLAN = {  # wide in the middle: cut by columns on the way in, by rows on the way out
    "attention.qkv": ColwiseParallel(), "attention.out": RowwiseParallel(),
    "mlp.up": ColwiseParallel(), "mlp.down": RowwiseParallel(),
}  # fmt: skip


@dataclass(frozen=True)
class Layout:
    """The number of copies of the model (dp), of stages of each copy (pp), and of slices of each stage (tp)."""

    dp: int
    pp: int
    tp: int

    @property
    def size(self) -> int:
        """Return how many ranks the layout needs."""
        return self.dp * self.pp * self.tp

    def __str__(self) -> str:
        """Return the layout in the form that `parse` reads."""
        return f"{self.dp}x{self.pp}x{self.tp}"

    @staticmethod
    def parse(text: str) -> Layout:
        """Read `2x1x4` as dp 2, pp 1, tp 4. Raises ValueError for anything else."""
        words = text.strip().split("x")
        if len(words) != len(DIMENSIONS) or not all(word.isdecimal() and int(word) for word in words):
            raise ValueError(text)
        return Layout(*map(int, words))


@dataclass(frozen=True)
class Shape:
    """The model and its training, which are the same in every layout. `batch_size` counts the sequences of all copies in a
    step."""

    layers: int
    width: int
    heads: int
    length: int
    batch_size: int
    micro_batches: int
    steps: int
    rate: float = 0.05
    seed: int = 0

    def build(self) -> Transformer:
        """Return the whole model, with the same weights wherever it is built."""
        torch.manual_seed(self.seed)
        return Transformer(VOCABULARY, self.length, self.width, self.heads, self.layers)

    def draw_batch(self, step: int) -> torch.Tensor:
        """Return the sequences of a step, (batch_size, length + 1), the same on every rank."""
        source = torch.Generator().manual_seed(1_000_003 * self.seed + step)
        return counting_text(self.batch_size, self.length, VOCABULARY, source)

    def share_layers(self, stages: int, stage: int) -> range:
        """Return the layers of one of that many stages. The shares differ by at most one layer."""
        return range(self.layers * stage // stages, self.layers * (stage + 1) // stages)

    def find_problem(self, layout: Layout) -> str | None:
        """Return why this training run cannot use that layout, or None if it can."""
        if self.heads % layout.tp:
            return f"tp {layout.tp} does not divide the {self.heads} heads: a slice consists of whole heads"
        if layout.pp > self.layers:
            return f"pp {layout.pp} is more stages than the model has layers ({self.layers})"
        if self.batch_size % (layout.dp * self.micro_batches):
            return (
                f"{self.batch_size} sequences cannot be split among {layout.dp} copies in {self.micro_batches} micro-batches: "
                f"batch_size must be a multiple of dp x micro_batches, {layout.dp * self.micro_batches}"
            )
        return None


class Stage(nn.Module):
    """Some layers of the model, under the same names. The first stage also has the embeddings, and the last one the scores."""

    def __init__(self, model: Transformer, share: range, *, first: bool, last: bool) -> None:
        super().__init__()
        self.blocks = nn.ModuleDict({str(number): model.blocks[number] for number in share})
        if first:
            self.token, self.place = model.token, model.place
        if last:
            self.norm, self.scores = model.norm, model.scores
        self.first, self.last = first, last

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Turn tokens, or the previous stage's output, into the next stage's input or into scores."""
        x = self.token(x) + self.place if self.first else x
        for block in self.blocks.values():
            x = block(x)
        return self.scores(self.norm(x)) if self.last else x


def lay_out(layout: Layout, order: Sequence[str] = DIMENSIONS) -> torch.Tensor:
    """Return the rank at each place (dp, pp, tp). Ranks are counted with the last dimension of `order` varying fastest."""
    sizes = [getattr(layout, name) for name in order]
    return torch.arange(layout.size).view(sizes).permute([order.index(name) for name in DIMENSIONS])


def count_weights(shape: Shape, layout: Layout, stage: int) -> int:
    """Return how many numbers a rank of that stage holds.

    A layer of width w has 12 w * w + 13 w numbers. tp divides all of them except 6 w: the norms, and the biases that are added
    after a sum.
    """
    width = shape.width
    numbers = len(shape.share_layers(layout.pp, stage)) * ((12 * width**2 + 7 * width) // layout.tp + 6 * width)
    numbers += (VOCABULARY + shape.length) * width if stage == 0 else 0
    return numbers + (2 * width + (width + 1) * VOCABULARY if stage == layout.pp - 1 else 0)


def build_stage(shape: Shape, layout: Layout, mesh: DeviceMesh, device: torch.device) -> Stage:
    """Return this rank's slices of this rank's layers."""
    number = mesh["pp"].get_local_rank()
    first, last = number == 0, number == layout.pp - 1
    stage = Stage(shape.build(), shape.share_layers(layout.pp, number), first=first, last=last).to(device)
    if layout.tp > 1:
        for block in stage.blocks.values():
            parallelize_module(block, mesh["tp"], PLAN)
    return stage


def local(tensor: torch.Tensor) -> torch.Tensor:
    """Return the part of a tensor that this rank holds."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor
