"""Your part of 5.5: a model that is captured once and replayed for every request, so that each request gets its own answer.

You will learn    what a graph keeps (operations and addresses), and what it does not see: new tensors, Python, values
You will produce  a server that launches one graph per request, and returns answers that do not change later
Try it            gpucourse try 5.5
Your part         repair `Server`; keep its name, and the parameters of its methods
Reading           modules/05-gpu-programming/lesson-7-graphs.md, "A graph: one launch for a whole model"
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


class Server:
    """Answer requests with `model`, using a graph for each batch size.

    `capture(call)` runs `call()` once and returns a graph of it: graph.output is the tensor that `call` returned, and
    graph.replay() repeats on the device everything that `call` did, on the same memory. capture raises RuntimeError if a call
    cannot be captured. A capture takes as long as serving dozens of requests, so only the first request of a batch size may
    wait for one.
    """

    def __init__(
        self, model: Callable[[torch.Tensor], torch.Tensor], capture: Callable[[Callable[[], torch.Tensor]], Any]
    ) -> None:
        self.model, self.capture = model, capture
        self.graphs: dict[int, Any] = {}

    def answer(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the model's result for `tokens`, of shape (batch, length). The caller has switched gradients off.

        Answer and tokens belong to the caller: a later request must not change them.
        """
        size = len(tokens)
        if size not in self.graphs:
            self.graphs[size] = self.capture(lambda: self.model(tokens))
        graph = self.graphs[size]
        graph.replay()
        return graph.output
