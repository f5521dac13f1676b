"""From CPU to GPU: a training loop moves to the GPU, stops waiting for it, and trains in 16 bits. A profile shows where the
time goes.

You will learn    what moves and when, what makes the processor wait, mixed precision and loss scaling, how to read a profile
You will produce  samples a second of the provided loop, and of yours in float32 and 16 bits; a profile and a trace of yours
Run it            python cpu_to_gpu.py --steps 30 --batch-size 64 --hidden 128      (a CPU)
                  python cpu_to_gpu.py                                              (a GPU)
Your part         rewrite train in my_loop.py
Reading           modules/05-gpu-programming/lesson-3-pytorch.md
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
import traceback
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import loops
import my_loop
import torch
from bench import say
from profiles import limit_samples_per_s, take_profile
from torch import nn

SEED, WARMUP, COMPARED, PROFILED, WATCHED = 0, 5, 10, 10, 10  # the seed, then numbers of steps
DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="a training loop moves from the CPU to the GPU")
parser.add_argument("--steps", type=int, default=200, help="timed steps for each way of training")
parser.add_argument("--batch-size", type=int, default=1024, help="samples per step")
parser.add_argument("--hidden", type=int, default=2048, help="width of the two hidden layers")
parser.add_argument(
    "--precision",
    choices=["auto", *DTYPES],
    default="auto",
    help="the 16-bit format; auto uses bfloat16 if the device computes with it, else float16",
)
parser.add_argument("--top", type=int, default=8, help="number of rows of the profile to show")
args = parser.parse_args()
if args.steps < 5 or args.batch_size < 1 or args.hidden < 1 or args.top < 3:
    parser.error("--steps must be at least 5, --batch-size and --hidden at least 1, and --top at least 3")

# --- set-up ------------------------------------------------------------------------------------------------------------
device = bench.here()
on_gpu = device.type == "cuda"
if not on_gpu:
    torch.set_num_threads(1)  # with layers this small more threads cost more than they gain
out = Path(os.environ.get("GPUCOURSE_OUT") or ".")
out.mkdir(parents=True, exist_ok=True)
torch.backends.cuda.matmul.allow_tf32 = False  # float32 means float32, on every GPU
inputs, labels = loops.make_data(args.batch_size)


def choose_dtype() -> torch.dtype:
    """Return the format that --precision asks for. With auto, that is bfloat16, or float16 on a GPU before Ampere."""
    if args.precision != "auto":
        return DTYPES[args.precision]
    return torch.float16 if on_gpu and not torch.cuda.is_bf16_supported(including_emulation=False) else torch.bfloat16


def train_yours(steps: int, dtype: torch.dtype) -> torch.Tensor:
    return my_loop.train(loops.make_model(args.hidden), inputs, labels, args.batch_size, device, steps, dtype)


def train_as_delivered(steps: int, _dtype: torch.dtype) -> torch.Tensor:
    return loops.train_on_cpu(loops.make_model(args.hidden), inputs, labels, args.batch_size, steps=steps)


def train_watched(model, rows, row_labels, batch_size: int, _device: torch.device, steps: int, _dtype) -> torch.Tensor:
    return loops.train_on_cpu(model, rows, row_labels, batch_size, steps=steps)


def time_training(train, steps: int, dtype: torch.dtype) -> tuple[float, torch.Tensor]:
    """Return how many seconds `steps` steps take until all queued work is done, and the losses of the steps.

    PyTorch chooses and compiles kernels in the first steps of a format, so these run before the clock starts.
    """
    train(WARMUP, dtype)
    if on_gpu:
        torch.cuda.synchronize()
    start = time.perf_counter()
    outcome = train(steps, dtype)
    if on_gpu:
        torch.cuda.synchronize()
    return time.perf_counter() - start, loops.convert_losses(outcome)


def run_way(way: str, train, dtype: torch.dtype, place: torch.device) -> dict:
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    seconds, losses = time_training(train, args.steps, dtype)
    speed = limit_samples_per_s(args.batch_size * args.steps / seconds, loops.make_model(args.hidden), place, dtype)
    row = {
        "way": way, "device": place.type, "dtype": str(dtype).removeprefix("torch."),
        "loss_first": losses[0].item(), "loss_last": losses[-1].item(), "losses": losses[:COMPARED].tolist(),
        "step_ms": 1e3 * seconds / args.steps, "samples_per_s": speed,
        "peak_gpu_memory_bytes": torch.cuda.max_memory_allocated() if place.type == "cuda" else None,
    }  # fmt: skip
    speed_text = f"{speed:>12,.0f}" if speed else "     refused: more than the device can do,"
    say(f"{way:<18} {speed_text} samples/s   loss {row['loss_first']:.4f} -> {row['loss_last']:.4f}")
    return row


def count_zero_gradients(scale: float, dtype: torch.dtype = torch.float16) -> float:
    """Return the percentage of a small loss's gradients that are 0 in `dtype`. Multiply the loss by `scale` before backward."""
    torch.manual_seed(SEED)
    model = nn.Sequential(*[layer for _ in range(6) for layer in (nn.Linear(64, 64), nn.Tanh())], nn.Linear(64, 4)).to(device)
    source = torch.Generator().manual_seed(SEED)
    x = torch.randn(64, 64, generator=source)
    y = (x @ torch.randn(64, 4, generator=source)).argmax(dim=1)
    with torch.autocast(device.type, dtype):
        loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device)) * 1e-3  # such as one small term of a loss
    (loss * scale).backward()
    zeros = sum(int((weight.grad == 0).sum()) for weight in model.parameters())
    return 100 * zeros / sum(weight.numel() for weight in model.parameters())


