"""torch.compile: what becomes one graph, what ends a graph, and what is compiled again.

You will learn    what torch.compile does at each call, and which habits of Python make it slow or useless
You will produce  graphs by call for seven habits and for a block of yours, and the bytes that fusion can save
Run it            python compiled_block.py
                  python compiled_block.py --inductor       (without a GPU: compile with g++ as well, and keep the code)
Your part         my_function.py and my_bytes.py
Reading           modules/05-gpu-programming/lesson-14-compile.md

Graphs are counted by a backend that generates no code, so the counts are the same on every computer. Kernels and times need a
GPU.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import compilations
import my_bytes
import my_function
import operation_bytes
import torch
from bench import limit_time, say
from compilations import Arguments, Block, count_graphs, watch
from torch.autograd import DeviceType

SEED, LIMIT_S = 0, 60.0
LENGTHS = range(26, 50, 2)

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="count what torch.compile compiles")
parser.add_argument("--tokens", type=int, default=16384, help="rows of the block whose bytes and times are counted")
parser.add_argument("--width", type=int, default=4096, help="numbers in a row")
parser.add_argument("--inductor", action=argparse.BooleanOptionalAction, default=False, help="generate code without a GPU, too")
args = parser.parse_args()
if min(args.tokens, args.width) < 2:
    parser.error("--tokens and --width must be at least 2: torch compiles sizes 0 and 1 separately")

# --- set-up ------------------------------------------------------------------------------------------------------------
device = bench.here()
on_gpu = device.type == "cuda"
torch.manual_seed(SEED)
torch.set_num_threads(1)
out = Path(os.environ.get("GPUCOURSE_OUT") or ".")
out.mkdir(parents=True, exist_ok=True)


# --- the experiment: habits ----------------------------------------------------------------------------------------------
def print_something(x: torch.Tensor) -> torch.Tensor:
    """Double `x`, print something, and add one."""
    y = x * 2
    print("called")
    return y + 1


def decide_by_value(x: torch.Tensor) -> torch.Tensor:
    """Double `x`, and add or subtract one, by the sign of the sum."""
    y = x * 2
    if y.sum() > 0:
        return y + 1
    return y - 1


losses: list[torch.Tensor] = []


def keep_in_a_list(x: torch.Tensor) -> torch.Tensor:
    """Double `x`, and keep the sum in a list that grows."""
    y = x * 2
    losses.append(y.sum())
    return y


def use_a_number(x: torch.Tensor, number: int) -> torch.Tensor:
    """Multiply `x` by a Python number."""
    return x * number


def double(x: torch.Tensor) -> torch.Tensor:
    """Return twice `x`."""
    return x * 2


def compile_with(function: Block, **options: Any) -> Callable[[Any], Block]:
    """Return a function that compiles `function` with the backend that it gets."""
    return lambda backend: torch.compile(function, backend=backend, **options)


x = torch.rand(24, 32)
lengths: list[Arguments] = [(torch.rand(rows, 32),) for rows in LENGTHS]
habits: dict[str, tuple[Callable[[Any], Block], list[Arguments]]] = {
    "nothing unusual": (compile_with(double), [(x,)] * 6),
    "print": (compile_with(print_something), [(x,)] * 6),
    "if on a tensor": (compile_with(decide_by_value), [(x,), (x,), (x,), (-x,), (-x,), (-x,)]),
    "a list that grows": (compile_with(keep_in_a_list), [(x,)] * 6),
    "a number that changes": (compile_with(use_a_number), [(x, number) for number in range(3, 9)]),
    "lengths that change": (compile_with(double), lengths[:6]),
    "any length, then 1": (compile_with(double, dynamic=True), [*lengths[:5], (torch.rand(1, 32),)]),
}
habit_rows = []
for habit, (make, calls) in habits.items():
    counts = count_graphs(make, calls)
    habit_rows.append({"habit": habit, "by_call": " ".join(map(str, counts)), "graphs": sum(counts)})

static_calls = watch(compile_with(double, dynamic=False), lengths)
static_graphs = sum(len(call.compiled) for call in static_calls)
static_uncompiled = sum(not call.runs for call in static_calls)
say(f"12 lengths with dynamic=False: {static_graphs} graphs, and {static_uncompiled} calls that run as plain Python")


# --- your part: a block in one graph ---------------------------------------------------------------------------------------
series = compilations.list_series()
inputs = [arguments for calls in series.values() for arguments in calls]


def describe(version: str, calls: list[compilations.Call]) -> dict[str, Any]:
    """Return what a version of the block compiled in its first call and in each series of later calls.

    The figure of a series is None if all of its calls are plain Python, so that no graph runs.
    """
    later, of_series = iter(calls[1:]), {}
    for name, items in series.items():
        calls_of_series = [next(later) for _ in (items[1:] if name == "same" else items)]
        graphs = sum(len(call.compiled) for call in calls_of_series)
        of_series[name] = graphs if any(call.runs for call in calls_of_series) else None
    return {
        "version": version, "first": len(calls[0].compiled), **of_series,
        "total": sum(len(call.compiled) for call in calls),
        "uncompiled": sum(not call.runs for call in calls),
        "outside": sum(call.has_work_outside(arguments) for call, arguments in zip(calls, inputs, strict=True)),
    }  # fmt: skip


delivered = watch(compilations.compile_block, inputs)
with compilations.silence():
    right = [compilations.block(*arguments) for arguments in inputs]
blocks, broken, values_off = [describe("delivered", delivered)], None, None
breaks = [{"version": "delivered", "line": graph.text.strip()} for graph in delivered[0].compiled if graph.line]
yours: dict[str, Any] = {}
try:
    with limit_time(LIMIT_S):
        calls = watch(my_function.compile_block, inputs)
        yours = describe("yours", calls)
        values_off = max(
            float((call.result - value).abs().max() / value.abs().max()) for call, value in zip(calls, right, strict=True)
        )
    blocks.append(yours)
    breaks += [{"version": "yours", "line": graph.text.strip()} for graph in calls[0].compiled if graph.line]
    broken = "no error"
except Exception as error:  # noqa: BLE001 (the learner's code may fail in any way; the error is shown)
    traceback.print_exception(type(error), error, error.__traceback__, limit=-3, file=sys.stdout)
    broken, yours, values_off = f"{type(error).__name__}: {error}".splitlines()[0], {}, None

# --- your part: bytes ------------------------------------------------------------------------------------------------------
tensors = operation_bytes.make_tensors(args.tokens, args.width, device)
recorded = operation_bytes.trace(operation_bytes.plain_block, operation_bytes.NAMES, tensors)
by_formula = 2 * tensors[0].nbytes + 3 * tensors[1].nbytes  # x and the result; weight, bias and gate
byte_rows = [{"way": "one kernel for each operation", "megabytes": recorded.bytes / 1e6, "times": recorded.bytes / by_formula}]
least, bytes_broken = None, None
try:
    with limit_time(LIMIT_S):
        least = my_bytes.least_bytes(recorded.operations, recorded.bytes_of, recorded.results)
        byte_rows.append({"way": "one kernel, by your count", "megabytes": least / 1e6, "times": least / by_formula})
    bytes_broken = "no error"
except NotImplementedError as error:
    say(f"my_bytes.py: not written yet ({error})")
except Exception as error:  # noqa: BLE001
    traceback.print_exception(type(error), error, error.__traceback__, limit=-3, file=sys.stdout)
    least, bytes_broken = None, f"{type(error).__name__}: {error}"


# --- kernels, if there is a compiler for them ------------------------------------------------------------------------------
def count_kernels(call: Callable[[], object]) -> int:
    """Return how many kernels one call runs on the GPU."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        call()
        torch.cuda.synchronize()
    return sum(event.count for event in profiler.key_averages() if event.device_type == DeviceType.CUDA)


