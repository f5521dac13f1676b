"""Muon on whole matrices and in shares, for 9.7: plans of iterations, gradients of all ranks, and what a step costs.

The iteration is applied to singular values, which a decomposition provides. It is exact and slow: a reference to compare with.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.distributed as dist
import torch.optim._muon as torch_muon
from shard_bytes import SentBytes, count_kept_numbers
from torch.utils.flop_counter import FlopCounterMode

Triple = tuple[float, float, float]
Parameters = dict[str, torch.nn.Parameter]
QUINTIC: Triple = (3.4445, -4.7750, 2.0315)  # steep at 0 (Muon's first implementation, 2024)
FINISH: Triple = (2.0, -1.5, 0.5)  # flat at 1 (DeepSeek-V4, 2026)
CUBIC: Triple = (1.5, -0.5, 0.0)
HYBRID = [*[QUINTIC] * 8, *[FINISH] * 2]
"""The plan for the check of your iteration. An edit of make_plan leaves it as it is."""
TORCH_ITERATIONS = 5
SETTINGS = {"lr": 0.02, "momentum": 0.95, "weight_decay": 0.1}
ADAM_LR, VOCABULARY, LENGTH = 0.01, 64, 16


def make_plan(name: str, iterations: int) -> list[Triple]:
    """Return the coefficients of each iteration. `hybrid` is DeepSeek-V4's plan, and always has ten."""
    if name == "hybrid":
        return [QUINTIC] * 8 + [FINISH] * 2
    return [QUINTIC if name == "quintic" else CUBIC] * iterations


def apply_plan(values: torch.Tensor, plan: Iterable[Triple]) -> torch.Tensor:
    """Return each number after the polynomials of the plan, one after the other."""
    for a, b, c in plan:
        values = a * values + b * values**3 + c * values**5
    return values


def replace_singular_values(matrix: torch.Tensor, plan: list[Triple]) -> torch.Tensor:
    """Return the matrix with each singular value replaced, computed by a decomposition in float64."""
    u, values, vt = torch.linalg.svd(matrix.double(), full_matrices=False)
    return (u * apply_plan(values / values.square().sum().sqrt(), plan) @ vt).to(matrix.dtype)


def draw_matrix(rows: int, columns: int) -> torch.Tensor:
    """Return a matrix in float64 whose largest singular value is about 150 times its least, as in a gradient."""
    source = torch.Generator().manual_seed(0)
    scales = torch.logspace(0, -2, columns, dtype=torch.float64)
    return torch.randn(rows, columns, generator=source, dtype=torch.float64) * scales


def list_iterations(matrix: torch.Tensor, plan: list[Triple]) -> list[dict[str, Any]]:
    """Return the least and the largest singular value before and after each iteration, and the share from 0.7 to 1.2."""
    values = torch.linalg.svdvals(matrix)
    values, rows = values / values.square().sum().sqrt(), []
    for step in range(len(plan) + 1):
        now = apply_plan(values, plan[:step])
        near = ((now >= 0.7) & (now <= 1.2)).double().mean()
        rows.append({"step": step, "least": float(now.min()), "largest": float(now.max()), "share_near_one": float(near)})
    return rows


def find_hybrid_off() -> float:
    """Return the largest distance from 1 of a singular value from 0.005 to 1 after the hybrid plan."""
    values = torch.linspace(0.005, 1, 2000, dtype=torch.float64)
    return float((apply_plan(values, make_plan("hybrid", 0)) - 1).abs().max())


# --- what it costs -----------------------------------------------------------------------------------------------------


def count_flops(rows: int, columns: int) -> int:
    """Return the FLOPs of one iteration by formula: two products with the short side, one of squares."""
    m, n = sorted((rows, columns))
    return 4 * m * m * n + 2 * m**3


def count_torch_flops(width: int, iterations: int) -> int:
    """Return the FLOPs that torch's own iteration of a square matrix performs, counted by torch."""
    matrix = torch.empty(width, width, device="meta")
    with FlopCounterMode(display=False) as counter:
        _TORCH_ITERATION(matrix, QUINTIC, iterations, 1e-7)
    return int(counter.get_total_flops())


def count_step_flops(width: int, tokens: int) -> int:
    """Return the FLOPs of forward and backward of one square matrix for these tokens, counted by torch."""
    tokens_in = torch.empty(tokens, width, device="meta", requires_grad=True)
    weight = torch.empty(width, width, device="meta", requires_grad=True)
    with FlopCounterMode(display=False) as counter:
        (tokens_in @ weight).sum().backward()
    return int(counter.get_total_flops())


