"""FlashAttention-2: your tiled kernel against plain attention, value by value and byte by byte.

You will learn    why the matrix of scores limits attention, and how an online softmax avoids it
You will produce  errors in float32 and float16, causal and full; the bytes of both ways by length; your kernel as PTX; a model
                  that your kernel and your backward pass train
Run it            python flash_attention.py --lengths 64,200,512 --heads 2 --d 32   (Triton's interpreter without a GPU)
                  python flash_attention.py                                         (a GPU; then it is timed, too)
Your part         my_softmax.py (torch), then my_attention.py (Triton), then my_backward.py (either)
Reading           modules/05-gpu-programming/lesson-12-attention.md
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import traceback
from contextlib import nullcontext
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import gpus
import torch
import triton_device
from bench import limit_time, say
from ptx import Compilation, Variant

SEED, LIMITS, PEAK_SCORE, LIMIT_S = 7, {"float32": 1e-5, "float16": 1e-3}, 200.0, 60.0
TYPES = {"float32": "*fp32", "float16": "*fp16"}

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="attention in tiles, in one Triton kernel")
parser.add_argument("--lengths", default="512,1024,2048,4096", help="lengths of the sequence, separated by commas")
parser.add_argument("--heads", type=int, default=32, help="heads of all sequences together")
parser.add_argument(
    "--d", type=int, default=64, choices=[16, 32, 64, 128], help="numbers in each query, key and value of a head"
)
parser.add_argument("--block-q", type=int, default=64, choices=[16, 32, 64, 128], help="queries per tile and per program")
parser.add_argument("--block-k", type=int, default=64, choices=[16, 32, 64, 128], help="keys per tile")
parser.add_argument("--archs", default="sm_80,sm_89", help="GPUs that your kernel is compiled for, separated by commas")
args = parser.parse_args()
lengths = [int(word) for word in args.lengths.split(",")]
archs = [word.strip() for word in args.archs.split(",")]
if args.heads < 1 or min(lengths) < 16:
    parser.error("--heads must be at least 1, and each of --lengths at least 16")

# --- set-up ------------------------------------------------------------------------------------------------------------
device, no_gpu = triton_device.choose()
import attention_training  # noqa: E402 (Triton decides when a kernel is defined whether to interpret it)
import my_attention  # noqa: E402
import my_backward  # noqa: E402
import my_softmax  # noqa: E402
from kernel_memory import KernelMemory, Operations, reason_of  # noqa: E402

interpreted, scale = no_gpu is not None, args.d**-0.5
if interpreted and sum(n * n for n in lengths) * args.heads > 1 << 21:
    parser.error("in the interpreter the sum of the squares of --lengths, times --heads, may be at most 2,097,152")
say(
    f"kernels run {'in the interpreter, on the processor: ' + no_gpu if no_gpu else 'on ' + torch.cuda.get_device_name(device)}"
)
compilation = Compilation("my_attention", [
    Variant(dtype, "attend", arch, dict.fromkeys(("q_ptr", "k_ptr", "v_ptr", "out_ptr"), TYPES[dtype]) | {
        "length": "i32", "scale": "fp32", "D": "i32", "CAUSAL": "i1", "BLOCK_Q": "i32", "BLOCK_K": "i32",
    }, {"length": 1000, "D": args.d, "CAUSAL": True, "BLOCK_Q": args.block_q, "BLOCK_K": args.block_k})
    for arch in archs for dtype in LIMITS
])  # fmt: skip


def plain(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Return attention from the whole matrix of scores, in few PyTorch operations: product and scale, softmax, product."""
    scores = torch.baddbmm(q[:1, :1, :1], q, k.mT, beta=0, alpha=scale)  # 0 times its first argument
    return torch.bmm(scores.softmax(-1), v)


def count_plain(n: int, dtype: torch.dtype) -> list[dict]:
    """Return the operations of `plain` with the bytes that they read and write. The meta device runs them without computing."""
    tensors = [torch.empty(args.heads, n, args.d, dtype=dtype, device="meta") for _ in range(3)]
    with Operations() as operations:
        plain(*tensors)
    return operations.rows


