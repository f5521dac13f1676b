"""Run two ranks of real DDP training on this computer, and count gloo's all-reduces with a tracer.

Started as a program, this file is one rank. It reports when it is ready, trains when told to, and ends when its input ends.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import bpf

RANKS, STEPS = 2, 10
END_S = 60.0


def trace(program: str) -> list[dict[str, Any]]:
    """Return a row for each rank: its all-reduces, how many per step, and upper bounds of the p50 and p99 of their times in us.

    Raises TracerFailed if bpftrace cannot be used or a rank ended.
    """
    with ExitStack() as stack:
        ranks = _start_ranks(stack)
        with bpf.run_bpftrace(program.replace(":$1:", f":{bpf.quote(_find_library())}:")) as maps:
            for rank in ranks:
                _tell(rank)
            for rank in ranks:
                _hear(rank)
        return [_make_row(number, rank.pid, maps) for number, rank in enumerate(ranks)]


def _make_row(number: int, pid: int, maps: dict[str, Any]) -> dict[str, Any]:
    calls = (maps.get("@calls") or {}).get(str(pid), 0)
    buckets = (maps.get("@us") or {}).get(str(pid), [])
    return {
        "rank": number, "allreduces": calls, "in_a_step": calls / STEPS,
        "p50_us": _find_percentile(buckets, 50), "p99_us": _find_percentile(buckets, 99),
    }  # fmt: skip


def _find_percentile(buckets: Sequence[dict[str, int]], percent: float) -> int | None:
    """Return the upper end of the bucket that contains this percentile of the calls, or None without calls."""
    remaining = sum(bucket["count"] for bucket in buckets) * percent / 100
    for bucket in buckets:
        remaining -= bucket["count"]
        if remaining <= 0:
            return bucket.get("max")
    return None


def _find_library() -> Path:
    import torch

    return Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"


def _start_ranks(stack: ExitStack) -> list[subprocess.Popen[str]]:
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix=".ranks-", dir=Path.cwd()))
    variables = {"STORE": f"{folder}/store", "WORLD_SIZE": str(RANKS), "GLOO_SOCKET_IFNAME": "lo"}
    ranks = []
    for number in range(RANKS):
        rank = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=dict(os.environ) | variables | {"RANK": str(number)},
        )  # fmt: skip
        stack.callback(_end, rank)
        ranks.append(rank)
    for rank in ranks:
        _hear(rank)
    return ranks


def _tell(rank: subprocess.Popen[str]) -> None:
    assert rank.stdin
    rank.stdin.write("train\n")
    rank.stdin.flush()


def _hear(rank: subprocess.Popen[str]) -> None:
    assert rank.stdout
    if not rank.stdout.readline():
        raise bpf.TracerFailed(f"a rank of the training ended (exit {rank.wait()}); its log is above")


def _end(rank: subprocess.Popen[str]) -> None:
    assert rank.stdin
    assert rank.stdout
    rank.stdin.close()
    try:
        rank.wait(timeout=END_S)
    except subprocess.TimeoutExpired:
        rank.kill()
        rank.wait()
    rank.stdout.close()


def _train() -> None:
    """Train one rank. The model's gradients are one bucket, so DDP sends them with one all-reduce per step."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    torch.manual_seed(0)
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", init_method=f"file://{os.environ['STORE']}", rank=rank, world_size=size)
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(parallel.parameters(), 0.1)
    print("ready", flush=True)  # to the process that started this one
    for _ in sys.stdin:
        for _step in range(STEPS):
            optimizer.zero_grad()
            parallel(torch.randn(8, 256)).square().mean().backward()
            optimizer.step()
        print("trained", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    _train()
