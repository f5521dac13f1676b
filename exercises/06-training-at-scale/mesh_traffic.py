"""Count the messages of a mesh's ranks in one step, in torch's dispatcher, and compute them by formula.

Bytes are those that a rank passes to all_reduce, or sends to a neighbour. The bytes between nodes follow from these bytes and
from the node of each rank: see `price_by_dimension`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from mesh_model import DIMENSIONS, Layout, Shape, count_weights
from torch.distributed.device_mesh import DeviceMesh
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

NUMBER = 4  # bytes of a float32
MessageBytes = Mapping[str, int]
"""Bytes of one rank in one step: "tp", "dp" passed to all_reduce, "pp forward", "pp back" sent to a neighbour, "other"."""
KINDS = ("dp", "pp forward", "pp back", "tp", "other")

_MEMBERS: dict[str, tuple[int, ...]] = {}
"""The ranks of each group of a mesh so far: DTensor uses the group of an earlier mesh if that has the same ranks."""


class Traffic(TorchDispatchMode):
    """Counts, inside a `with`, the bytes of each message of this rank, by the mesh dimension whose group it goes to."""

    def __init__(self, mesh: DeviceMesh) -> None:
        super().__init__()
        groups = {name: mesh[name].get_group() for name in DIMENSIONS}
        members = {name: tuple(dist.get_process_group_ranks(group)) for name, group in groups.items()}
        _MEMBERS.update({groups[name].group_name: members[name] for name in DIMENSIONS})
        self._dimension = {ranks: name for name, ranks in members.items() if len(ranks) > 1}
        self._stage = mesh["pp"].get_local_rank()
        self._bytes: Counter[str] = Counter()

    @property
    def bytes_by_kind(self) -> MessageBytes:
        """Return the bytes that were counted so far, by kind."""
        return {kind: self._bytes[kind] for kind in KINDS}

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Handle every operation, including those of backward and of torch's pipelines."""
        space, _, name = function.name().partition("::")
        if "c10d" in space and not name.startswith(("wait_tensor", "_wrap_tensor", "recv", "barrier")):
            size = max((item.nbytes for item in tree_iter((args, kwargs)) if isinstance(item, torch.Tensor)), default=0)
            self._bytes[self._find_kind(name, args)] += size
        return function(*args, **(kwargs or {}))

    def _find_kind(self, name: str, args: Sequence[Any]) -> str:
        if name.startswith("all_reduce"):  # DTensor's, which names the group last
            group = next(item for item in reversed(args) if isinstance(item, str))
        elif name.startswith(("allreduce_", "send")):  # torch.distributed's own, which pass the group itself
            group = dist.ProcessGroup.unbox(args[1]).group_name
        else:
            return "other"
        dimension = self._dimension.get(_MEMBERS.get(group, ()), "other")
        if name.startswith("send") and dimension == "pp":
            return "pp forward" if args[2] > self._stage else "pp back"
        return "other" if name.startswith("send") or dimension == "pp" else dimension


def predict_message_bytes(shape: Shape, layout: Layout, stage: int) -> MessageBytes:
    """Return the bytes that a rank of that stage sends in a step, by formula.

    tp: 4 sums per layer and micro-batch (two forward, two backward), each with the micro-batch's activations.
    pp: activations of its copy's whole share to the next stage, and as many gradients to the previous one.
    dp: the gradients of its weights.
    """
    activations = NUMBER * shape.batch_size // layout.dp * shape.length * shape.width
    return {
        "dp": NUMBER * count_weights(shape, layout, stage) if layout.dp > 1 else 0,
        "pp forward": activations if stage < layout.pp - 1 else 0,
        "pp back": activations if stage > 0 else 0,
        "tp": 4 * len(shape.share_layers(layout.pp, stage)) * activations if layout.tp > 1 else 0,
        "other": 0,
    }


def price_by_dimension(mesh: torch.Tensor, nodes: Sequence[object], message_bytes: Sequence[MessageBytes]) -> dict[str, int]:
    """Return the bytes that cross from one node to another in a step, by dimension.

    `mesh` has the rank at each place (dp, pp, tp), `nodes` the node of each rank, and `message_bytes` the bytes that each rank
    sends. An all_reduce of n ranks passes round a ring in the order of their coordinates: each sends 2 (n - 1) / n of the
    bytes.
    """
    node_at = torch.tensor([list(nodes).index(node) for node in nodes])[mesh]
    sent = {kind: torch.tensor([row[kind] for row in message_bytes])[mesh] for kind in KINDS}
    crossing = {}
    for axis, name in enumerate(DIMENSIONS):
        ahead, behind = (node_at != node_at.roll(shift, axis) for shift in (-1, 1))
        ranks = mesh.shape[axis]
        pipeline = ahead * sent["pp forward"] + behind * sent["pp back"]
        ring = pipeline if name == "pp" else ahead * (2 * (ranks - 1) * sent[name] // ranks)
        crossing[name] = int(ring.sum())
    return crossing
