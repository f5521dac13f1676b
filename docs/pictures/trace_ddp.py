"""One training step of DistributedDataParallel, as torch's profiler saw it: the data of the picture of buckets.

python -m docs.pictures.trace_ddp    writes ddp-trace.json beside this file: two gloo ranks on this computer's processor
"""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn, profiler
from torch.nn.parallel import DistributedDataParallel

HERE = Path(__file__).parent
WIDTH, LAYERS, BATCH, BUCKET_MB, RANKS = 1024, 8, 256, 8, 2


def run_rank(rank: int, folder: str) -> None:
    """Train some steps on one rank; rank 0 writes what the profiler saw of the last one."""
    torch.set_num_threads(1)
    store = dist.FileStore(f"{folder}/store", RANKS)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=RANKS)
    torch.manual_seed(0)
    layers = [layer for _ in range(LAYERS) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
    model = DistributedDataParallel(nn.Sequential(*layers), bucket_cap_mb=BUCKET_MB)
    x = torch.randn(BATCH, WIDTH)
    for _ in range(5):
        model(x).square().mean().backward()
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU]) as seen:
        model(x).square().mean().backward()
    if rank == 0:
        write(seen)
    dist.barrier()
    dist.destroy_process_group()


def write(seen: profiler.profile) -> None:
    """Keep when each layer's gradient was computed and when each bucket was sent, in microseconds from the first."""
    names = {"autograd::engine::evaluate_function: AddmmBackward0": "backward", "gloo:all_reduce": "all-reduce"}
    spans = [
        {"what": names[event.name], "from_us": event.time_range.start, "to_us": event.time_range.end}
        for event in seen.events()
        if event.name in names
    ]
    zero = min(span["from_us"] for span in spans)
    spans = [{**span, "from_us": round(span["from_us"] - zero), "to_us": round(span["to_us"] - zero)} for span in spans]
    document = {
        "what": f"backward of {LAYERS} layers of {WIDTH} x {WIDTH} under DDP, buckets of {BUCKET_MB} MB, {RANKS} gloo ranks",
        "where": f"one computer, {os.cpu_count()} processor cores ({platform.machine()}), torch {torch.__version__}",
        "spans": sorted(spans, key=lambda span: (span["from_us"], span["what"])),
    }
    (HERE / "ddp-trace.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Start the ranks as forks of this process."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    with tempfile.TemporaryDirectory() as folder:
        children = []
        for rank in range(RANKS):
            if (child := os.fork()) == 0:
                run_rank(rank, folder)
                os._exit(0)
            children.append(child)
        for child in children:
            os.waitpid(child, 0)
    sys.stdout.write(f"written: {HERE / 'ddp-trace.json'}\n")


if __name__ == "__main__":
    main()