def iterate_as_torch(matrix: torch.Tensor) -> torch.Tensor:
    """Return the matrix after torch's own iterations, which it computes in bfloat16."""
    result: torch.Tensor = _TORCH_ITERATION(matrix, QUINTIC, TORCH_ITERATIONS, 1e-7)
    return result


def find_bf16_off(device: torch.device) -> float:
    """Return the error of torch's iterations in bfloat16 on this device, as a share of the largest element."""
    matrix = draw_matrix(128, 64)
    right = replace_singular_values(matrix, [QUINTIC] * TORCH_ITERATIONS)
    result = iterate_as_torch(matrix.float().to(device)).double().cpu()
    return float((result - right).abs().max() / right.abs().max())


_TORCH_ITERATION = torch_muon._zeropower_via_newtonschulz  # noqa: SLF001 (torch has no public name for it)

# --- a training run on ranks -------------------------------------------------------------------------------------------


def list_shapes(layers: int, width: int) -> dict[str, tuple[int, ...]]:
    """Return the shape of each parameter of a small transformer, by name."""
    shapes: dict[str, tuple[int, ...]] = {"embedding.weight": (VOCABULARY, width)}
    for layer in range(layers):
        block = {"qkv": (3 * width, width), "out": (width, width), "norm": (width,), "up": (4 * width, width),
                 "down": (width, 4 * width)}  # fmt: skip
        shapes |= {f"blocks.{layer}.{name}": shape for name, shape in block.items()}
    return shapes | {"head.weight": (VOCABULARY, width)}


def is_hidden(name: str, shape: Iterable[int]) -> bool:
    """Return whether Muon changes this parameter."""
    return len(list(shape)) == 2 and not name.startswith(("embedding", "head"))


def make_parameters(layers: int, width: int, device: torch.device) -> Parameters:
    """Return all parameters in float32, the same on every rank."""
    source = torch.Generator().manual_seed(1)
    return {
        name: torch.nn.Parameter((torch.randn(shape, generator=source) / math.sqrt(shape[-1])).to(device))
        for name, shape in list_shapes(layers, width).items()
    }


def put_gradients(parameters: Parameters, step: int, ranks: range) -> None:
    """Set each gradient to the mean of the random gradients of these ranks. Any rank can draw those of any other rank."""
    sources = [torch.Generator().manual_seed(1000 * step + rank) for rank in ranks]
    for weight in parameters.values():
        gradients = [torch.randn(weight.shape, generator=source) for source in sources]
        weight.grad = (sum(gradients, torch.zeros(())) / len(ranks)).to(weight.device)


def make_adam(parameters: Parameters) -> torch.optim.Optimizer:
    """Return the AdamW for the parameters that Muon does not change."""
    others = [weight for name, weight in parameters.items() if not is_hidden(name, weight.shape)]
    return torch.optim.AdamW(others, lr=ADAM_LR, foreach=False)


def make_torch_muon(parameters: Parameters, plan: list[Triple]) -> torch.optim.Optimizer:
    """Return torch's own Muon for the hidden matrices. This plan replaces torch's iteration in bfloat16."""
    torch_muon._zeropower_via_newtonschulz = lambda update, *_: replace_singular_values(update, plan)  # noqa: SLF001
    hidden = [weight for name, weight in parameters.items() if is_hidden(name, weight.shape)]
    return torch.optim.Muon(hidden, nesterov=True, **SETTINGS)


def train_alone(layers: int, width: int, steps: int, plan: list[Triple], ranks: int, device: torch.device) -> Parameters:
    """Return the parameters after training in one process, with the mean gradients of all ranks."""
    parameters = make_parameters(layers, width, device)
    optimizers = make_torch_muon(parameters, plan), make_adam(parameters)
    for step in range(steps):
        put_gradients(parameters, step, range(ranks))
        for optimizer in optimizers:
            optimizer.step()
    return parameters


def train_on_every_rank(world: Any, layers: int, width: int, steps: int, plan: list[Triple]) -> dict[str, Any]:
    """Train with an all-reduce of all gradients, after which every rank orthogonalises every matrix. Return a row."""
    parameters = make_parameters(layers, width, world.device)
    optimizer, adam = make_torch_muon(parameters, plan), make_adam(parameters)
    sent = SentBytes(world.size)
    for step in range(steps):
        put_gradients(parameters, step, range(world.rank, world.rank + 1))
        for name, weight in parameters.items():
            with sent if is_hidden(name, weight.shape) else SentBytes(world.size):
                dist.all_reduce(weight.grad)
            weight.grad /= world.size
        optimizer.step()
        adam.step()
    matrices = [weight for name, weight in parameters.items() if is_hidden(name, weight.shape)]
    work = sum(count_flops(*weight.shape) for weight in matrices)
    return _make_row(world, parameters, optimizer, work, sent, steps, plan)


