"""Move data from a file into a GPU's memory, through pageable memory, pinned memory or two buffers, and past the host."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import nvidia_smi
import torch

BLOCK = 16 << 20


def measure(path: Path, device: torch.device) -> tuple[list[dict], dict[str, object]]:
    """Return a row for each way, warm, with GB/s and processor seconds per GB; then the result of GPUDirect Storage.

    If the measured GB/s exceed the link's, they are None, and `refused` is true. For GPUDirect Storage, `mode` is gds,
    compat or None, with the reason in words.
    """
    link = nvidia_smi.find_pcie_gb_per_s()
    ways: dict[str, Callable[[Path, torch.device], None]] = {
        "pageable": _copy_pageable,
        "pinned": _copy_pinned,
        "pinned, two buffers": _copy_with_two,
    }
    mode, reason = _find_gds()
    if mode is not None:
        ways["GPUDirect Storage" if mode == "gds" else "cuFile, compat mode"] = _load_by_cufile
    rows = [_row(way, call, path, device, link) for way, call in ways.items()]
    return rows, {"mode": mode, "why": reason}


def _row(
    way: str, call: Callable[[Path, torch.device], None], path: Path, device: torch.device, link: float | None
) -> dict[str, object]:
    gigabytes = path.stat().st_size / 1e9
    times = []
    for _ in range(3):
        cpu, start = time.process_time(), time.perf_counter()
        call(path, device)
        torch.cuda.synchronize(device)
        times.append((time.perf_counter() - start, time.process_time() - cpu))
    seconds, cpu_s = min(times)
    speed = gigabytes / seconds
    is_refused = link is not None and speed > link
    return {"way": way, "gb_per_s": None if is_refused else speed, "cpu_s_per_gb": cpu_s / gigabytes, "refused": is_refused}


def _copy_pageable(path: Path, device: torch.device) -> None:
    target = torch.empty(BLOCK, dtype=torch.uint8, device=device)
    buffer = torch.empty(BLOCK, dtype=torch.uint8)
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(buffer.numpy()):
            target[:count].copy_(buffer[:count])


def _copy_pinned(path: Path, device: torch.device) -> None:
    target = torch.empty(BLOCK, dtype=torch.uint8, device=device)
    buffer = torch.empty(BLOCK, dtype=torch.uint8, pin_memory=True)
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(buffer.numpy()):
            target[:count].copy_(buffer[:count], non_blocking=True)
            torch.cuda.synchronize(device)  # because the buffer is filled again next


def _copy_with_two(path: Path, device: torch.device) -> None:
    target = torch.empty(BLOCK, dtype=torch.uint8, device=device)
    buffers = [torch.empty(BLOCK, dtype=torch.uint8, pin_memory=True) for _ in range(2)]
    free = [torch.cuda.Event() for _ in buffers]
    turn = 0
    with path.open("rb", buffering=0) as file:
        while True:
            free[turn].synchronize()
            if not (count := file.readinto(buffers[turn].numpy())):
                return
            target[:count].copy_(buffers[turn][:count], non_blocking=True)
            free[turn].record()
            turn = 1 - turn


def _load_by_cufile(path: Path, device: torch.device) -> None:
    target = torch.empty(path.stat().st_size, dtype=torch.uint8, device=device)
    file = torch.cuda.gds.GdsFile(str(path), os.O_RDONLY)
    file.load_storage(target.untyped_storage())


def _find_gds() -> tuple[str | None, str]:
    """Return cuFile's mode, or None if cuFile cannot be used, and the reason. Without nvidia-fs, cuFile copies through the
    host."""
    if not hasattr(torch.cuda, "gds"):
        return None, "not measured: this torch has no torch.cuda.gds"
    try:
        probe = torch.zeros(4096, dtype=torch.uint8, device="cuda").untyped_storage()
        torch.cuda.gds.gds_register_buffer(probe)
        torch.cuda.gds.gds_deregister_buffer(probe)
    except (RuntimeError, OSError) as error:
        return None, f"not measured: cuFile cannot be used ({str(error).splitlines()[0][:100]})"
    if Path("/proc/driver/nvidia-fs/stats").exists():
        return "gds", "nvidia-fs is loaded"
    return "compat", "no nvidia-fs: cuFile reads into the host's memory and copies, which is not GPUDirect Storage"