def divide(first: dict, second: dict) -> float | None:
    """Return the first speed divided by the second, or None if a speed was refused."""
    return first["samples_per_s"] / second["samples_per_s"] if first["samples_per_s"] and second["samples_per_s"] else None


# --- the experiment ----------------------------------------------------------------------------------------------------
mixed = choose_dtype()
device_text = torch.cuda.get_device_name(device) if on_gpu else "the CPU"
say(f"training on {device_text}: {args.steps} steps of {args.batch_size} samples, hidden layers of {args.hidden}")
state_bytes = loops.measure_training_bytes(args.hidden)
say(f"parameters, gradients and AdamW's state: {state_bytes / 1e6:,.2f} MB")

meta = loops.run_on_meta(my_loop.train)
say(f"three steps of your loop without data (meta device): {'fine' if meta.kind == 'fine' else meta.says}")
if meta.line:
    say(f"  at my_loop.py, line {meta.line}")

say("")
runs = [run_way("as delivered", train_as_delivered, torch.float32, torch.device("cpu"))]
broken = watched = plain = None
sizes = {"width": args.hidden, "batch_size": args.batch_size, "steps": WATCHED}
read = loops.watch(train_watched, torch.device("cpu"), torch.float32, **sizes).operations.values_read
read_rows = [{"loop": "as delivered", "values_read": read / WATCHED}]
try:
    placed = device if meta.kind == "fine" else torch.device("cpu")
    runs.append(run_way("yours, float32", train_yours, torch.float32, placed))
    if mixed != torch.float32:
        runs.append(run_way(f"yours, {str(mixed).removeprefix('torch.')}", train_yours, mixed, placed))
    plain = loops.watch(my_loop.train, device, torch.float32, **sizes)
    watched = loops.watch(my_loop.train, device, mixed, **sizes)
    read_rows.append({"loop": "yours", "values_read": watched.operations.values_read / WATCHED})
except Exception as error:  # noqa: BLE001  # the learner's code may fail in any way; the error is shown
    broken = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}"
    traceback.print_exc(file=sys.stdout)

