"""Check the machine that this runs on, before the processes of a job start: each of its GPUs, or its processor if it has none,
has to multiply matrices without an error.

Run it            python -u work/check_machine.py         (in a job, once on each machine)

It ends with code 1 if a product is wrong. Otherwise it writes a file in outputs/, which multi_node.py counts.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from pathlib import Path

import torch

SIZE, MAX_FACTOR = 256, 8  # of whole numbers below 8: their products are exact in float32, and in TF32

node = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
devices = [f"cuda:{number}" for number in range(torch.cuda.device_count())] or ["cpu"]
random = torch.Generator().manual_seed(0)
left, right = (torch.randint(MAX_FACTOR, (SIZE, SIZE), generator=random) for _ in range(2))
start = time.perf_counter()
for device in devices:
    product = (left.float().to(device) @ right.float().to(device)).cpu()
    if wrong := int((product.long() != left @ right).sum()):
        sys.exit(f"{node}: {device} computed {wrong} of {SIZE**2} numbers wrongly")
restarts = os.environ.get("SLURM_RESTART_COUNT", "0")
path = Path(os.environ.get("GPUCOURSE_OUT") or ".") / f"machine-{restarts}-{node}-{os.getpid()}.json"
path.write_text(json.dumps({"node": node, "devices": devices}), encoding="utf-8")
print(
    f"{node}: {', '.join(devices)} computed {SIZE**2} numbers without an error in {time.perf_counter() - start:.2f} s",
    flush=True,
)
