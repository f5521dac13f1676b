"""Judge my_function.py of 5.12 by the graphs that it compiles, the tensors that enter and leave them, and its values."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from gpucourse.judge import Part, Verdict, Way, bring_compiler_in

bring_compiler_in()

import compilations  # noqa: E402  # it imports the compiler

TOLERANCE = 1e-5  # of the largest number: float32 in another order
MAX_COMPILATIONS = 2
REASONS = {  # of torch for a graph break, by the way that causes it
    "prints": r"\bprint\b|logging",
    "disabled": r"\bdisable",
    "reads-a-value": r"item|to_?list|_local_scalar_dense",
    "branches": r"jump|branching",
}
WAYS = {
    "not-compiled": Way(
        "the first call compiles no graph: the function runs as plain Python. Pass the backend to torch.compile, and return "
        "what torch.compile returns, or a function that calls it",
        ("torch.compile(block, backend=backend)", "block"),
    ),
    "prints": Way(
        "line {line} ends a graph: {text}. Output cannot be part of a graph, so the first call makes {count} graphs. The "
        "printed text is not needed",
        ("    rms = h.square()", "    print(x.shape)\n    rms = h.square()"),
    ),
    "reads-a-value": Way(
        "line {line} ends a graph: {text}. The number is needed in Python before the next operation can be chosen, so the "
        "first call makes {count} graphs. Keep the number in a tensor",
        ("torch.clamp(LIMIT / rms, max=1.0)", "min(1.0, LIMIT / rms.item())"),
    ),
    "branches": Way(
        "line {line} ends a graph: {text}. Python has to know the tensor's value to choose a branch, so the first call makes "
        "{count} graphs, and the other branch is compiled when it is first taken. Choose between two tensors instead",
        ("torch.where(gate.sum() < 0, -gate, gate)", "-gate if gate.sum() < 0 else gate"),
    ),
    "disabled": Way(
        "line {line} ends a graph: {text}. What torch.compiler.disable excludes runs without being compiled, and cuts the rest "
        "in two",
        ("    h = functional.gelu(", "    h = torch.compiler.disable(functional.gelu)("),
    ),
    "keeps-count": Way(
        "a call with the same arguments compiles again, {count} graphs in 2 calls: the graph depends on something in Python "
        "that each call changes, such as a count or a list. Change it outside the compiled function, or not at all",
        (
            "def block(x, residual, weight, bias, gate, warm_up):\n",
            'CALLS = {"count": 0}\n\n\ndef block(x, residual, weight, bias, gate, warm_up):\n    CALLS["count"] += 1\n',
        ),
    ),
    "each-length": Way(
        "12 lengths compile {count} graphs: each length has its own, and after {limit} compilations of one function torch "
        "gives up and runs it as plain Python. Let the length be dynamic",
        ("torch.compile(block, backend=backend)", "torch.compile(block, backend=backend, dynamic=False)"),
    ),
    "each-step": Way(
        "12 steps compile {count} more graphs, {total} in all: a Python number is a constant of the graph, until it changes. "
        "What changes with each call has to be a tensor, or dynamic at the first call already",
        ("torch.tensor(min(1.0, (step + 1) / WARM_UP))", "min(1.0, (step + 1) / WARM_UP)"),
    ),
    "first-step": Way(
        "step {step} has the warm-up of step {first}: the value of the first call is used for ever",
        (
            "        warm_up = torch.tensor(min(1.0, (step + 1) / WARM_UP))",
            '        warm_up = vars(call).setdefault("warm_up", torch.tensor(min(1.0, (step + 1) / WARM_UP)))',
        ),
    ),
    "clips-always": Way(
        "a block with a root mean square of {rms:.3f} is scaled up to {limit}: scale only those that are above it",
        ("torch.clamp(LIMIT / rms, max=1.0)", "(LIMIT / rms)"),
    ),
    "never-negates": Way(
        "a gate with a negative sum is not negated: both branches have to be in the graph",
        ("torch.where(gate.sum() < 0, -gate, gate)", "gate"),
    ),
    "padded": Way(
        "the graph of {rows} tokens computes {padded}: the rows that you add for padding are included in the root mean "
        "square, so the values are off by {percent:.1f} % of the largest",
        (
            "        return compiled(x, residual, weight, bias, gate, warm_up)",
            "        rows = len(x)\n"
            "        x, residual = (functional.pad(item, (0, 0, 0, 64 - rows)) for item in (x, residual))\n"
            "        return compiled(x, residual, weight, bias, gate, warm_up)[:rows]",
        ),
    ),
    "outside": Way(
        "a part of the work is outside the graph: an argument is changed before it enters, or the result after it leaves. The "
        "function that you return may prepare the step, and nothing else",
        (
            "        return compiled(x, residual, weight, bias, gate, warm_up)",
            "        return residual + compiled(x, 0 * residual, weight, bias, gate, warm_up)",
        ),
    ),
}


def compute(
    arguments: compilations.Arguments, *, clip: bool = True, negate: bool = True, step: int | None = None
) -> torch.Tensor:
    """Return the right values of the block.

    Without `clip` or `negate`, leave that operation out; `step` replaces the block's step.
    """
    x, residual, weight, bias, gate, own_step = arguments
    h = functional.layer_norm(x, x.shape[-1:], weight, bias)
    rms = float(h.square().mean().sqrt())
    if rms > compilations.LIMIT or not clip:
        h = h * (compilations.LIMIT / rms)
    if gate.sum() < 0 and negate:
        gate = -gate
    warm_up = min(1.0, ((own_step if step is None else step) + 1) / compilations.WARM_UP)
    return residual + functional.gelu(h * gate, approximate="tanh") * warm_up


WRONG_VALUES: dict[str, dict[str, Any]] = {
    "first-step": {"step": compilations.FIRST_STEP},
    "clips-always": {"clip": False},
    "never-negates": {"negate": False},
}


def find_difference(value: Any, right: torch.Tensor) -> float:
    """Return the largest difference as a share of the largest right number, or 1 if the shapes differ."""
    if not isinstance(value, torch.Tensor) or value.shape != right.shape:
        return 1.0
    return float((value - right).abs().max() / right.abs().max())


def judge(part: Part) -> None:
    """Judge the values first, then the pieces of the first call, then what is compiled again."""
    torch.set_num_threads(1)
    if part.text == (Path(__file__).parent.parent / part.file.name).read_text(encoding="utf-8"):
        raise Verdict("open", sentence="as delivered: right, but in pieces")
    make = part.function("compile_block")
    series = compilations.list_series()
    inputs = [arguments for calls in series.values() for arguments in calls]
    calls = part.call(compilations.watch, make, inputs, case="4 series of calls")
    _judge_values(part, inputs, calls)
    _judge_pieces(part, calls[0])
    counts = iter([len(call.compiled) for call in calls])
    of_series = {name: [next(counts) for _ in items] for name, items in series.items()}
    total = sum(map(sum, of_series.values()))
    again = sum(of_series["same"][1:])
    if again:
        raise part.wrong("keeps-count", "the same arguments, 3 times", count=again)
    if (lengths := sum(of_series["lengths"])) > 1:
        raise part.wrong("each-length", "12 lengths", count=lengths, limit=compilations.RECOMPILE_LIMIT)
    if total > MAX_COMPILATIONS:
        raise part.wrong("each-step", "12 steps", count=sum(of_series["steps"]), total=total)
    if any(call.has_work_outside(arguments) for call, arguments in zip(calls, inputs, strict=True)):
        raise part.wrong("outside")
    part.note(f"one graph of {calls[0].compiled[0].operations} operations, compiled {total} time{'s' * (total > 1)}")
    part.note(f"{len(inputs)} calls with 13 lengths and 12 steps have the values of the block as delivered")


def _judge_values(part: Part, inputs: list[compilations.Arguments], calls: list[compilations.Call]) -> None:
    right = [compute(arguments) for arguments in inputs]
    differences = [find_difference(call.result, value) for call, value in zip(calls, right, strict=True)]
    if max(differences) <= TOLERANCE:
        return
    place = next(index for index, difference in enumerate(differences) if difference > TOLERANCE)
    rows, step = len(inputs[place][0]), inputs[place][-1]
    case = f"{rows} tokens, step {step}"
    for way, change in WRONG_VALUES.items():
        wrong = [compute(arguments, **change) for arguments in inputs]
        if all(find_difference(call.result, value) <= TOLERANCE for call, value in zip(calls, wrong, strict=True)):
            x, _, weight, bias, *_ = inputs[place]
            rms = float(functional.layer_norm(x, x.shape[-1:], weight, bias).square().mean().sqrt())
            raise part.wrong(way, case, step=step, first=compilations.FIRST_STEP, rms=rms, limit=compilations.LIMIT)
    padded = max((len(tensor) for tensor in calls[place].inputs if tensor.dim() == 2), default=rows)
    if padded > rows:
        raise part.wrong("padded", case, rows=rows, padded=padded, percent=100 * differences[place])
    if calls[place].result is None:
        raise Verdict("failed", "no-answer", "it returned None: is the return missing?", case)
    says = f"the result differs from that of the block as delivered by {100 * differences[place]:.3g} % of the largest number"
    raise Verdict("failed", "other-values", says, case)


def _judge_pieces(part: Part, first: compilations.Call) -> None:
    if not first.compiled:
        raise part.wrong("not-compiled", "the first call")
    breaks = [graph for graph in first.compiled if graph.line]
    if not breaks and len(first.compiled) == 1:
        return
    if not breaks:
        says = f"the first call compiles {len(first.compiled)} graphs: call torch.compile once, for the whole block"
        raise Verdict("failed", "pieces", says, "the first call")
    line, text = breaks[0].line, breaks[0].text.strip()
    for way, words in REASONS.items():
        if re.search(words, breaks[0].reason):
            raise part.wrong(way, "the first call", line=line, text=text, count=len(first.compiled))
    says = f"line {line} ends a graph: {text}. The first call makes {len(first.compiled)} graphs"
    raise Verdict("failed", "pieces", says, "the first call")
