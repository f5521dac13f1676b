"""In the session: load a model from its file and use it, on the GPU that Slurm gave to this terminal.

You will learn    what an interactive job is good for, what it holds while you think, and how to see that it is released
You will produce  a transcript of your session; inference.json with the model's answers
Run it            gpucourse run 2.2                      (a terminal on a node; then, there:)
                  python session.py
                  nvidia-smi; squeue; echo $CUDA_VISIBLE_DEVICES
                  exit
Your part         find the GPU that is held and not used, and give it back: my_release.sh (python held.py)
Reading           modules/02-slurm/lesson.md, "A terminal on a node"
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node bench.py is beside this file

import bench
import torch
from bench import say
from torch import nn

SEED, SIDE, FILE = 0, 8, Path("stripes.pt")
NAMES = ("horizontal", "vertical")

# --- knobs ---------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="load a model and let it tell horizontal from vertical stripes")
parser.add_argument("--noise", type=float, default=0.5, help="how much noise is added to the pictures")
args = parser.parse_args()
if not 0 <= args.noise <= 100:
    parser.error("--noise must be from 0 to 100")

torch.manual_seed(SEED)
on_gpu = torch.cuda.is_available() and os.environ.get("GPUCOURSE_BACKEND") != "gloo"
device = torch.device("cuda" if on_gpu else "cpu")
net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveMaxPool2d(2), nn.Flatten(), nn.Linear(32, 2))
net.to(device)


def pictures(count: int, noise: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Return noisy pictures of stripes, and the kind of each picture."""
    stripes = (torch.arange(SIDE) % 2).float().repeat(SIDE, 1)
    kinds = torch.randint(2, (count,))
    clean = torch.where(kinds[:, None, None] == 1, stripes, stripes.T)
    return (clean + noise * torch.randn(count, SIDE, SIDE))[:, None].to(device), kinds.to(device)


def tell(text: str) -> None:
    """Print the line. If the output goes elsewhere (`> FILE`, `| tail`), also print it on the terminal, because your numbers
    are compared with those that the session showed."""
    say(text)
    if sys.stderr.isatty() and not sys.stdout.isatty():
        print(text, file=sys.stderr)


# --- the first time there is no model: train it and keep it ------------------------------------------------------------
if not FILE.is_file():
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(200):
        inputs, kinds = pictures(64, 0.3)
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(inputs), kinds).backward()
        optimizer.step()
    torch.save(net.state_dict(), FILE)
    say(f"trained a model and kept it in {FILE}")

# --- load it, and use it ---------------------------------------------------------------------------------------------------
start = time.perf_counter()
net.load_state_dict(torch.load(FILE, map_location=device, weights_only=True))
load_ms = (time.perf_counter() - start) * 1e3
inputs, kinds = pictures(256, args.noise)
with torch.no_grad():
    latency = bench.spread_ms(bench.time_calls(lambda: net(inputs[:1]), device, budget_s=0.2))
    sure = net(inputs).softmax(1)
right = int((sure.argmax(1) == kinds).sum())
for picture in range(4):
    say(f"picture {picture}: {NAMES[int(sure[picture].argmax())]}, {100 * sure[picture].max().item():.0f} % sure")
tell(f"{right} of 256 right at noise {args.noise:g}; loaded in {load_ms:.1f} ms, one answer in {latency['median_ms']:.3f} ms")

# --- the record ----------------------------------------------------------------------------------------------------------
record = {
    "host": os.environ.get("SLURMD_NODENAME") or bench.node_label(), "job": os.environ.get("SLURM_JOB_ID"),
    "gpus_given": len([gpu for gpu in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if gpu.strip()]),
    "noise": args.noise, "asked": 256, "right": right, "accuracy_percent": 100 * right / 256, "load_ms": load_ms,
    "answer_ms": latency["median_ms"], **bench.environment(device),
}  # fmt: skip
out = Path(os.environ.get("GPUCOURSE_OUT") or ".")
out.mkdir(parents=True, exist_ok=True)
path = out / "inference.json"
unmeasured = {
    "rows": [],
    "usage": [],
    "waited_for_gpu": None,
    "start_s": None,
    "given_back": None,
    "wrong_jobs": None,
}  # until held.py runs
earlier = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"held": unmeasured}
path.write_text(json.dumps(earlier | record, indent=2) + "\n", encoding="utf-8")
say(f"written: {path}")
