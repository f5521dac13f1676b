"""Measure what only GPUs show, for 9.2, 9.3, 9.6 and 9.7: times of exchanges, blocks and iterations, and a trace of FSDP.

The exercises compute compared results on CPUs, in float64. If every rank has a GPU, these functions measure on the GPUs.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import bench
import torch
import torch.distributed as dist

CALLS, COLD = 25, 5
FLASH = GROUPED = (8, 0)  # the least compute capability with FlashAttention in torch, and with grouped products
Span = tuple[float, float]


class Gpus(NamedTuple):
    """The GPU of this rank, and a group of all ranks over NCCL."""

    device: torch.device
    group: dist.ProcessGroup
    world: Any

    def time(self, call: Callable[[], object]) -> float:
        """Return the milliseconds of a call: the median of 20 warm calls, each as slow as its slowest rank."""
        with torch.no_grad():
            seconds = self.world.slowest(bench.time_each(call, self.device, CALLS)[COLD:])
        return 1e3 * sorted(seconds)[len(seconds) // 2]

    def has(self, capability: tuple[int, int]) -> bool:
        """Return whether all GPUs have at least this compute capability."""
        return all(self.world.gather(torch.cuda.get_device_capability(self.device) >= capability))


def find_gpus(world: Any, backend: str | None) -> Gpus | None:
    """Return the GPUs of a world that may compute on CPUs, or None on every rank if one rank has no GPU of its own.

    `backend` is GPUCOURSE_BACKEND as the rank was started with it: with gloo, GPUs are not used.
    """
    local = int(os.environ.get("LOCAL_RANK", "0"))
    has_gpu = backend != "gloo" and torch.cuda.is_available() and local < torch.cuda.device_count()
    if not all(world.gather(has_gpu)):
        return None
    device = torch.device("cuda", local)
    torch.cuda.set_device(device)
    return Gpus(device, dist.new_group(backend="nccl"), world)


def find_device(gpus: Gpus | None) -> torch.device:
    """Return the device to name in a record: the GPU, or the CPU if nothing was measured on a GPU."""
    return gpus.device if gpus else torch.device("cpu")


# --- 9.2: rows to experts, and their products ----------------------------------------------------------------------------


def measure_experts(gpus: Gpus | None, experts: int, top: int, tokens: int, width: int) -> dict[str, Any]:
    """Return the milliseconds of one dispatch in bfloat16 and of the experts' first product, expert by expert and grouped.

    `gb_per_s` counts what a rank sends to others. `rows_wrong` counts rows that arrived changed or in another order, and
    `grouped_off` is the difference of both products, relative to the largest element. Values are None without GPUs.
    """
    names = "exchange_ms", "gb_per_s", "rows_wrong", "loop_ms", "grouped_ms", "grouped_off"
    times: dict[str, Any] = dict.fromkeys(names)
    if gpus is None:
        return times
    rank, ranks = gpus.world.rank, gpus.world.size
    each = experts // ranks
    source = torch.Generator().manual_seed(9)
    rows = torch.randn(ranks, tokens, width, generator=source).bfloat16()
    pairs = torch.rand(ranks, tokens, experts, generator=source).topk(top, -1).indices.flatten(1)
    order = pairs.argsort(dim=-1, stable=True)
    counts = torch.stack([torch.bincount(row, minlength=experts) for row in pairs])  # [rank, expert]
    to_ranks = counts.view(ranks, ranks, each).sum(-1)
    sorted_rows = [rows[other][order[other] // top] for other in range(ranks)]
    begin = [to_ranks[other, :rank].sum() for other in range(ranks)]
    right = torch.cat(
        [part[b : b + to_ranks[other, rank]] for other, (part, b) in enumerate(zip(sorted_rows, begin, strict=True))]
    )
    leaving = sorted_rows[rank].to(gpus.device)
    arrived = torch.empty(right.shape, dtype=right.dtype, device=gpus.device)
    receive, send = to_ranks[:, rank].tolist(), to_ranks[rank].tolist()
    times["exchange_ms"] = gpus.time(lambda: dist.all_to_all_single(arrived, leaving, receive, send, group=gpus.group))
    times["rows_wrong"] = sum(gpus.world.gather(int((arrived.cpu() != right).any(-1).sum())))
    sent_bytes = max(gpus.world.gather((len(leaving) - send[rank]) * width * 2))
    times["gb_per_s"] = sent_bytes / times["exchange_ms"] / 1e6
    sizes = counts.sum(0)[rank * each : (rank + 1) * each]
    weights = (torch.randn(each, width, 2 * width, generator=source) / width**0.5).bfloat16().to(gpus.device)
    parts = sizes.tolist()

    def multiply_one_by_one() -> torch.Tensor:
        return torch.cat([part @ weight for part, weight in zip(arrived.split(parts), weights, strict=True)])

    times["loop_ms"] = gpus.time(multiply_one_by_one)
    grouped_mm = getattr(torch.nn.functional, "grouped_mm", None)
    if grouped_mm is not None and gpus.has(GROUPED):
        ends = sizes.cumsum(0).to(gpus.device, torch.int32)
        times["grouped_ms"] = gpus.time(lambda: grouped_mm(arrived, weights, offs=ends))
        one_by_one, grouped = multiply_one_by_one().float(), grouped_mm(arrived, weights, offs=ends).float()
        times["grouped_off"] = gpus.world.error(grouped.cpu(), one_by_one.cpu())
    return times


# --- 9.3: blocks of attention, and a ring whose messages run beside them -------------------------------------------------


def measure_attention(gpus: Gpus | None, tokens: int, heads: int, head_width: int) -> dict[str, Any]:
    """Return the milliseconds of a block of attention in bfloat16, by FlashAttention and by plain products, and of a ring.

    Each rank has `tokens` queries and as many keys. `blocks_ms` is a ring without messages, `exposed_ms` what they add to it.
    `lse_off` is the largest difference of FlashAttention's logsumexp from that of the scores. Values are None without GPUs
    that have FlashAttention.
    """
    times: dict[str, Any] = dict.fromkeys(("flash_ms", "plain_ms", "lse_off", "blocks_ms", "ring_ms", "exposed_ms"))
    if gpus is None or not gpus.has(FLASH):
        return times
    ranks, rank = gpus.world.size, gpus.world.rank
    source = torch.Generator().manual_seed(rank)
    q, k, v = (torch.randn(1, heads, tokens, head_width, generator=source).to(gpus.device, torch.bfloat16) for _ in range(3))

    def attend(k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        out, lse, *_ = torch.ops.aten._scaled_dot_product_flash_attention(q, k, v)  # noqa: SLF001  # it returns the lse
        return out, lse

    def send_on(tensors: Sequence[torch.Tensor]) -> tuple[list[torch.Tensor], list[Any]]:
        received = [torch.empty_like(tensor) for tensor in tensors]
        following, previous = (rank + 1) % ranks, (rank - 1) % ranks
        operations = [dist.P2POp(dist.isend, tensor, following, gpus.group) for tensor in tensors]
        operations += [dist.P2POp(dist.irecv, tensor, previous, gpus.group) for tensor in received]
        return received, dist.batch_isend_irecv(operations)

    def go_round() -> None:
        here: Sequence[torch.Tensor] = (k, v)
        for step in range(ranks):
            arriving, works = send_on(here) if step < ranks - 1 else ([], [])
            attend(*here)  # the message runs beside this
            for work in works:
                work.wait()
            here = arriving

    scores = q.float() @ k.float().transpose(-1, -2) / head_width**0.5
    differences = gpus.world.gather(float((attend(k, v)[1] - scores.logsumexp(-1)).abs().max()))
    times["lse_off"] = torch.tensor(differences).max().item()  # NaN of any rank stays NaN
    times["flash_ms"] = gpus.time(lambda: attend(k, v))
    times["plain_ms"] = gpus.time(lambda: (q @ k.transpose(-1, -2) / head_width**0.5).softmax(-1) @ v)
    times["blocks_ms"] = gpus.time(lambda: [attend(k, v) for _ in range(ranks)])
    times["ring_ms"] = gpus.time(go_round)
    times["exposed_ms"] = max(0.0, times["ring_ms"] - times["blocks_ms"])
    return times


# --- 9.6: a trace of FSDP ------------------------------------------------------------------------------------------------


def trace_step(step: Callable[[], object]) -> list[dict[str, Any]]:
    """Return the kernels of one step from the profiler's trace, as events in the format of `export_chrome_trace`."""
    from torch.profiler import profile, supported_activities

    with profile(activities=supported_activities()) as profiler:
        step()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(file))
        events = json.loads(file.read_text(encoding="utf-8"))["traceEvents"]
    return [event for event in events if event.get("cat") == "kernel"]


