"""Count the calls of collectives on this rank, and the bytes of each kind that it passes to them, whatever code calls them."""

from __future__ import annotations

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

_OUTPUT_FIRST = ("gather", "scatter", "alltoall")  # c10d's operators whose first argument is the output


class SentBytes(TorchDispatchMode):
    """Counts, inside a `with`, the collectives and sends of this rank: `calls`, and the bytes in `numbers` and `integers`.

    A collective counts as the tensor that this rank passes to it. What an all-to-all keeps on its own rank does not count.
    With `ranks`, the tensor of an all-gather counts once for each other rank.
    `numbers` has the bytes of floating-point tensors, `integers` those of all others.
    """

    def __init__(self, rank: int = 0, ranks: int = 1) -> None:
        """`rank` of `ranks` is this process in the group of its collectives."""
        super().__init__()
        self.rank, self.ranks, self.calls, self.numbers, self.integers = rank, ranks, 0, 0, 0

    @property
    def bytes(self) -> int:
        """Return the bytes of all tensors."""
        return self.numbers + self.integers

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = str(function)
        if name.startswith("c10d.") and not any(word in name for word in ("recv", "barrier", "monitored")):
            sent = args[1] if any(word in name for word in _OUTPUT_FIRST) else args[0]
            self._count(name, [x for x in tree_leaves(sent) if isinstance(x, torch.Tensor)], args)
        return function(*args, **(kwargs or {}))

    def _count(self, name: str, tensors: list[torch.Tensor], args: tuple) -> None:
        self.calls += 1
        for place, tensor in enumerate(tensors):
            size = tensor.nbytes
            if "alltoall_base" in name:
                splits = args[4]
                rows = splits[self.rank] if splits else len(tensor) // self.ranks
                size -= rows * tensor[:1].nbytes if len(tensor) else 0
            elif "alltoall" in name and place == self.rank:
                continue
            elif "allgather" in name:
                size *= max(1, self.ranks - 1)
            if tensor.is_floating_point():
                self.numbers += size
            else:
                self.integers += size
