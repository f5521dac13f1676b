"""Choose the device of a Triton kernel: the GPU if Triton supports it, otherwise Triton's interpreter on the processor."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import bench
import torch

PATIENCE_S = 120.0  # the first compilation of a process, on a busy machine


def choose() -> tuple[torch.device, str | None]:
    """Return the device for this process's kernels, and why it is not a GPU (None if it is). Call it before importing triton.

    Triton officially supports NVIDIA GPUs from compute capability 8.0 on. On older GPUs it may or may not work, so a separate
    process tries a kernel first. If that fails, this process can continue.
    """
    device = bench.here()
    reason = None
    if device.type != "cuda":
        reason = "no GPU here"
    elif complaint := _try_kernel():
        reason = f"Triton does not support {torch.cuda.get_device_name(device)}: {complaint}"
    if reason is None:
        return device, None
    os.environ["TRITON_INTERPRET"] = "1"  # read when a kernel is defined
    return torch.device("cpu"), reason


def _try_kernel() -> str:
    """Return why a small kernel does not run on the GPU, or an empty text if it does."""
    command = [sys.executable, str(Path(__file__).resolve())]
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    try:
        process = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    except subprocess.TimeoutExpired:
        return f"a kernel of one line did not end within {PATIENCE_S:g} s"
    lines = [line for line in process.stderr.splitlines() if line.strip()]
    return "" if process.returncode == 0 else (lines or [f"exit code {process.returncode}"])[-1][:300]


if __name__ == "__main__":
    import triton
    import triton.language as tl

    @triton.jit
    def double(x_ptr, y_ptr, BLOCK: tl.constexpr):
        """Store y = 2 x, for BLOCK numbers."""
        places = tl.arange(0, BLOCK)
        tl.store(y_ptr + places, 2 * tl.load(x_ptr + places))

    x = torch.arange(64, dtype=torch.float32, device="cuda")
    y = torch.zeros_like(x)
    double[(1,)](x, y, BLOCK=64)
    if not torch.equal(y.cpu(), 2 * x.cpu()):
        sys.exit("a kernel that doubles 64 numbers gave wrong numbers")