def measure_trace(kernels: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the number of NCCL's gathers in a trace, and the hidden and exposed milliseconds of its messages.

    A message is exposed while no other kernel runs. All values are None if the trace has no kernels.
    """
    messages: list[Span] = []
    others: list[Span] = []
    gathers = 0
    for kernel in kernels:
        is_message = "nccl" in kernel["name"].lower()
        gathers += is_message and "AllGather" in kernel["name"]
        (messages if is_message else others).append((kernel["ts"], kernel["ts"] + kernel["dur"]))
    if not messages and not others:
        return dict.fromkeys(("gathers", "step_ms", "messages_ms", "exposed_ms", "hidden_percent"))
    spans = [*messages, *others]
    sent = _measure_union(messages)
    exposed = _measure_union(spans) - _measure_union(others)
    return {
        "gathers": gathers, "step_ms": (max(end for _, end in spans) - min(begin for begin, _ in spans)) / 1e3,
        "messages_ms": sent / 1e3, "exposed_ms": exposed / 1e3,
        "hidden_percent": 100 * (1 - exposed / sent) if sent else None,
    }  # fmt: skip


def _measure_union(spans: Sequence[Span]) -> float:
    """Return the time that at least one of the spans covers."""
    total, end = 0.0, float("-inf")
    for first, last in sorted(spans):
        total += max(0.0, last - max(first, end))
        end = max(end, last)
    return total


# --- 9.7: what Muon's iterations cost ------------------------------------------------------------------------------------


def measure_iterations(
    gpus: Gpus | None, iterate: Callable[[torch.Tensor], torch.Tensor], iterations: int, width: int, tokens: int
) -> dict[str, Any]:
    """Return the milliseconds of a square matrix's forward and backward for these tokens, and of its iterations, in bfloat16.

    `percent` is the time that the iterations add, `by_flops_percent` the same by counted FLOPs. Values are None without GPUs.
    """
    times: dict[str, Any] = dict.fromkeys(("step_ms", "iterations_ms", "percent", "by_flops_percent"))
    if gpus is None:
        return times
    x, gradient, weight = (
        torch.randn(shape, width, device=gpus.device, dtype=torch.bfloat16) for shape in (tokens, tokens, width)
    )
    times["step_ms"] = gpus.time(lambda: (x @ weight.T, gradient @ weight, gradient.T @ x))
    times["iterations_ms"] = gpus.time(lambda: iterate(weight))
    times["percent"] = 100 * times["iterations_ms"] / times["step_ms"]
    times["by_flops_percent"] = 100 * iterations * width / tokens
    return times
