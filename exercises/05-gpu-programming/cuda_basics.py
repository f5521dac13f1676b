"""CUDA basics: the course's kernels and four of yours, run thread by thread in an emulator that sees every access.

You will learn    which element a thread gets, what a warp requests from memory, what barriers do, what a split warp costs
You will produce  sectors per request of eleven kernels, the thread and line of each fault in yours, and their GB/s on a GPU
Run it            python cuda_basics.py --elements 4096 --block 256 --stride 2
Your part         my_kernels.cu (vector_add, block_sum) and my_warps.cu (transpose, clip_sum)
Reading           modules/05-gpu-programming/lesson.md
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import emulator
import findings

HERE = Path(__file__).resolve().parent
MAX_EMULATED = 65536  # elements

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="kernels and the memory requests of their warps")
parser.add_argument(
    "--elements", type=int, default=67108864, help="size of each array on a GPU; the emulator runs at most 65,536 elements"
)
parser.add_argument("--block", type=int, default=256, help="threads per block: 32, 64, ... 1024")
parser.add_argument("--stride", type=int, default=2, help="distance between two consecutive elements that strided_copy reads")
args = parser.parse_args()
if args.block not in {32, 64, 128, 256, 512, 1024}:
    parser.error("--block must be 32, 64, 128, 256, 512 or 1024: block_sum halves the number of threads again and again")
if args.elements < 1 or args.elements > 1 << 28 or not 1 <= args.stride <= 64:
    parser.error("--elements must be from 1 to 268,435,456, and --stride from 1 to 64")
if emulator.find_compiler() is None:
    sys.exit("the emulator needs g++, which is not installed here: apt-get install g++ (or dnf install gcc-c++)")
setting = findings.Setting(block=args.block, stride=args.stride)
sizes = list(dict.fromkeys([*findings.SIZES, *([args.elements] if args.elements <= MAX_EMULATED else [])]))

# --- compile: three programs at a time, while torch is imported ----------------------------------------------------------
folder = Path(tempfile.mkdtemp(prefix="cuda-basics-"))
pool = ThreadPoolExecutor(4)
builds = {name: pool.submit(findings.build, HERE / name, folder / Path(name).stem) for name in findings.FILES}

import bench  # noqa: E402
import cuda_times  # noqa: E402
from bench import say  # noqa: E402

device = bench.here()
compiled = cuda_times.start(pool, [HERE / name for name in findings.FILES], device, folder)

# --- the experiment: every kernel at several sizes, in several orders of its threads ---------------------------------------
texts = {name: (HERE / name).read_text(encoding="utf-8-sig", errors="replace") for name in findings.FILES}
rows: list[dict] = []
broken: dict[str, str] = {}
for name in findings.FILES:
    bodies = {kernel: findings.find_body(texts[name], kernel) for kernel in findings.LEARNERS.get(name, findings.GIVEN_KERNELS)}
    if missing := [kernel for kernel, body in bodies.items() if body is None]:
        broken[name] = f"{name} has no kernel {missing[0]}"
        say(f"{broken[name]}: keep its name")
        continue
    try:
        program = builds[name].result()
    except emulator.CompileError as error:
        broken[name] = error.text
        say(f"{name} does not compile:\n{error.text}")
        continue
    except emulator.Unsupported as error:
        sys.exit(f"{error}")
    for kernel, body in bodies.items():
        author = "course" if name not in findings.LEARNERS else "as delivered" if findings.is_open(body or "") else "yours"
        try:
            row = {"whose": author, **findings.examine(program, kernel, setting, sizes)}
        except (emulator.Endless, emulator.TooMuchOutput) as error:
            broken[name] = f"{kernel}: {error}"
            say(broken[name])
            continue
        rows.append(row | compiled.describe(name, kernel, args.block))
        say(findings.summarise(row))

# --- on a GPU: the same files, compiled by nvcc and timed ------------------------------------------------------------------
times = cuda_times.time_all(compiled, rows, args.elements, args.block, args.stride)
rows = [row | times.rows.get(row["kernel"], cuda_times.NOT_MEASURED) for row in rows]
say(times.note)
if args.elements > MAX_EMULATED:
    say(f"the emulator ran {max(*sizes, findings.COUNTED):,} elements at most: more take minutes, and the counts are the same")
pool.shutdown()
shutil.rmtree(folder, ignore_errors=True)

# --- the record ----------------------------------------------------------------------------------------------------------
by_name = {row["kernel"]: row for row in rows}
labels = {"copy": "copy", "shifted_copy": "shifted", "strided_copy": f"stride {args.stride}", "read_field": "one field"}
labels |= {"vector_add": "vector_add", "transpose": "transpose"}
patterns = [{"pattern": label, **by_name[name]} for name, label in labels.items() if name in by_name]  # in the pictures
yours = [row for row in rows if row["whose"] == "yours"]
judged = {row["kernel"]: row for row in yours}


def read(kernel: str, *keys: str) -> dict[str, object]:
    """Return figures of one of your kernels. They are None until you have written the kernel."""
    return {key: judged[kernel][key] if kernel in judged else None for key in keys}


def total(key: str) -> int | None:
    """Return the sum of a count over the kernels that you have written, or None if you have not written any."""
    return sum(row[key] for row in yours) if yours else None


metrics = {
    **vars(args), "kernels": rows, "patterns": patterns,
    "sizes": sizes, "blocks": -(-args.elements // args.block),
    "kernels_written": len(yours), "kernels_broken": ", ".join(broken) or "no error",
    "yours": {
        "wrong_sizes": total("wrong_sizes"), "orders_wrong": total("orders_wrong"), "out_of_bounds": total("out_of_bounds"),
        "races": total("races"), "barrier_divergence": total("barrier_divergence"), "unwritten_reads": total("unwritten_reads"),
        "ended": None if not yours else sum(bool(row["ended"]) for row in yours),
    },
    "vector_add": read("vector_add", "percent_of_copy"),
    "block_sum": read("block_sum", "atomics_per_block", "percent_of_copy"),
    "transpose": read("transpose", "store_sectors_per_request", "bank_conflicts_per_request"),
    "clip_sum": read("clip_sum", "lanes_per_request", "bytes_too_many"),
    "stride_sectors_per_request": by_name["strided_copy"]["load_sectors_per_request"],
    "shifted_of_copy": by_name["shifted_copy"]["load_sectors_per_request"] / by_name["copy"]["load_sectors_per_request"],
    "stride_fetched_per_used": by_name["strided_copy"]["load_sectors_per_request"] * 32 / 128,
    "unpadded_conflicts": by_name["column_of_32"]["bank_conflicts_per_request"],
    "bytes_off": max(abs(row["bytes_too_many"]) for row in rows if row["whose"] == "course" and row["bytes_needed"]),
    "copy_gb_per_s": times.copy_gb_per_s, "refused": times.refused,
}  # fmt: skip
out = Path(os.environ.get("GPUCOURSE_OUT") or ".")
out.mkdir(parents=True, exist_ok=True)
(out / "emulator.json").write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
for name in findings.LEARNERS:
    if (HERE / name).parent != out.resolve():
        shutil.copyfile(HERE / name, out / name)  # the judged file, kept with the verdict
path = bench.write_metrics("cuda_basics/1", device, world_size=1, seed=0, metrics=metrics)
if device.type != "cuda":
    say("\nCounted in the emulator: sectors and conflicts follow from addresses. Times need a GPU. (local mode)")
bench.say_end(path, device)
