"""Count what torch.compile compiles, without generating any code: a backend that records each graph and runs it as it is."""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch._logging import set_logs
from torch.utils._pytree import tree_iter

LIMIT = 0.75  # the root mean square to which a block scales its numbers down
WARM_UP = 10  # steps of the warm-up
RECOMPILE_LIMIT = 8  # torch's own limit of compilations of one function
FIRST_ROWS, FIRST_STEP = 24, 5
SEED = 12
OPERATIONS = ("call_function", "call_method", "call_module")
Block = Callable[..., torch.Tensor]
Arguments = tuple[Any, ...]
calls_so_far = {"count": 0}


# --- the block, as delivered -------------------------------------------------------------------------------------------
def block(x, residual, weight, bias, gate, step):  # described in my_function.py
    calls_so_far["count"] += 1
    h = nn.functional.layer_norm(x, x.shape[-1:], weight, bias)
    rms = h.square().mean().sqrt().item()
    if rms > LIMIT:
        h = h * (LIMIT / rms)
    if gate.sum() < 0:
        gate = -gate
    print(f"call {calls_so_far['count']}, step {step}: rms {rms:.3f}")
    h = nn.functional.gelu(h * gate, approximate="tanh")
    return residual + h * min(1.0, (step + 1) / WARM_UP)


def compile_block(backend: Any) -> Block:
    """Return `block`, compiled as my_function.py compiles it when it is delivered."""
    return torch.compile(block, backend=backend, dynamic=False)


# --- what is counted ---------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Graph:
    """One compiled graph: its number of operations, and the line of Python at which it had to end, with torch's reason.

    If the graph is whole, `text` and `reason` are empty.
    """

    operations: int
    line: int
    text: str
    reason: str


@dataclass
class Call:
    """Hold what one call did: the graphs that it compiled, and the tensors that entered and left the graphs that it ran."""

    compiled: list[Graph] = field(default_factory=list)
    inputs: list[torch.Tensor] = field(default_factory=list)
    outputs: list[torch.Tensor] = field(default_factory=list)
    runs: int = 0
    result: Any = None

    def has_work_outside(self, arguments: Arguments) -> bool:
        """Return whether a tensor of the arguments enters no graph, or the result comes from no graph."""
        entering = {tensor.data_ptr() for tensor in self.inputs}
        leaving = {tensor.data_ptr() for tensor in self.outputs}
        tensors = [value for value in arguments if isinstance(value, torch.Tensor)]
        result = self.result.data_ptr() if isinstance(self.result, torch.Tensor) else None
        return result not in leaving or not all(tensor.data_ptr() in entering for tensor in tensors)


class Recorder:
    """A backend for torch.compile that records graphs. `calls` is a list of the watched calls, the current one last."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def __call__(self, module: torch.fx.GraphModule, _inputs: Sequence[Any]) -> Callable[..., Any]:
        """Record a graph, and return a function that runs it without generated code."""
        reason = getattr(module, "compile_subgraph_reason", None)
        stack = reason.user_stack if reason is not None and reason.graph_break else []
        line, text = (stack[-1].lineno or 0, stack[-1].line or "?") if stack else (0, "")
        words = reason.reason.split("Hint:")[0] if stack else ""
        operations = sum(node.op in OPERATIONS for node in module.graph.nodes)
        self.calls[-1].compiled.append(Graph(operations, line, text, words))

        def run(*arguments: Any) -> Any:
            results = module.forward(*arguments)
            call = self.calls[-1]
            call.runs += 1
            call.inputs += [value for value in arguments if isinstance(value, torch.Tensor)]
            call.outputs += [value for value in tree_iter(results) if isinstance(value, torch.Tensor)]
            return results

        return run


@contextlib.contextmanager
def silence() -> Iterator[io.StringIO]:
    """Hide torch's warnings about graph breaks and recompilations, and capture the printed text. Yield that text."""
    set_logs(dynamo=logging.CRITICAL)
    try:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            yield printed
    finally:
        set_logs()


def watch(make: Callable[[Any], Block], calls: Sequence[Arguments]) -> list[Call]:
    """Return what each call of `make(backend)` compiled, ran and returned. Start without any compiled code."""
    torch.compiler.reset()
    recorder = Recorder()
    with silence():
        recorder.calls.append(Call())
        function = make(recorder)
        recorder.calls.clear()
        for arguments in calls:
            recorder.calls.append(Call())
            recorder.calls[-1].result = function(*arguments)
    return recorder.calls


def count_graphs(make: Callable[[Any], Block], calls: Sequence[Arguments]) -> list[int]:
    """Return how many graphs each call compiles."""
    return [len(call.compiled) for call in watch(make, calls)]


# --- the calls that a block has to serve ---------------------------------------------------------------------------------
def make_arguments(rows: int, step: int, *, width: int = 32, sign: float = 1.0, size: float = 1.0) -> Arguments:
    """Return the arguments of `block`, the same for the same numbers. `size` scales what is normalised before it is clipped."""
    source = torch.Generator().manual_seed(SEED + rows)
    x, residual = torch.randn(2, rows, width, generator=source)
    weight, bias, gate = torch.rand(3, width, generator=source) + 0.5
    return x, residual, size * weight, 0.1 * bias, sign * gate, step


def list_series() -> dict[str, list[Arguments]]:
    """Return the calls of each series in order: repeated calls, 12 lengths, 12 steps, and other signs and sizes."""
    return {
        "same": [make_arguments(FIRST_ROWS, FIRST_STEP) for _ in range(3)],
        "lengths": [make_arguments(rows, FIRST_STEP) for rows in range(26, 50, 2)],
        "steps": [make_arguments(FIRST_ROWS, step) for step in range(12)],
        "signs": [make_arguments(FIRST_ROWS, FIRST_STEP, sign=sign, size=size) for sign in (-1.0, 1.0) for size in (0.1, 1.0)],
    }
