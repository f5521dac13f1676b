"""Record the work of a pipeline's stages: which micro-batch was computed when, in which direction, and for how long."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Any

import torch
from bubble import BACKWARD, FORWARD, Piece
from torch.distributed.pipelining import PipelineStage


class Watch:
    """Record each piece of work of this rank, and how long the rank computed on it.

    On a CPU, that is the thread's processor time, which stops while another rank has the core, so use one thread per rank. On a
    GPU, it is the time between two events around the work.
    """

    def __init__(self, device: torch.device) -> None:
        self._on_gpu = device.type == "cuda"
        self._noted: list[tuple[str, int, int, Callable[[], float]]] = []

    @contextlib.contextmanager
    def piece(self, kind: str, micro_batch: int, chunk: int = 0) -> Iterator[None]:
        """Time the block's work as that piece. `chunk` is as in `bubble.Piece`."""
        if self._on_gpu:
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            yield
            end.record()
            self._noted.append((kind, micro_batch, chunk, lambda: begin.elapsed_time(end) / 1e3))
        else:
            start = time.thread_time()
            yield
            seconds = time.thread_time() - start
            self._noted.append((kind, micro_batch, chunk, lambda: seconds))

    def take(self) -> list[Piece]:
        """Return the pieces since the last call, in order. On a GPU, the work must have ended."""
        pieces = [Piece(kind, micro_batch, seconds(), chunk) for kind, micro_batch, chunk, seconds in self._noted]
        self._noted.clear()
        return pieces


class WatchedStage(PipelineStage):
    """A stage of torch's pipelines that records its pieces. Receiving and sending, between pieces, does not count."""

    def __init__(self, watch: Watch, *arguments: Any, **kwargs: Any) -> None:
        super().__init__(*arguments, **kwargs)
        self.watch = watch

    def forward_one_chunk(self, index: int, *arguments: Any, **kwargs: Any) -> Any:
        with self.watch.piece(FORWARD, index, self.stage_index // self.group_size):
            return super().forward_one_chunk(index, *arguments, **kwargs)

    def backward_one_chunk(self, index: int, *arguments: Any, **kwargs: Any) -> Any:
        with self.watch.piece(BACKWARD, index, self.stage_index // self.group_size):
            return super().backward_one_chunk(index, *arguments, **kwargs)


def typical(steps: Sequence[Sequence[Piece]]) -> list[Piece]:
    """Return the pieces of one step, each with its median over all steps. A schedule has the same order in every step."""
    return [piece._replace(seconds=median(step[place].seconds for step in steps)) for place, piece in enumerate(steps[0])]
