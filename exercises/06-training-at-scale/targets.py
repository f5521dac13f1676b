"""Targets of 6.6: published models to train, and four clusters. Units: GB = 10^9 bytes, GB/s in one direction."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import gpus

USABLE = 0.9  # of a GPU's memory: the rest is for CUDA itself, NCCL's buffers, and free pieces that are too small


@dataclass(frozen=True)
class Shape:
    """A decoder transformer.

    If `gated`, it is like Llama: three matrices in the MLP, RMSNorm, rotary positions, no biases and no dropout. Otherwise, it
    is like GPT: two matrices, learned positions, biases and dropout.
    """

    name: str
    layers: int
    width: int
    heads: int
    kv_heads: int
    inner: int
    vocabulary: int
    gated: bool
    source: str
    experts: int = 0  # MLPs in each layer, of which a router chooses `top` for each token; 0: one MLP for all tokens
    top: int = 0

    @property
    def expert_parameters(self) -> int:
        """Return the parameters of the experts of one layer, 0 if all tokens use the same MLP."""
        return self.experts * 3 * self.width * self.inner

    @property
    def layer_parameters(self) -> int:
        """Return the parameters of one layer: attention, two norms, and the MLP, or the router and the experts."""
        h, kv = self.width, self.width * self.kv_heads // self.heads
        if self.experts:
            return 2 * h * h + 2 * h * kv + 2 * h + h * self.experts + self.expert_parameters
        if self.gated:
            return 2 * h * h + 2 * h * kv + 3 * h * self.inner + 2 * h
        return 4 * (h * h + h) + 2 * h * self.inner + self.inner + h + 4 * h

    @property
    def active_parameters(self) -> int:
        """Return the parameters of one layer that a token uses: those of `top` experts, and all outside the experts."""
        return self.layer_parameters - (
            self.expert_parameters * (self.experts - self.top) // self.experts if self.experts else 0
        )

    def parameters(self, length: int) -> int:
        """Return the parameters of the whole model with sequences of `length` tokens."""
        return self.layers * self.layer_parameters + self.first_parameters(length) + self.last_parameters(is_only_stage=True)

    def first_parameters(self, length: int) -> int:
        """Return the parameters before the layers: a row for each token of the vocabulary, and for each learned position."""
        return self.width * (self.vocabulary + (0 if self.gated else length))

    def last_parameters(self, *, is_only_stage: bool) -> int:
        """Return the parameters after the layers: the last norm, and the matrix of the scores.

        GPT shares that matrix with the first one if one stage holds both (`is_only_stage`).
        """
        scores = 0 if is_only_stage and not self.gated else self.width * self.vocabulary
        return scores + self.width * (1 if self.gated else 2)

    def model_flops(self, tokens: int, length: int) -> float:
        """Return the operations of a step, forward and backward.

        Each token takes 6 for each weight that it is multiplied by, and 12 h s for the attention of each layer. For GPT, this
        is 72 B L s h^2 (1 + s / 6h + V / 12 L h) of Narayanan et al., without recomputation. A step has B sequences of s
        tokens; the model has L layers of width h, and V tokens in its vocabulary.
        """
        products = self.layers * self.active_parameters + self.width * self.vocabulary
        return tokens * (6.0 * products + 12.0 * self.layers * self.width * length)


@dataclass(frozen=True)
class Cluster:
    """GPUs of one kind: `nodes` nodes with `per_node` GPUs each.

    `inside` is the link of one GPU to GPUs of its node, `between` its share of the node's network, both in one direction, in
    GB/s.
    """

    name: str
    gpu_name: str
    nodes: int
    per_node: int
    inside: float
    between: float
    source: str

    @property
    def size(self) -> int:
        """Return the number of GPUs."""
        return self.nodes * self.per_node

    @cached_property
    def gpu(self) -> gpus.Gpu:
        """Return the GPU's row of gpus.json."""
        row = gpus.find(self.gpu_name)
        assert row is not None, self.gpu_name
        return row

    @property
    def usable_bytes(self) -> float:
        """Return how much of a GPU's memory a plan may fill."""
        return USABLE * self.gpu.memory_gb * 1e9

    def flops(self, precision: str) -> float | None:
        """Return the FLOP/s of one GPU by its data sheet, or None if the hardware lacks that precision."""
        peak = getattr(self.gpu, precision)
        return None if peak is None else peak * 1e12


TARGETS = {
    shape.name: shape
    for shape in (
        Shape("1.3b", 24, 2048, 32, 32, 8192, 50272, False, "OPT-1.3B (Zhang et al. 2022)"),
        Shape("7b", 32, 4096, 32, 32, 11008, 32000, True, "Llama 2 7B (Touvron et al. 2023)"),
        Shape("70b", 80, 8192, 64, 8, 28672, 32000, True, "Llama 2 70B (Touvron et al. 2023)"),
        Shape("8x7b", 32, 4096, 32, 8, 14336, 32000, True, "Mixtral 8x7B (Jiang et al. 2024)", experts=8, top=2),
    )
}
CLUSTERS = {
    cluster.name: cluster
    for cluster in (
        Cluster("2xt4", "Tesla T4", 2, 1, 15.75, 1.25, "2 g4dn.2xlarge: 10 Gbit/s per node"),
        Cluster("4xl4", "NVIDIA L4", 2, 2, 31.5, 2.0, "2 nodes with two L4: PCIe 4 x16 inside, 32 Gbit/s per node"),
        Cluster(
            "8xa100-80", "NVIDIA A100-SXM4-80GB", 1, 8, 300.0, 6.25, "1 p4de.24xlarge: NVLink 3 inside, 400 Gbit/s per node"
        ),
        Cluster("64xh100", "NVIDIA H100 80GB HBM3", 8, 8, 450.0, 50.0, "8 p5.48xlarge: NVLink 4 inside, 3,200 Gbit/s per node"),
    )
}
PUZZLES = (
    (2048, 1.0),
    (1024, 1.5),
    (4096, 0.5),
    (3072, 1.0),
    (2048, 0.75),
    (1024, 1.0),
    (4096, 1.5),
    (8192, 0.25),
    (131072, 0.0625),
)
BATCHES = {"1.3b": 128, "7b": 256, "70b": 512, "8x7b": 256}


@dataclass(frozen=True)
class Work:
    """A training run on a cluster: sequences of `length` tokens, with `batch` sequences in a step."""

    shape: Shape
    cluster: Cluster
    length: int
    batch: int


def work_of(target: str, cluster: str, puzzle: int) -> Work:
    """Return the work of a target on a cluster. `puzzle`, 1 or more, changes the length of sequences and the batch."""
    length, times = PUZZLES[(puzzle - 1) % len(PUZZLES)]
    return Work(TARGETS[target], CLUSTERS[cluster], length, int(BATCHES[target] * times))
