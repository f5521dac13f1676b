"""A solution of 5.5: if the model can be captured, each request is copied in, replayed and copied out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


class Server:
    """Answer requests with `model`, using a graph for each batch size."""

    def __init__(
        self, model: Callable[[torch.Tensor], torch.Tensor], capture: Callable[[Callable[[], torch.Tensor]], Any]
    ) -> None:
        self.model, self.capture = model, capture
        self.graphs: dict[int, Any] = {}
        self.inputs: dict[int, torch.Tensor] = {}

    def answer(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the model's result for `tokens`, of shape (batch, length)."""
        size = len(tokens)
        if size not in self.graphs:
            self.prepare(size, tokens)
        graph = self.graphs[size]
        if graph is None:
            return self.model(tokens)
        self.inputs[size].copy_(tokens)
        graph.replay()
        return graph.output.clone()

    def prepare(self, size: int, tokens: torch.Tensor) -> None:
        """Capture the model for a batch size, or remember that it cannot be captured."""
        self.inputs[size] = tokens.clone()
        try:
            self.graphs[size] = self.capture(lambda: self.model(self.inputs[size]))
        except RuntimeError:
            self.graphs[size] = None