zeros, zeros_scaled = count_zero_gradients(1.0), count_zero_gradients(65536.0)
zero_rows = [
    {"format": "float16", "percent": zeros}, {"format": "float16, loss scaled", "percent": zeros_scaled},
    {"format": "bfloat16", "percent": count_zero_gradients(1.0, torch.bfloat16)},
]  # fmt: skip
say(f"\ngradients of a small loss that are 0 in float16: {zeros:.1f} %, with the loss scaled by 65,536: {zeros_scaled:.1f} %")
profiled = train_as_delivered if broken else train_yours
profiled(WARMUP, mixed)
profile = take_profile(lambda: profiled(PROFILED, mixed), device, top=args.top, trace=out / "trace.json.gz")
(out / "profile.txt").write_text(profile.text, encoding="utf-8")
side = "processor" if profile.gpu_busy_percent is None else "GPU"
titles = {"operation": "operation", "calls": "calls", "self_ms": "own ms", "self_percent": "%"}
short_rows = [row | {"operation": row["operation"][:44]} for row in profile.rows]
bench.say_table(short_rows, titles, title=f"Where the time of {PROFILED} steps went, on the {side}:")
say("trace.json.gz: open it in https://ui.perfetto.dev")

# --- the record ----------------------------------------------------------------------------------------------------------
reference, yours, half = [*runs, None, None][:3]
losses_off = None
if yours and len(yours["losses"]) == len(reference["losses"]):
    losses_off = max(abs(a - b) for a, b in zip(yours["losses"], reference["losses"], strict=True))
metrics = {
    **vars(args), "parameters": sum(weight.numel() for weight in loops.make_model(args.hidden).parameters()),
    "training_state_mb": state_bytes / 1e6, "mixed_dtype": str(mixed).removeprefix("torch."),
    "runs": [{key: value for key, value in row.items() if key != "losses"} for row in runs],
    "loop_broken": broken or "no error", "meta_kind": meta.kind, "meta_error": meta.says, "meta_line": meta.line,
    "host_syncs_per_step": watched.operations.values_read / WATCHED if watched else None,
    "moves": len(meta.moves) if meta.kind == "fine" else None,
    "moves_blocking": sum(not move.non_blocking for move in meta.moves) if meta.kind == "fine" else None,
    "moves_pageable": sum(not move.pinned for move in watched.moves) if watched and on_gpu else None,
    "low_precision_matmul_percent": watched.half_percent if watched else None,
    "float32_parameters": watched.parameters_float32 if watched else None,
    "autocast_in_backward": watched.autocast_in_backward if watched else None,
    "gradient_at_step_times": watched.gradient_at_step / plain.gradient_at_step if watched and plain else None,
    "losses_off": losses_off,
    "loss_gap_percent": 100 * abs(half["loss_last"] / yours["loss_last"] - 1) if yours and half else None,
    "mixed_speedup": divide(half, yours) if half else None,
    "speedup": divide(half or yours, reference) if yours and on_gpu else None,
    "unscaled_zero_gradient_percent": zeros, "scaled_zero_gradient_percent": zeros_scaled,
    "zeros": zero_rows, "watched": read_rows,
    "profile": profile.rows, "top_operation_percent": profile.rows[0]["self_percent"],
    "gpu_busy_percent": profile.gpu_busy_percent, "refused": sum(row["samples_per_s"] is None for row in runs),
}  # fmt: skip
if (part_file := Path(my_loop.__file__)).parent.resolve() != out.resolve():
    shutil.copyfile(part_file, out / "my_loop.py")  # the judged file, kept with the verdict
if not on_gpu:
    say("\nThese are this processor's speeds. What is moved, waited for and cast is the same on a GPU. (device: cpu)")
path = bench.write_metrics("cpu_to_gpu/1", device, world_size=1, seed=SEED, metrics=metrics)
bench.say_end(path, device)
