"""Judge my_split.py of 9.4: gradients of inputs and weights, when they exist, and what stays in memory until then."""

from __future__ import annotations

import gc
import weakref
from typing import Any

from gpucourse.judge import Case, Part, Verdict, Way

WAYS = {
    "computed-now": Way(
        "after the backward pass, the weight of layer {layer} already has a gradient: leave that product for compute_weights, "
        "which runs when the stage has nothing else to do",
        (
            "        ctx.store.append((weight, gradient.detach(), x.detach()))\n        return gradient @ weight, None, None\n",
            "        ctx.store.append((weight, gradient.detach(), x.detach()))\n        compute_weights(ctx.store)\n"
            "        return gradient @ weight, None, None\n",
        ),
    ),
    "kept-the-graph": Way(
        "after the backward pass, what you stored keeps the graph of the layers before it alive, with all that it holds: store "
        "tensors without their graph",
        ("x.detach()))", "x))"),
    ),
    "overwritten": Way(
        "after two micro-batches, the gradient comes from the last one alone: each micro-batch adds to the gradient",
        ("added if weight.grad is None else weight.grad + added", "added"),
    ),
    "added-twice": Way(
        "the gradient of the weight of layer {layer} is {times:.3g} times as large as it should be: each layer counts once for "
        "each micro-batch",
        (
            "added if weight.grad is None else weight.grad + added",
            "added * 2 if weight.grad is None else weight.grad + added * 2",
        ),
    ),
    "transposed": Way(
        "the gradient of the weight is transposed: as in the weight, its rows are outputs and its columns are inputs",
        ("gradient.T @ x", "x.T @ gradient"),
    ),
    "one-layer": Way(
        "{count} of {layers} layers got a gradient: all layers of a stage share the store of a micro-batch",
        ("    for weight, gradient, x in store:", "    for weight, gradient, x in store[-1:]:"),
    ),
    "no-input-gradient": Way(
        "x has no gradient after the backward pass: the previous stage waits for it",
        ("return gradient @ weight, None, None", "return None, None, None"),
    ),
    "inputs-by-the-wrong-side": Way(
        "the gradient of x belongs to y = x W, but the layer computes y = x Wᵀ",
        ("gradient @ weight, None, None", "gradient @ weight.T, None, None"),
    ),
}
SIZES = ((7, 3, 3), (5, 6, 4), (1, 2, 8))  # rows, inputs, outputs; the first is square, so that torch accepts any side


def judge(part: Part) -> None:
    """Judge single layers, then several layers that share a store, two micro-batches, and the memory in between."""
    layer, compute_weights = part.function("SplitLinear"), part.function("compute_weights")
    if not hasattr(layer, "apply"):
        raise Verdict("failed", "no-function", "SplitLinear is not a torch.autograd.Function: it has no apply")
    for rows, inputs, outputs in SIZES:
        _check_layer(part, layer, compute_weights, rows, inputs, outputs)
    _check_stage(part, layer, compute_weights)
    _check_memory(part, layer)
    part.note("gradients of inputs and weights are right, and weights get theirs only from compute_weights")


def _draw(*shape: int, phase: float = 0.0) -> Any:
    """Return numbers that are not random, in float64."""
    import torch

    count = int(torch.tensor(shape).prod())
    return torch.sin(1.7 * torch.arange(count, dtype=torch.float64) + phase).view(*shape)


def _check_layer(part: Part, layer: Any, compute_weights: Any, rows: int, inputs: int, outputs: int) -> None:
    name = f"{rows} rows, {inputs} inputs, {outputs} outputs"
    x, weight = _draw(rows, inputs).requires_grad_(), _draw(outputs, inputs, phase=0.3).requires_grad_()
    gradient, store = _draw(rows, outputs, phase=0.7), []  # type: ignore[var-annotated]
    output = part.call(layer.apply, x, weight, store, case=name)
    part.compare([Case(f"y for {name}", output, (x @ weight.T).detach())])
    part.call(output.backward, gradient, case=name)
    if x.grad is None:
        raise part.wrong("no-input-gradient", name)
    if weight.grad is not None:
        raise part.wrong("computed-now", name, layer=0)
    right = gradient @ weight.detach()
    if inputs == outputs and _is_equal(x.grad, gradient @ weight.detach().T):
        raise part.wrong("inputs-by-the-wrong-side", name)
    part.compare([Case(f"the gradient of x for {name}", x.grad, right)])
    part.call(compute_weights, store, case=name)
    if weight.grad is None:
        raise part.wrong("one-layer", name, count=0, layers=1)
    if _is_equal(weight.grad, x.detach().T @ gradient):
        raise part.wrong("transposed", name)
    _check_weight(part, weight.grad.detach(), gradient.T @ x.detach(), 0, name)