def train_yours(world: Any, layers: int, width: int, steps: int, plan: list[Triple], *, with_yours: bool) -> dict[str, Any]:
    """Train with the learner's my_muon.py, and with my_orthogonal.py if that part is right. Return a row."""
    import my_muon

    plan = [(a, b, c) for a, b, c in plan]
    whole: Callable[..., torch.Tensor] = replace_singular_values
    if with_yours:
        import my_orthogonal

        whole = my_orthogonal.orthogonalise
    work = 0

    def orthogonalise(matrix: torch.Tensor) -> torch.Tensor:
        nonlocal work
        work += count_flops(*matrix.shape)
        return whole(matrix, plan)

    torch.set_num_threads(1)
    parameters = make_parameters(layers, width, world.device)
    optimizer, adam = my_muon.ShardedMuon(parameters, **SETTINGS, orthogonalise=orthogonalise), make_adam(parameters)
    sent = SentBytes(world.size)
    for step in range(steps):
        put_gradients(parameters, step, range(world.rank, world.rank + 1))
        with sent:
            optimizer.step()
        for name, weight in parameters.items():
            if not is_hidden(name, weight.shape):
                dist.all_reduce(weight.grad)
                weight.grad /= world.size
        adam.step()
    return _make_row(world, parameters, optimizer, work // steps, sent, steps, plan)


def _make_row(
    world: Any, parameters: Parameters, optimizer: Any, work: int, sent: SentBytes, steps: int, plan: list[Triple]
) -> dict[str, Any]:
    """Return a row of this rank: its `work`, `kept_numbers` and `sent_numbers`, and `off`, the largest error of a weight."""
    layers = sum(name.endswith(".qkv") for name in parameters)
    width = parameters["embedding.weight"].shape[1]
    right = train_alone(layers, width, steps, plan, world.size, world.device)
    off = max(float((weight - right[name]).detach().abs().max()) for name, weight in parameters.items())
    elsewhere = [*parameters.values(), *(weight.grad for weight in parameters.values() if weight.grad is not None)]
    return {
        "off": off if math.isfinite(off) else 1e30, "work": work, "kept_numbers": count_kept_numbers(optimizer, elsewhere),
        "sent_numbers": sent.ring_bytes / 4 / steps,
    }  # fmt: skip


def find_loads(layers: int, width: int, ranks: int) -> tuple[list[int], float]:
    """Return the work of each rank if matrices are dealt in turn, in the model's order, and the mean work of a rank."""
    works = [count_flops(*s) for name, s in list_shapes(layers, width).items() if is_hidden(name, s)]
    return [sum(works[rank::ranks]) for rank in range(ranks)], sum(works) / ranks


def find_max_load(layers: int, width: int, ranks: int) -> float:
    """Return the largest work that a rank may have: 1.2 times the mean (1.4 with fewer than two matrices for each rank), or
    more if the matrices cannot be divided so evenly.

    One of n ranks has at least k + 1 of the k n + 1 largest matrices, so its work is at least that of the k + 1 smallest of
    these.
    """
    works = sorted((count_flops(*s) for name, s in list_shapes(layers, width).items() if is_hidden(name, s)), reverse=True)
    least = [sum(works[k * ranks - k : k * ranks + 1]) for k in range((len(works) - 1) // ranks + 1)]
    return max((1.2 if len(works) >= 2 * ranks else 1.4) * sum(works) / ranks, *least)


def measure_orthogonal(_world: Any, rows: int, columns: int, plan: list[Triple], hybrid: list[Triple]) -> dict[str, Any]:
    """Return `off`, `flops` and `hybrid_off` of the learner's my_orthogonal.py.

    `off` is the largest error of an element. `hybrid_off` is the largest distance of a singular value from 1 after the hybrid
    plan.
    """
    import my_orthogonal

    torch.set_num_threads(1)
    plan, hybrid = [(a, b, c) for a, b, c in plan], [(a, b, c) for a, b, c in hybrid]
    matrix = draw_matrix(rows, columns)
    with FlopCounterMode(display=False) as counter:
        result = my_orthogonal.orthogonalise(matrix.clone(), plan)
    off = float((result - replace_singular_values(matrix, plan)).abs().max())
    near = draw_matrix(64, 64) + torch.eye(64, dtype=torch.float64)  # no singular value below 0.005 of the norm
    values = torch.linalg.svdvals(my_orthogonal.orthogonalise(near, hybrid))
    hybrid_off = float((values - 1).abs().max())
    return {"off": off if math.isfinite(off) else 1e30, "flops": int(counter.get_total_flops()),
            "hybrid_off": hybrid_off if math.isfinite(hybrid_off) else 1e30}  # fmt: skip
