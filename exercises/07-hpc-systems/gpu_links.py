"""Time the links of a GPU: to the host's memory, inside the GPU's memory, and to a second GPU."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import bench
import nvidia_smi
import torch

PAGEABLE, PINNED, BACK, BOTH = "to the GPU, pageable", "to the GPU, pinned", "from the GPU, pinned", "both ways, pinned"
INSIDE, PEER = "inside the GPU", "to another GPU"


def measure(sizes: list[int], device: torch.device, memory_gb_per_s: float | None) -> list[dict]:
    """Return a row for each way and size: the median, GB/s by the bytes that cross the link, and the percentage of its limit.

    If the percentage is more than 100, `refused` is set, and the figure is None. `memory_gb_per_s` is the data sheet's figure
    for the GPU's own memory.
    """
    pcie = nvidia_smi.find_pcie_gb_per_s()
    ceilings = {PAGEABLE: pcie, PINNED: pcie, BACK: pcie, BOTH: pcie and 2 * pcie, INSIDE: memory_gb_per_s, PEER: None}
    return [
        _row(way, size, call, device, carried, ceilings[way])
        for size in sizes
        for way, (call, carried) in _calls(size, device).items()
    ]


def _calls(size: int, device: torch.device) -> dict[str, tuple[Callable[[], object], int]]:
    """Return, for each existing link, the call that moves `size` bytes over it, and how many bytes then cross the link."""
    pageable, pinned, host_target = (torch.ones(size, dtype=torch.uint8, pin_memory=pin) for pin in (False, True, True))
    first_target, second_target = (torch.empty(size, dtype=torch.uint8, device=device) for _ in range(2))
    calls: dict[str, tuple[Callable[[], object], int]] = {
        PAGEABLE: (lambda: first_target.copy_(pageable), size),
        PINNED: (lambda: first_target.copy_(pinned, non_blocking=True), size),
        BACK: (lambda: host_target.copy_(second_target, non_blocking=True), size),
        BOTH: (_both_ways(first_target, second_target, pinned, host_target, device), 2 * size),
        INSIDE: (lambda: second_target.copy_(first_target), 2 * size),  # each byte is read and written
    }
    if torch.cuda.device_count() > 1 and torch.cuda.can_device_access_peer(0, 1):
        peer = torch.empty(size, dtype=torch.uint8, device="cuda:1")
        calls[PEER] = (lambda: peer.copy_(first_target, non_blocking=True), size)
    return calls


def _both_ways(
    first_target: torch.Tensor,
    second_target: torch.Tensor,
    pinned: torch.Tensor,
    host_target: torch.Tensor,
    device: torch.device,
) -> Callable[[], None]:
    forth, back = torch.cuda.Stream(device), torch.cuda.Stream(device)

    def move() -> None:
        main = torch.cuda.current_stream(device)
        for stream in (forth, back):
            stream.wait_stream(main)
        with torch.cuda.stream(forth):
            first_target.copy_(pinned, non_blocking=True)
        with torch.cuda.stream(back):
            host_target.copy_(second_target, non_blocking=True)
        for stream in (forth, back):
            main.wait_stream(stream)

    return move


def _row(
    way: str, size: int, call: Callable[[], object], device: torch.device, carried: int, ceiling: float | None
) -> dict[str, object]:
    seconds = statistics.median(bench.measure(call, device, budget_s=0.1))
    speed = carried / seconds / 1e9
    is_refused = ceiling is not None and speed > ceiling
    return {
        "way": way, "bytes": size, "median_us": seconds * 1e6, "gb_per_s": None if is_refused else speed,
        "percent_of_link": None if is_refused or not ceiling else 100 * speed / ceiling, "refused": is_refused,
    }  # fmt: skip
