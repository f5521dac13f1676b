"""An engine on a real GPU for the tracers: a small transformer in PyTorch that accepts the same requests as the stand-in.

Started as a program, this file is the engine's process. Its commands and answers are those of engine.c. In addition, `graph
PROMPT TOKENS` captures a pass as one CUDA graph, and replays it for each token.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import stand_in
import tracers

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

VOCABULARY, WIDTH, HEADS = 32000, 1024, 16


class TorchEngine(stand_in.Engine):
    """A process that runs this file. It accepts the stand-in's commands, and `graph`."""

    def __init__(self, *, layers: int, tracer: stand_in.InsideTracer | None = None) -> None:
        self._start_as([sys.executable, __file__, str(layers)], tracer)

    @property
    def library(self) -> Path:
        """Return the CUDA runtime that this process has loaded. Raises TracerFailed if it has none."""
        return find_library(self.pid)

    def graph(self, prompt: int, tokens: int) -> None:
        """Send a request whose passes are one graph launch each.

        A call with 0 tokens captures the graph and is not counted.
        """
        self._ask(f"graph {prompt} {tokens}")


def find_library(pid: int) -> Path:
    """Return the CUDA runtime that a process has loaded. Raises TracerFailed if it has none."""
    lines = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8").splitlines()
    paths = {line.split(maxsplit=5)[5] for line in lines if "libcudart" in line}
    if not paths:
        raise tracers.TracerFailed("PyTorch has loaded no libcudart: its CUDA runtime is linked into it")
    return Path(min(paths))


def count_graphs(tracer: tracers.Tracer, engine: stand_in.Engine, prompt: int, tokens: int) -> int | None:
    """Return how often a request whose passes are graphs calls cudaGraphLaunch, or None if the engine has no graphs."""
    if not isinstance(engine, TorchEngine):
        return None
    engine.graph(prompt, 0)
    with tracers.trace(tracer, engine) as counters:
        engine.graph(prompt, tokens)
    return counters.count("cudaGraphLaunch")


def _serve(layers: int) -> None:
    import torch
    from transformer import Transformer

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model: Any = None
    graphs: dict[int, tuple[Any, torch.Tensor, torch.Tensor]] = {}

    def load(length: int) -> Any:
        nonlocal model
        if model is None or model.place.shape[0] != length:
            torch.manual_seed(0)
            model = Transformer(VOCABULARY, length, WIDTH, HEADS, layers).to(device).eval()
        return model

    @torch.inference_mode()
    def answer(prompt: int, tokens: int) -> None:
        text = torch.zeros(1, prompt, dtype=torch.long, device=device)
        for _ in range(tokens):
            text = _append(text, load(prompt)(text))
        text.tolist()

    @torch.inference_mode()
    def replay(prompt: int, tokens: int) -> None:
        if prompt not in graphs:
            graphs[prompt] = _capture(load(prompt), torch.zeros(1, prompt, dtype=torch.long, device=device))
        graph, text, scores = graphs[prompt]
        for _ in range(tokens):
            graph.replay()
            text.copy_(_append(text, scores))
        text.tolist()

    orders = {"request": answer, "graph": replay, "load": lambda: load(1)}
    for line in sys.stdin:
        word, *numbers = line.split()
        if word in orders:
            orders[word](*map(int, numbers))
        stats = torch.cuda.memory_stats() if device.type == "cuda" and torch.cuda.is_initialized() else {}
        calls = {"cudaMalloc": stats.get("num_device_alloc", 0)}
        tokens = int(numbers[1]) if len(numbers) == 2 else 0
        sys.stdout.write(json.dumps({"tokens": tokens, "error": None, "calls": calls}) + "\n")
        sys.stdout.flush()


def _append(text: Any, scores: Any) -> Any:
    """Return the text with the most likely next token appended and its first token removed, so that every pass has the same
    shape."""
    import torch

    return torch.cat([text[:, 1:], scores[:, -1:].argmax(-1)], 1)


def _capture(model: Any, text: Any) -> tuple[Any, Any, Any]:
    """Return one pass as a graph, with the tokens that it reads and the scores that it writes.

    Warm up on a separate stream first.
    """
    import torch

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            model(text)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        scores = model(text)
    return graph, text, scores


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