def _is_equal(value: Any, other: Any) -> bool:
    """Return whether both tensors have the same shape and are equal up to rounding."""
    return value.shape == other.shape and bool((value - other).abs().max() <= 1e-12 * other.abs().max())


def _check_weight(part: Part, gradient: Any, right: Any, layer: int, name: str) -> None:
    times = float((gradient * right).sum() / (right * right).sum())
    if _is_equal(gradient, times * right) and times > 1.5:
        raise part.wrong("added-twice", name, layer=layer, times=times)
    part.compare([Case(f"the gradient of the weight of layer {layer}, {name}", gradient, right)])


def _check_stage(part: Part, layer: Any, compute_weights: Any) -> None:
    """Judge three layers and two micro-batches, whose weight gradients are computed after both backward passes."""
    name, size = "3 layers, 2 micro-batches", 4
    weights = [_draw(size, size, phase=number).requires_grad_() for number in range(3)]
    copies = [weight.detach().clone().requires_grad_() for weight in weights]
    stores, last = [], []
    for number in range(2):
        store: list[Any] = []
        x = _draw(5, size, phase=2 + number).requires_grad_()
        y, right = x, x.detach().clone().requires_grad_()
        for weight, copy in zip(weights, copies, strict=True):
            y = y + part.call(layer.apply, y, weight, store, case=name).tanh()
            right = right + (right @ copy.T).tanh()
        part.call(y.backward, y.detach(), case=name)
        last = [weight.grad.clone() if weight.grad is not None else 0 for weight in copies]
        right.backward(right.detach())
        stores.append(store)
    early = next((number for number, weight in enumerate(weights) if weight.grad is not None), None)
    if early is not None:
        raise part.wrong("computed-now", name, layer=early)
    for store in stores:
        part.call(compute_weights, store, case=name)
    count = sum(weight.grad is not None for weight in weights)
    if count < len(weights):
        raise part.wrong("one-layer", name, count=count, layers=len(weights))
    for number, (weight, copy) in enumerate(zip(weights, copies, strict=True)):
        assert copy.grad is not None
        if _is_equal(weight.grad, copy.grad - last[number]):
            raise part.wrong("overwritten", name)
        _check_weight(part, weight.grad.detach(), copy.grad, number, name)


def _check_memory(part: Part, layer: Any) -> None:
    """Require that the graph of the layers before this one is free after the backward pass, although the store lives."""
    store: list[Any] = []
    weight, (x, reference) = _draw(3, 4).requires_grad_(), _make_graph()
    output = part.call(layer.apply, x, weight, store, case="memory")
    part.call(output.backward, output.detach(), case="memory")
    del output, x
    gc.collect()
    if reference() is not None:
        raise part.wrong("kept-the-graph", "a layer before this one")


class _Held:
    """An object that lives as long as the graph that holds it."""


def _make_graph() -> tuple[Any, weakref.ref[_Held]]:
    """Return a tensor whose graph holds an object, and a reference that is empty once the graph is free."""
    import torch

    held = _Held()

    class Before(torch.autograd.Function):
        """A layer before the learner's."""

        @staticmethod
        def forward(ctx: Any, x: Any, held: _Held) -> Any:
            ctx.held = held
            return x * 2

        @staticmethod
        def backward(_ctx: Any, gradient: Any) -> Any:
            return gradient * 2, None

    return Before.apply(_draw(2, 4).requires_grad_(), held), weakref.ref(held)
