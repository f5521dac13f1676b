"""Your part of 5.5: a model that is captured for a few batch sizes and replayed for every request.

You will learn    what a graph keeps (operations and addresses), and what it does not see: new tensors, Python, values
You will produce  a server that launches one graph per request, of any batch size, and returns answers that do not change later
Try it            gpucourse try 5.5
Your part         repair `Server`; keep its name, and the parameters of its methods
Reading           modules/05-gpu-programming/lesson-7-graphs.md, "A graph: one launch for a whole model"
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch


class Server:
    """Answer requests with `model`, using graphs.

    `sizes` are the batch sizes that may be captured, from small to large; each graph takes memory, so these are few.
    `capture(call)` runs `call()` once and returns a graph of it: graph.output is the tensor that `call` returned, and
    graph.replay() repeats on the device everything that `call` did, on the same memory. capture raises RuntimeError if a call
    cannot be captured. A capture takes as long as serving dozens of requests, so only the first request that needs a size may
    wait for its capture.
    """

    def __init__(
        self,
        model: Callable[[torch.Tensor], torch.Tensor],
        capture: Callable[[Callable[[], torch.Tensor]], Any],
        sizes: Sequence[int],
    ) -> None:
        self.model, self.capture, self.sizes = model, capture, sizes
        self.graphs: dict[int, Any] = {}

    def answer(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the model's result for `tokens`, of shape (batch, length). The caller has switched gradients off.

        A request may have any number of sequences. If a graph can serve it, use the one that computes the fewest sequences.
        Answer and tokens belong to the caller: a later request must not change them.
        """
        size = len(tokens)
        if size not in self.graphs:
            self.graphs[size] = self.capture(lambda: self.model(tokens))
        graph = self.graphs[size]
        graph.replay()
        return graph.output
