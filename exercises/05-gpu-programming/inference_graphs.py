"""CUDA graphs for inference: one call launches a whole model, for requests of any size, and every answer stays right.

You will learn    what a request costs before the GPU computes anything, what a graph keeps, and what it does not see
You will produce  operations and latencies of eager, graph and compiled requests, and a server whose answers stay right
Run it            python inference_graphs.py --layers 4 --width 32 --heads 4 --batch-sizes 1,2,4 --requests 40
                  python inference_graphs.py                                         (on a GPU: real CUDA graphs, timed)
Your part         predict how the launches of a request grow with its batch; then repair Server in my_server.py
Reading           modules/05-gpu-programming/lesson-7-graphs.md
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import gpus
import graphs
import my_server
import torch
from bench import say
from served_models import EarlyExit, Transformer

SEED, VOCABULARY, LENGTH, TOLERANCE, LAUNCH_US = 0, 256, 16, 1e-3, 5.0
MAX_KEPT = 64  # answers that are checked again later; more would fill the memory in a long run
BRANCHY_REQUESTS, WARM_UPS = 8, 3
MAX_COMPILED = 8  # torch's own limit of compilations of one function
SERVED = 40  # requests of each batch size that are compared on a GPU, where the others are timed
Answer = Callable[[torch.Tensor], torch.Tensor]

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="serve a model by CUDA graphs")
parser.add_argument("--layers", type=int, default=12, help="layers of the transformer")
parser.add_argument("--width", type=int, default=768, help="numbers that describe a token")
parser.add_argument("--heads", type=int, default=12, help="attention heads; the width must be a multiple of them")
parser.add_argument("--batch-sizes", default="1,2,4,8,16,32", help="batch sizes that may be captured, separated by commas")
parser.add_argument("--requests", type=int, default=1000, help="requests of each size, and of the sizes one larger")
args = parser.parse_args()
if args.width % args.heads:
    parser.error(f"--width must be a multiple of --heads: {args.width} over {args.heads} leaves {args.width % args.heads}")
batch_sizes = sorted({int(word) for word in args.batch_sizes.split(",")})
if batch_sizes[0] < 1 or args.requests < 1 or args.layers < 1:
    parser.error("batch sizes, requests and layers must be at least 1")
request_sizes = sorted({*batch_sizes, *(size + 1 for size in batch_sizes)})  # most are padded, and one is larger than any graph

# --- set-up ------------------------------------------------------------------------------------------------------------
device = bench.here()
on_gpu = device.type == "cuda"
torch.manual_seed(SEED)
torch.set_num_threads(1)  # a small model is slower with two
model = Transformer(VOCABULARY, LENGTH, args.width, args.heads, args.layers).to(device).eval()
weight_bytes = sum(parameter.nbytes for parameter in model.parameters())
source = torch.Generator().manual_seed(SEED)
say(f"{args.layers} layers of {args.width}, {weight_bytes / 1e6:,.1f} MB; batch sizes {', '.join(map(str, batch_sizes))}")


def make_tokens(size: int) -> torch.Tensor:
    """Return the tokens of a request."""
    return torch.randint(VOCABULARY, (size, LENGTH), generator=source).to(device)


def count_operations(answer: Answer, size: int, learner_graphs: graphs.Graphs | None = None) -> int:
    """Return how many operations one warm request launches from Python. A replay counts as one operation."""
    tokens, earlier = make_tokens(size), learner_graphs.replays if learner_graphs else 0
    with graphs.OperationCounter() as counter:
        answer(tokens)
    return counter.count + (learner_graphs.replays - earlier if learner_graphs else 0)


def time_requests(answer: Answer, size: int) -> dict[str, float | None]:
    """Return the 50th and the 99th percentile of the time of a request, in microseconds. Without a GPU, both are None."""
    if not on_gpu:
        return {"p50_us": None, "p99_us": None}
    requests = [make_tokens(size) for _ in range(32)]
    seconds = []
    for number in range(args.requests + WARM_UPS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        answer(requests[number % len(requests)])
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return {f"p{at}_us": 1e6 * bench.percentile(seconds[WARM_UPS:], at) for at in (50, 99)}


def find_least_us() -> float | None:
    """Return how many microseconds the GPU needs to read all weights once.

    Return None if the weights fit into its cache, or if its bandwidth is unknown.
    """
    gpu = gpus.find(torch.cuda.get_device_name(device)) if on_gpu else None
    if gpu is None or not gpu.l2_mb or weight_bytes < 4e6 * gpu.l2_mb:
        return None
    return weight_bytes / gpu.gb_per_s / 1e3


def serve(answer: Answer, model: Answer, sizes: list[int]) -> dict[str, int]:
    """Send requests of these sizes one after another. Return how many answers were wrong, and how many answers and requests
    changed later."""
    wrong_count, records = 0, []
    for size in sizes:
        tokens = make_tokens(size)
        request, result, reference = tokens.clone(), answer(tokens), model(tokens)
        wrong_count += result.shape != reference.shape or not torch.allclose(result, reference, atol=TOLERANCE)
        if len(records) < MAX_KEPT:
            records.append((tokens, request, result, result.clone()))
    return {
        "wrong": wrong_count,
        "answers_changed": sum(not torch.equal(result, copy) for _, _, result, copy in records),
        "tokens_changed": sum(not torch.equal(tokens, request) for tokens, request, _, _ in records),
    }


def try_server(model: Answer, sizes: list[int]) -> tuple[Answer | None, graphs.Graphs, dict[str, Any]]:
    """Return the learner's server for `model`, its graphs, and the results of requests of `sizes`.

    `broken` is the error with which the server failed.
    """
    learner_graphs = graphs.Graphs(device)
    nothing = dict.fromkeys(("wrong", "answers_changed", "tokens_changed"))
    try:
        server = my_server.Server(model, learner_graphs.capture, batch_sizes)
        return server.answer, learner_graphs, serve(server.answer, model, sizes) | {"broken": "no error"}
    except Exception as error:  # noqa: BLE001 (the learner's code may fail in any way; the error is shown)
        if not isinstance(error, graphs.CaptureError):
            traceback.print_exc(file=sys.stdout)
        return None, learner_graphs, nothing | {"broken": f"{type(error).__name__}: {error}"}


def compile_model() -> Answer | None:
    """Return the compiled model, with graphs that torch creates itself. If that fails, log the reason and return None."""
    if len(batch_sizes) > MAX_COMPILED:
        say(f"torch.compile: not measured (after {MAX_COMPILED} shapes it computes without graphs)")
        return None
    compiled = torch.compile(model, mode="reduce-overhead", dynamic=False)

    def answer(tokens: torch.Tensor) -> torch.Tensor:
        torch.compiler.cudagraph_mark_step_begin()
        return compiled(tokens).clone()  # its output is overwritten by the next call, as a graph's is

    try:
        answer(make_tokens(batch_sizes[0]))
    except Exception as error:  # noqa: BLE001 (a missing compiler causes many kinds of errors)
        say(f"torch.compile: not measured ({type(error).__name__}: {str(error).splitlines()[0][:120]})")
        return None
    return answer


def measure(way: str, answer: Answer, sizes: list[int], learner_graphs: graphs.Graphs | None = None) -> list[dict[str, Any]]:
    """Return a row for each batch size: operations from Python, latencies, wrong answers. Compiled operations do not count."""
    return [
        {
            "batch": size,
            "way": way,
            "operations_per_request": None if way == "compile" else count_operations(answer, size, learner_graphs),
            "wrong": serve(answer, model, [size] * 4)["wrong"],
            **time_requests(answer, size),
        }
        for size in sizes
    ]


# --- the experiment ----------------------------------------------------------------------------------------------------
with torch.no_grad():
    rows = measure("eager", model, request_sizes)
    served_each = SERVED if on_gpu else args.requests
    reserved = torch.cuda.memory_reserved() if on_gpu else 0
    answer, server_graphs, served = try_server(model, request_sizes * served_each)
    graph_memory, captures, moved = (
        torch.cuda.memory_reserved() - reserved if on_gpu else None,
        server_graphs.captures,
        server_graphs.moved,
    )
    server_graphs.looks_at_addresses = False
    if served["broken"] == "no error":
        rows += measure("yours", answer, request_sizes, server_graphs)
    if on_gpu and (compiled := compile_model()):
        rows += measure("compile", compiled, batch_sizes)
    sizes = [batch_sizes[number % len(batch_sizes)] for number in range(BRANCHY_REQUESTS)]
    _, branchy_made, branchy = try_server(EarlyExit(model).to(device).eval(), sizes)

by_way = {way: [row for row in rows if row["way"] == way] for way in ("eager", "yours", "compile")}
operations = by_way["eager"][0]["operations_per_request"]
by_batch = sorted(by_way["eager"], key=lambda row: row["batch"])
operations_growth = by_batch[-1]["operations_per_request"] / by_batch[0]["operations_per_request"]
in_a_graph = [row["operations_per_request"] for row in by_way["yours"] if row["batch"] <= batch_sizes[-1]]
graph_operations = max(in_a_graph, default=None)
least_us = find_least_us()
refused_count = 0
for row in rows:
    if row["p50_us"] is not None and least_us is not None and row["p50_us"] < least_us:
        row["p50_us"], row["p99_us"], refused_count = None, None, refused_count + 1
fallbacks = BRANCHY_REQUESTS - branchy["wrong"] if branchy["broken"] == "no error" and not branchy_made.replays else 0

columns = {"batch": "batch", "way": "way", "operations_per_request": "operations", "wrong": "wrong of 4"}
columns |= {"p50_us": "p50 µs", "p99_us": "p99 µs"} if on_gpu else {}
bench.say_table(rows, columns)
if served["broken"] == "no error":
    say(f"{len(request_sizes) * served_each} requests by your server: {served['wrong']} wrong answers, "
        f"{served['answers_changed']} changed later; {captures} captures")  # fmt: skip
else:
    say(f"your server failed: {served['broken']}")
say(f"a model that branches on a value: {fallbacks} of {BRANCHY_REQUESTS} requests served without a graph"
    + (f"\n  {branchy['broken']}" if branchy["broken"] != "no error" else ""))  # fmt: skip
if not on_gpu:
    say("\nThe graphs were recordings of operations and addresses; no latency was measured.\nOn a GPU they are CUDA's.")

# --- the record ----------------------------------------------------------------------------------------------------------
out = Path(os.environ.get("GPUCOURSE_OUT") or ".")
out.mkdir(parents=True, exist_ok=True)
if (part_file := Path(my_server.__file__)).parent.resolve() != out.resolve():
    shutil.copyfile(part_file, out / "my_server.py")  # the judged file, kept with the verdict
break_even = [eager["batch"] for eager, graph in zip(by_way["eager"], by_way["yours"], strict=False)
              if eager["p50_us"] and graph["p50_us"] and graph["p50_us"] > 0.95 * eager["p50_us"]]  # fmt: skip
metrics = {
    **vars(args), "rows": rows, "buckets": len(batch_sizes), "captures": captures, "addresses_changed": moved,
    "operations_growth": operations_growth,
    "eager_operations": operations, "operations_by_formula": 10 * args.layers + 4, "launch_us": LAUNCH_US * operations,
    "graph": {"operations_per_request": graph_operations}, "served": served, "weight_bytes": weight_bytes,
    "by_way": [{"way": "eager", "operations": operations}, {"way": "yours", "operations": graph_operations}],
    "branchy_requests": BRANCHY_REQUESTS, "fallbacks": fallbacks, "branchy": branchy, "branchy_failures": branchy_made.failures,
    "smallest_eager_us": by_way["eager"][0]["p50_us"], "refused": refused_count, "least_us": least_us,
    "smallest_graph_us": by_way["yours"][0]["p50_us"] if by_way["yours"] else None, "graph_memory_bytes": graph_memory,
    "break_even_batch": min(break_even, default=None),
}  # fmt: skip
path = bench.write_metrics("inference_graphs/1", device, world_size=1, seed=SEED, metrics=metrics)
bench.say_end(path, device)