generated: dict[str, Any] = {}
if on_gpu or (args.inductor and shutil.which("g++")):
    from torch._inductor.utils import run_and_get_code

    torch.compiler.reset()
    compiled = torch.compile(operation_bytes.plain_block)
    result, code = run_and_get_code(compiled, *tensors)
    (out / "generated.txt").write_text("\n".join(code), encoding="utf-8")
    generated["off"] = float((result - operation_bytes.plain_block(*tensors)).abs().max())
    say("generated.txt: the code that inductor generated for the plain block")
elif args.inductor:
    say("not measured: --inductor needs g++ to compile for a CPU")
if on_gpu:
    ways = {"eager": operation_bytes.plain_block, "compiled": compiled}
    for name, function in ways.items():
        seconds = bench.percentile(bench.time_calls(lambda function=function: function(*tensors), device), 50)
        generated |= {
            f"{name}_us": 1e6 * seconds,
            f"{name}_kernels": count_kernels(lambda function=function: function(*tensors)),
        }

# --- the record ----------------------------------------------------------------------------------------------------------
titles = {"first": "first call", "same": "same again", "lengths": "12 lengths", "steps": "12 steps", "signs": "signs, sizes"}
drawn = [
    {
        "series": title, "delivered": blocks[0][key], "delivered_note": "plain Python",
        "yours": yours.get(key), "yours_note": "plain Python" if yours else "no result",
    }
    for key, title in titles.items()
]  # fmt: skip
metrics = {
    **vars(args), "habits": habit_rows, "static_graphs": static_graphs, "static_uncompiled": static_uncompiled,
    "graphs_by_setting": compilations.RECOMPILE_LIMIT, "lengths": len(lengths), "blocks": blocks, "breaks": breaks,
    "drawn": drawn,
    "delivered_first": blocks[0]["first"], "delivered_compiled": len(delivered) - blocks[0]["uncompiled"], "broken": broken,
    "values_off": values_off, "first_graphs": yours.get("first"), "total_graphs": yours.get("total"),
    "outside": yours.get("outside"), "uncompiled": yours.get("uncompiled"), "bytes": byte_rows, "bytes_broken": bytes_broken,
    "eager_times": recorded.bytes / by_formula, "least_off": None if least is None else abs(least - by_formula),
    "operations": len(recorded.operations), "generated": [generated] if generated else [],
    "kernels_saved": generated["eager_kernels"] - generated["compiled_kernels"] if on_gpu else None,
    "times_faster": generated["eager_us"] / generated["compiled_us"] if on_gpu else None,
}  # fmt: skip
for part in (my_function, my_bytes):
    if (part_file := Path(part.__file__)).parent.resolve() != out.resolve():
        shutil.copyfile(part_file, out / part_file.name)  # the judged file, kept with the verdict
bench.say_end(bench.write_metrics("compiled_block/1", device, world_size=1, seed=SEED, metrics=metrics), device)