def predict_tiles(n: int, itemsize: int, causal: bool) -> int:
    """Return the bytes that the tiled way moves. It reads q and writes the result once, and reads k and v for each block of
    queries that sees them."""
    rows = 2 * n
    for first in range(0, n, args.block_q):
        end = min(n, first + args.block_q) if causal else n
        rows += 2 * min(n, -(-end // args.block_k) * args.block_k)
    return args.heads * rows * args.d * itemsize


def make_inputs(n: int, dtype: torch.dtype) -> list[torch.Tensor]:
    """Return q, k and v of all heads. The values lie between -1 and 1, so a limit of 1e-3 means the same for all of them."""
    generator = torch.Generator().manual_seed(SEED + n)
    q, k, v = (torch.randn(args.heads, n, args.d, generator=generator) for _ in range(3))
    return [tensor.to(device, dtype) for tensor in (q, k, v.clamp(-1, 1))]


def attend_exactly(inputs: list[torch.Tensor], causal: bool) -> torch.Tensor:
    """Return the result in float64, one head at a time."""
    n, results = inputs[0].shape[1], []
    mask = torch.ones(n, n, dtype=torch.bool, device=device).triu(1) if causal else None
    for q, k, v in zip(*(tensor.double() for tensor in inputs), strict=True):
        scores = q @ k.T * scale
        results.append((scores if mask is None else scores.masked_fill(mask, float("-inf"))).softmax(-1) @ v)
    return torch.stack(results)


def explain(error: Exception) -> str:
    """Return the learner's error in one sentence, after printing its traceback."""
    reason = reason_of(error)
    traceback.print_exception(type(reason), reason, reason.__traceback__, limit=-4, file=sys.stdout)
    return f"{type(reason).__name__}: {reason}"


# --- the experiment: the online softmax, in torch ------------------------------------------------------------------------
softmax_broken, softmax_error = None, None
generator = torch.Generator().manual_seed(SEED)
queries, keys = torch.randn(8, args.d, generator=generator), torch.randn(100, args.d, generator=generator)
values = torch.randn(100, args.d, generator=generator).clamp(-1, 1)
keys[37] += PEAK_SCORE / scale * queries[0] / queries[0].square().sum()  # one score far above all others
right = (queries.double() @ keys.double().T * scale).softmax(-1) @ values.double()
try:
    blocks = ((keys[first : first + 16], values[first : first + 16]) for first in range(0, 100, 16))
    with limit_time(LIMIT_S):
        softmax_error = (my_softmax.attend(queries, blocks, scale).double() - right).abs().max().item()
    softmax_broken = "no error"
    say(f"the online softmax over 7 blocks, with a score of {PEAK_SCORE:.0f}: largest error {softmax_error:.1e}")
except NotImplementedError as error:
    say(f"my_softmax.py: not written yet ({error})")
except Exception as error:  # noqa: BLE001 (the learner's code may fail in any way; the error is shown)
    softmax_broken = explain(error)

# --- the experiment: the kernel, value by value and byte by byte -----------------------------------------------------------
cases, by_length, broken, is_written = [], [], None, True
for n in lengths:
    for dtype_name, limit in LIMITS.items():
        inputs = make_inputs(n, getattr(torch, dtype_name))
        counts = {}
        for causal in (False, True):
            row = {"length": n, "dtype": dtype_name, "kind": "causal" if causal else "full", "limit": limit, "error": None}
            cases.append(row)
            memory = KernelMemory(my_attention.attend) if interpreted else None
            try:
                with limit_time(LIMIT_S), memory or nullcontext():
                    out = my_attention.attention(*inputs, causal, args.block_q, args.block_k)
                if not isinstance(out, torch.Tensor) or out.shape != inputs[0].shape:
                    raise TypeError(f"attention must return a tensor of shape {tuple(inputs[0].shape)}")
                row["error"] = (out.double() - attend_exactly(inputs, causal)).abs().max().nan_to_num(float("inf")).item()
            except NotImplementedError as error:
                if is_written:
                    say(f"my_attention.py: not written yet ({error})")
                is_written = False
            except Exception as error:  # noqa: BLE001 (as above)
                broken = broken or explain(error)
                continue
            counts[causal] = memory.loaded_bytes() + memory.stored_bytes() if memory else None
            row["bytes"] = counts[causal]
        itemsize = inputs[0].element_size()
        formula, operations = predict_tiles(n, itemsize, False), count_plain(n, inputs[0].dtype)
        causal_bytes = counts.get(True) if is_written else None
        plain_bytes = sum(item["read_bytes"] + item["written_bytes"] for item in operations)
        tiled = counts.get(False)
        by_length.append({
            "length": n, "dtype": dtype_name, "plain_bytes": plain_bytes,
            "tiled_bytes": tiled or formula, "counted_bytes": tiled,
            "bytes_off": None if tiled is None else abs(tiled - formula), "saving": plain_bytes / (tiled or formula),
            "limit": 2 * args.block_q / args.d, "causal_bytes": causal_bytes,
            "causal_percent": 100 * causal_bytes / tiled if causal_bytes and tiled else None,
            "causal_off": abs(causal_bytes - predict_tiles(n, itemsize, True)) if causal_bytes else None,
            "scores_bytes": args.heads * n * n * itemsize,
        })  # fmt: skip
single = [row for row in by_length if row["dtype"] == "float32"]
longest = max(single, key=lambda row: row["length"])
say("\n" + bench.table(operations, {"what": "plain attention", "read_bytes": "bytes read", "written_bytes": "bytes written"}))
say(f"{longest['length']} keys in float32: plain moves {longest['plain_bytes']:,} bytes, tiles {longest['tiled_bytes']:,}: "
    f"{longest['saving']:.2f} times fewer")  # fmt: skip

# --- the experiment: how fast, on a GPU? -----------------------------------------------------------------------------------
timed, refused_count = [], 0
if not interpreted and is_written and broken is None:
    flush, props = bench.cache_flush(device), torch.cuda.get_device_properties(device)
    sheet = gpus.find(props.name)
    derived = None if sheet else gpus.derive(props, None)
    peak = sheet.fp16 if sheet else derived.tflops["float16"] if derived else None
    for n in lengths:
        inputs = make_inputs(n, torch.float16)
        four = [tensor[None] for tensor in inputs]
        ways = {
            "yours": lambda: my_attention.attention(*inputs, False, args.block_q, args.block_k),  # noqa: B023
            "yours, causal": lambda: my_attention.attention(*inputs, True, args.block_q, args.block_k),  # noqa: B023
            "plain": lambda: plain(*inputs),  # noqa: B023
            "torch's own": lambda: torch.nn.functional.scaled_dot_product_attention(*four),  # noqa: B023
        }
        for way, function in ways.items():
            torch.cuda.reset_peak_memory_stats(device)
            baseline = torch.cuda.memory_allocated(device)
            median = bench.percentile(bench.measure(function, device, flush=flush), 50)
            tflops = 4 * args.heads * n * n * args.d / (2 if "causal" in way else 1) / median / 1e12
            if peak is not None and tflops > peak:
                refused_count += 1
                say(f"refused: {way}, {n} keys: {tflops:,.0f} TFLOP/s, but the peak in float16 is {peak:,.0f}")
                tflops = None
            timed.append({"length": n, "way": way, "median_ms": 1e3 * median, "tflops": tflops,
                          "extra_mib": (torch.cuda.max_memory_allocated(device) - baseline) / 2**20})  # fmt: skip
at_longest = {row["way"]: row["median_ms"] for row in timed if row["length"] == max(lengths)}

# --- the experiment: the compiled kernel -----------------------------------------------------------------------------------
out = Path(os.environ.get("GPUCOURSE_OUT") or ".")
out.mkdir(parents=True, exist_ok=True)
texts = compilation.finish(limit_s=90.0)
for result in texts:
    text = result.pop("ptx")
    if result["error"] is not None:
        say(f"{result['name']}, {result['arch']}: {result['error']}")
    else:
        (out / f"attention-{result['arch']}-{result['name']}.ptx").write_text(text, encoding="utf-8")
compiled = [item for item in texts if item["error"] is None]

# --- the experiment: the backward pass trains a model, first with the course's forward pass and then with your kernel -------
training, backward_broken, losses_off, whole_losses_off = [], None, None, None
course, yours, whole = attention_training.train(attention_training.attend_plainly, device), None, None
course_attend, kernel_calls = getattr(my_backward, "attend", None), []
kernels = [value for value in vars(my_backward).values() if hasattr(value, "pre_run_hooks")] + [my_attention.attend]


def attend_by_kernel(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, block: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return attention from your kernel. The logarithms of the sums, which it does not return, are the course's."""
    kernel_calls.append(len(q))
    out = my_attention.attention(q.contiguous(), k.contiguous(), v.contiguous(), causal, block, block)
    return out, course_attend(q, k, v, causal, block)[1]


def train_with_yours() -> tuple[dict, float]:
    """Return the results of a model that your backward pass trains, and how far its losses are from plain attention's."""
    with limit_time(LIMIT_S), KernelMemory(*kernels) if interpreted else nullcontext():
        result = attention_training.train(lambda q, k, v: my_backward.Attention.apply(q, k, v, True, 16), device)
    return result, max(abs(loss - right) for loss, right in zip(result["losses"], course["losses"], strict=True))


try:
    yours, losses_off = train_with_yours()
    backward_broken = "no error"
except NotImplementedError as error:
    say(f"my_backward.py: not written yet ({error}); with it, a row shows the losses of a model that it trains")
except Exception as error:  # noqa: BLE001 (as above)
    backward_broken = explain(error)
if yours and course_attend and is_written and broken is None:
    my_backward.attend = attend_by_kernel
    try:
        whole, whole_losses_off = train_with_yours()
    except Exception as error:  # noqa: BLE001 (as above)
        say(f"your kernel as the forward pass: {explain(error)}")
        whole_losses_off = float("inf")
    if not kernel_calls:
        whole, whole_losses_off = None, None
        say("your forward in my_backward.py does not call attend, so your kernel cannot take its place")
for way, result in (("plain attention", course), ("your backward pass", yours), ("your kernel, and backward", whole)):
    if result:
        training.append({"way": way, "loss_first": result["losses"][0], "loss_last": result["losses"][-1],
                         "steps": attention_training.STEPS, "saved_bytes": result["kept_bytes"]})  # fmt: skip
columns = {"way": "attention", "loss_first": "first loss", "loss_last": "last loss", "saved_bytes": "bytes saved for backward"}
say("\n" + bench.table(training, columns))

# --- the record ----------------------------------------------------------------------------------------------------------
is_done = is_written and broken is None


def worst(dtype_name: str) -> float | None:
    """Return the largest error of a data type over all cases, or None if an error was not computed."""
    errors = [row["error"] for row in cases if row["dtype"] == dtype_name]
    return None if None in errors else max(errors)


def largest(key: str) -> int | None:
    """Return the largest value of all lengths and types, or None if a value is missing."""
    values_of_key = [row[key] for row in by_length]
    return None if None in values_of_key else max(values_of_key)


halves = [item for item in compiled if item["name"] == "float16"]
metrics = {
    **vars(args), "cases": cases, "by_length": by_length, "single": single, "plain": operations, "timed": timed,
    "ptx": texts, "training": training, "backward_broken": backward_broken, "losses_off": losses_off,
    "whole_losses_off": whole_losses_off, "kernel_calls": len(kernel_calls),
    "learned_percent": 100 * (1 - course["losses"][-1] / course["losses"][0]),
    "interpreted": interpreted, "why_interpreted": no_gpu, "softmax_broken": softmax_broken,
    "softmax_error": softmax_error, "broken": broken or ("no error" if is_written else None), "error_float32": worst("float32"),
    "error_float16": worst("float16"), "saving": longest["saving"], "saving_limit": longest["limit"],
    "saving_growth": longest["saving"] / min(single, key=lambda row: row["length"])["saving"],
    "plain_bytes": longest["plain_bytes"], "tiled_bytes": longest["tiled_bytes"],
    "bytes_off": largest("bytes_off"), "causal_off": largest("causal_off"), "causal_percent": longest["causal_percent"],
    "scores_mib": longest["scores_bytes"] / 2**20,
    "compiled_for": len(compiled) if is_done else None, "compilations_wanted": len(texts),
    "tf32_products": sum(item["tf32_products"] for item in compiled) if is_done else None,
    "half_products": min((item["tensor_products"] for item in halves), default=None) if is_done else None,
    "refused": refused_count,
    "speedup": at_longest["plain"] / at_longest["yours"] if at_longest else None,
    "percent_of_torch": 100 * at_longest["torch's own"] / at_longest["yours"] if at_longest else None,
}  # fmt: skip
for module in (my_softmax, my_attention, my_backward):
    if (part_file := Path(module.__file__)).parent.resolve() != out.resolve():
        shutil.copyfile(part_file, out / part_file.name)  # the judged file, kept with the verdict
path = bench.write_metrics("flash_attention/2", device, world_size=1, seed=SEED, metrics=metrics)
bench.say_end(path, device)
