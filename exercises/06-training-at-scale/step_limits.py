"""Three clusters of 6.3, and how long computing waits for messages on them. A replay recorded these waits in exposed.json."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

WAYS = ("data", "sharded", "tensor")
MAX_RANKS = 4096


@dataclass(frozen=True)
class Cluster:
    """A model, its batch, and the GPUs and links that it is trained on. Each layer has 12 · width² weights."""

    name: str
    width: int
    heads: int
    length: int
    """Tokens of a sequence."""
    sequences: int
    """Sequences in the batch of one step, on all ranks together."""
    weight_bytes: int
    """Bytes of a number when weights or activations are sent."""
    gradient_bytes: int
    """Bytes of a number when gradients are sent."""
    flop_per_s: float
    """Floating-point operations per second of one GPU."""
    ranks_per_node: int
    inside_bytes_per_s: float
    """Bytes per second that one rank sends to a rank of its node."""
    between_bytes_per_s: float
    """Bytes per second that one rank sends to a rank of another node."""

    def describe(self) -> dict[str, object]:
        """Return all values, for the learner's function."""
        return asdict(self)


CLUSTERS = (
    Cluster("8 B, 2 M tokens, H100", 4096, 32, 4096, 512, 2, 4, 4e14, 8, 300e9, 50e9),
    Cluster("70 B, 4 M tokens, H100", 8192, 64, 8192, 512, 2, 4, 4e14, 8, 300e9, 50e9),
    Cluster("1 B, 0.5 M tokens, T4", 2048, 16, 1024, 512, 2, 4, 2.5e13, 4, 6e9, 1.25e9),
)


def read_exposed_percent(way: str, ranks: int, cluster: Cluster) -> float | None:
    """Return how much longer a step waits with each further layer, in percent of the time in which that layer computes. The
    figures are in exposed.json, for powers of two. Return None for another number of ranks."""
    figures = json.loads(Path(__file__).with_name("exposed.json").read_text(encoding="utf-8"))
    return figures[cluster.name][way].get(str(ranks))
