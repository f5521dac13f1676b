"""Twelve first kernels: each is run thread by thread at five sizes, and every access is checked.

You will learn    which number a thread works on; when threads share numbers, and when they wait for each other
You will produce  a table of twelve kernels: right or wrong, the first fault with thread and line, sectors per request
Run it            python first_kernels.py
Your part         the twelve kernels of my_first_kernels.cu
Reading           modules/05-gpu-programming/lesson-0-first-kernels.md
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import emulator
import findings
import nvcc
import torch
from bench import say

HERE = Path(__file__).resolve().parent
FILE, GIVEN_FILE = HERE / findings.FIRST_FILE, HERE / "given.cu"
WALKS = ("walk_rows", "walk_columns")  # kernels of the course

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="twelve small kernels, judged one by one")
parser.add_argument("--block", type=int, default=256, help="threads per block; kernels 1, 3, 4, 10 and 11 have a fixed number")
args = parser.parse_args()
if args.block not in {32, 64, 128, 256, 512, 1024}:
    parser.error("--block must be 32, 64, 128, 256, 512 or 1024")
if emulator.find_compiler() is None:
    sys.exit("the emulator needs g++, which is not installed here: apt-get install g++ (or dnf install gcc-c++)")
setting = findings.Setting(block=args.block)
device = bench.here()
folder = Path(tempfile.mkdtemp(prefix="first-kernels-"))

# --- the experiment: every kernel at several sizes, in several orders of its threads ---------------------------------------
text = FILE.read_text(encoding="utf-8-sig", errors="replace")
bodies = {kernel: findings.find_body(text, kernel) for kernel in findings.FIRST_KERNELS}
broken = {kernel: f"{FILE.name} has no kernel {kernel}" for kernel, body in bodies.items() if body is None}
rows: list[dict] = []
with ThreadPoolExecutor(2) as pool:
    builds = [pool.submit(findings.build, file, folder / file.stem) for file in (GIVEN_FILE, FILE)]
try:
    walks = {name: findings.examine(builds[0].result(), name, setting) for name in WALKS}
    program = None if broken else builds[1].result()
except emulator.CompileError as error:
    broken, program = {FILE.name: f"{FILE.name} does not compile:\n{error.text}"}, None
except emulator.Unsupported as error:
    sys.exit(f"{error}")
for number, (kernel, body) in enumerate(bodies.items() if program else (), 1):
    author = "as delivered" if findings.is_open(body or "") else "yours"
    try:
        row = findings.examine(program, kernel, setting, counted=findings.FIRST_COUNTED_SIZE)
    except (emulator.Endless, emulator.TooMuchOutput) as error:
        broken[kernel] = f"{kernel}: {error}"
        continue
    is_written = author == "yours"
    row |= {"number": number, "whose": author, "fault": (findings.find_fault(row) or "none") if is_written else None}
    row["right_sizes"] = len(row["sizes"]) - row["wrong_sizes"] if is_written else None
    rows.append(row)
    say(findings.summarise(row) if is_written else f"{kernel}: not written yet")
for complaint in broken.values():
    say(complaint)


def count_wrong_on_gpu() -> dict[str, int]:
    """Return the number of sizes at which each safe kernel of yours is wrong on the GPU, compiled by nvcc."""
    compiler = nvcc.find_nvcc()
    if device.type != "cuda" or compiler is None or program is None:
        say("not measured: the results on a GPU" + ("" if compiler else f"; {nvcc.ABSENT}"))
        return {}
    major, minor = torch.cuda.get_device_capability(device)
    try:
        nvcc.build_for_gpu(compiler, findings.HARNESS, f"sm_{major}{minor}", folder / "on-gpu", {"PART": 3})
    except nvcc.NvccFailed as error:
        say(f"nvcc refuses {FILE.name}: {error}")
        return {}
    counts, sizes = {}, [*findings.SIZES, findings.FIRST_COUNTED_SIZE]
    for kernel in (row["kernel"] for row in rows if row["fault"] == "none"):  # an unsafe one could harm the next
        words = [str(folder / "on-gpu"), kernel, str(args.block), "1", *map(str, sizes)]
        try:
            output = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False).stdout
        except subprocess.TimeoutExpired:
            say(f"{kernel} did not end within 60 s on the GPU")
            output = ""
        results = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        counts[kernel] = len(sizes) - sum(result.get("wrong") == 0 for result in results)
    return counts


on_gpu = count_wrong_on_gpu()
shutil.rmtree(folder, ignore_errors=True)

# --- the record ----------------------------------------------------------------------------------------------------------
rows = [row | {"wrong_on_gpu": on_gpu.get(row["kernel"])} for row in rows]
yours = [row for row in rows if row["whose"] == "yours"]
by_name = {row["kernel"]: row for row in yours}


def total(key: str) -> int | None:
    """Return the sum of a count over the kernels that you have written, or None if you have not written any."""
    return sum(row[key] for row in yours) if yours else None


def read(kernel: str, key: str) -> float | None:
    """Return a figure of one of your kernels, or None until you have written it."""
    return by_name[kernel][key] if kernel in by_name else None


halo_bytes, dot_atomics = read("halo", "load_bytes"), read("dot", "atomics_per_block")
halo_blocks = -(-findings.FIRST_COUNTED_SIZE // args.block)  # each reads two numbers beyond its own
walk_sectors = [row["load_sectors_per_request"] for row in walks.values()]
drawn = [{"pattern": f"{name} (course)", **row, "why_not": None} for name, row in walks.items()]
drawn += [{**dict.fromkeys(("load_sectors_per_request", "store_sectors_per_request")), **by_name.get(row["kernel"], {}),
           "pattern": row["kernel"],
           "why_not": "atomic additions, no stores" if row["kernel"] in by_name else "not written yet"}
          for row in rows]  # fmt: skip
metrics = {
    **vars(args), "drawn": drawn, "kernels": rows, "broken": ", ".join(broken) or "no error",
    "written": len(yours), "right": sum(row["fault"] == "none" for row in yours),
    "yours": {
        "wrong_sizes": total("wrong_sizes"), "orders_wrong": total("orders_wrong"), "out_of_bounds": total("out_of_bounds"),
        "races": total("races"), "barrier_divergence": total("barrier_divergence"), "unwritten_reads": total("unwritten_reads"),
        "ended": None if not yours else sum(bool(row["ended"]) for row in yours),
    },
    "halo_times": None if halo_bytes is None else halo_bytes / 4 / (findings.FIRST_COUNTED_SIZE + 2 * halo_blocks),
    "dot_atomics_per_warp": None if dot_atomics is None else 32 * dot_atomics / args.block,
    "walks": [{"kernel": name, **row} for name, row in walks.items()],
    "walk_sectors_times": walk_sectors[0] / walk_sectors[1],
    "walk_bytes_apart": abs(walks["walk_rows"]["bytes"] - walks["walk_columns"]["bytes"]),
    "wrong_on_gpu": sum(on_gpu.values()) if on_gpu else None,
}  # fmt: skip
out = Path(os.environ.get("GPUCOURSE_OUT") or ".")
out.mkdir(parents=True, exist_ok=True)
(out / "emulator.json").write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
if FILE.parent != out.resolve():
    shutil.copyfile(FILE, out / FILE.name)  # the judged file, kept with the verdict
titles = {
    "number": "no.",
    "kernel": "kernel",
    "whose": "whose",
    "right_sizes": "right sizes",
    "load_sectors_per_request": "sectors",
}
bench.say_table(rows, titles)
path = bench.write_metrics("first_kernels/1", device, world_size=1, seed=0, metrics=metrics)
bench.say_end(path, device)
