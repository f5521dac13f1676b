"""GEMM in five versions: a matrix product, counted access by access, and timed if there is a GPU.

You will learn    why the order of the threads decides the speed, and what tiles in shared memory and registers save
You will produce  two kernels of your own and three given ones; FLOP per byte and sectors of each; on a GPU GFLOP/s
Run it            python gemm_versions.py --n 64,96        (a CPU with g++: the emulator)
                  python gemm_versions.py                  (a GPU with nvcc: counted at 64, timed at all sizes)
Your part         predict the bytes that `coalesced` requests, then write `tiled` and `registers` in my_gemm.cu
Reading           modules/05-gpu-programming/lesson-4-products.md, lesson-5-registers.md
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import emulator
import gpus
import nvcc
import torch
import versions
from bench import say

SEED = 0
MAX_COUNTED, COUNTED_ON_A_GPU = 256, 64  # n: 256 takes the emulator half a minute
T4_GB_PER_S, TIMED_S, RUN_LIMIT_S, COUNT_LIMIT_S = 320, 0.3, 300, 120
HERE = Path(__file__).resolve().parent

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="five kernels for a matrix product")
parser.add_argument("--n", type=str, default="1024,2048,4096", help="sides of the matrices, separated by commas")
parser.add_argument("--tile", type=int, default=16, help="side of a tile in shared memory: 8, 16 or 32")
parser.add_argument("--arch", type=str, default="sm_75,sm_89", help="the GPUs that nvcc compiles for, if nvcc is installed")
args = parser.parse_args()
try:
    sizes = sorted({int(size) for size in args.n.split(",")})
except ValueError:
    parser.error(f"--n {args.n}: whole numbers with commas, such as 64,96")
archs = [name.strip() for name in args.arch.split(",")]
if args.tile not in {8, 16, 32}:
    parser.error(f"--tile {args.tile}: 8, 16 or 32, as a block has at most 1,024 threads")
if unknown := [name for name in archs if name not in nvcc.ARCHITECTURES]:
    parser.error(f"--arch: {unknown[0]} is not one of {', '.join(nvcc.ARCHITECTURES)}")
unit = max(32, 2 * args.tile)
if uneven := [n for n in sizes if n % unit or not 16 <= n <= 8192]:
    parser.error(f"--n {uneven[0]}: a multiple of {unit} (32, and two tiles) up to 8192, so that no tile crosses the edge")

# --- set-up ------------------------------------------------------------------------------------------------------------
device = bench.here()
compiler = nvcc.find_nvcc()
timed_here = device.type == "cuda" and compiler is not None
counted_sizes = [n for n in sizes if n <= MAX_COUNTED] or [COUNTED_ON_A_GPU]
if not timed_here and sizes[-1] > MAX_COUNTED:
    parser.error(f"--n {sizes[-1]}: without a GPU and nvcc the emulator counts, and that takes too long above {MAX_COUNTED}")
out = Path(os.environ.get("GPUCOURSE_OUT") or ".")
out.mkdir(parents=True, exist_ok=True)
defines = {"TILE": args.tile}
harness = HERE / "gemm_harness.cu"
say(f"tiles of {args.tile} x {args.tile}, counted at n = {', '.join(map(str, counted_sizes))}"
    + ("" if timed_here else "; no GPU here: addresses are counted, and nothing is timed (local mode)"))  # fmt: skip


def count_versions(program: emulator.Program) -> list[dict]:
    """Return the counted accesses of every version at every counted size, from the emulator."""
    rows = []
    for n in counted_sizes:
        result = program.run(str(n), limit_s=COUNT_LIMIT_S, every=True)
        lines, failed = versions.read_lines(result.output)
        kernels = {name.partition("<")[0].strip(): kernel for name, kernel in result.kernels.items()}
        rows += [versions.count_version(version, n, lines.get(version), kernels.get(version)) for version in versions.VERSIONS]
        if failed or result.code:
            say(f"n = {n}: ended early: {failed or result.output[-500:].strip() or f'exit code {result.code}'}")
    return rows


def describe(row: dict) -> str:
    """Describe one version in a line of the log."""
    text = f"{row['version']:<10} n = {row['n']:>4}  {row['state']}"
    if row["flop_per_byte"]:
        text += f"; {row['load_mb']:,.2f} MB asked for, {row['flop_per_byte']:.2f} FLOP per byte"
    if row["load_sectors_per_request"]:
        text += f", {row['load_sectors_per_request']:.2f} sectors per request"
    return text + (f"\n           {row['fault']}" if row["fault"] else "")


def compile_kernels(folder: Path) -> list[dict]:
    """Return nvcc's report on every written kernel for every architecture. Without nvcc, return an empty list."""
    unwritten = {row["version"] for row in counts if row["state"] == "not written yet"}
    rows, reader = [], nvcc.find_cuobjdump(compiler)
    block = {"naive": 256, "coalesced": 256, "tensor": 32, f"tiled<{args.tile}>": args.tile**2, "registers<128, 8, 8>": 256}
    for arch in archs if compiler else ():
        cubin = folder / f"{arch}.cubin"
        try:
            kernels = nvcc.compile_cubin(compiler, harness, arch, cubin, defines)
        except nvcc.NvccFailed as error:
            say(f"nvcc for {arch}: {error}")
            continue
        instructions = (nvcc.count_sass(reader, cubin) if reader else None) or {}
        for kernel in kernels:
            if kernel.name.partition("<")[0] in unwritten:
                continue
            threads = block.get(kernel.name, args.tile**2 // 4)
            fits = nvcc.occupancy(arch, kernel.registers, kernel.shared_bytes, threads)
            count = instructions.get(kernel.symbol, {})
            rows.append({
                "kernel": kernel.name, "arch": arch, "threads": threads, "registers": kernel.registers,
                "shared_bytes": kernel.shared_bytes, "spill_bytes": kernel.spill_bytes, "blocks": fits.blocks,
                "occupancy_percent": fits.percent, "limit": fits.limit,
                "ffma": count.get("FFMA"), "lds": count.get("LDS"), "hmma": count.get("HMMA"),
            })  # fmt: skip
    return rows


def time_library(n: int) -> dict[str, float]:
    """Return the GFLOP/s of torch's own product in float32 with TF32 off, in float16, and in TF32 if the hardware has it."""
    formats = {"float32": (torch.float32, False), "float16": (torch.float16, False)}
    if torch.cuda.get_device_capability(device) >= (8, 0):
        formats["tf32"] = (torch.float32, True)
    speeds = {}
    for name, (dtype, shortened) in formats.items():
        torch.backends.cuda.matmul.allow_tf32 = shortened
        a, b = (torch.rand(n, n, device=device).mul_(2).sub_(1).to(dtype) for _ in range(2))
        times = bench.measure(lambda a=a, b=b: a @ b, device, budget_s=TIMED_S, flush=bench.cache_flush(device))
        speeds[name] = 1e3 * gpus.matmul_tflops(n, bench.percentile(times, 50))
    torch.backends.cuda.matmul.allow_tf32 = False
    return speeds


def time_versions(folder: Path) -> tuple[list[dict], list[dict]]:
    """Return the times of every version and of the library at every size on the GPU.

    Skip programs that failed to build or did not end.
    """
    sheet, program = gpus.find(torch.cuda.get_device_name(device)), folder / "gemm_timed"
    major, minor = torch.cuda.get_device_capability(device)
    try:
        nvcc.build_for_gpu(compiler, harness, f"sm_{major}{minor}", program, defines)
    except nvcc.NvccFailed as error:
        say(f"nvcc: {error}")
        return [], []
    rows, library = [], []
    for n in sizes:
        speeds = time_library(n)
        peaks = {name: sheet.peak_tflops(name) if sheet else None for name in speeds}
        library += [versions.describe_library(n, name, speed, peaks[name]) for name, speed in speeds.items()]
        command = [str(program), str(n), "uniform", "-", str(TIMED_S)]
        try:
            process = subprocess.run(
                command, capture_output=True, text=True, errors="replace", timeout=RUN_LIMIT_S, check=False
            )
        except subprocess.TimeoutExpired:
            say(f"n = {n}: did not end within {RUN_LIMIT_S} s")
            continue
        lines, failure = versions.read_lines(process.stdout)
        if failure or process.returncode:
            say(f"n = {n}: ended early: {failure or process.stderr[-500:]}")
        for version, line in lines.items():
            dtype = "float16" if version == "tensor" else "float32"
            median = bench.percentile(line["ms"], 50) if line["ms"] else None
            rows.append(versions.time_version(line, median, speeds[dtype], peaks[dtype]))
    return rows, library


# --- the experiment: counted, compiled, timed -------------------------------------------------------------------------------
with tempfile.TemporaryDirectory(prefix="gemm-") as place:
    try:
        counts = count_versions(emulator.build([harness, HERE / "my_gemm.cu"], folder=Path(place), defines=defines, every=True))
    except emulator.CompileError as error:
        sys.exit(f"my_gemm.cu does not compile:\n{error.text}")
    except emulator.Unsupported as error:
        sys.exit(str(error))
    except (emulator.Endless, emulator.TooMuchOutput) as error:
        sys.exit(f"a kernel failed: {error}. Does every loop reach n?")
    for row in counts:
        say(describe(row))
    compiled = compile_kernels(Path(place))
    timed, library = time_versions(Path(place)) if timed_here else ([], [])
if compiler is None:
    say(nvcc.ABSENT)

# --- the record ----------------------------------------------------------------------------------------------------------
by_name = {name: versions.summarize_version(counts, name) for name in versions.VERSIONS}
tiled, registers = by_name["tiled"], by_name["registers"]
course_rows, yours = ([row for name, row in by_name.items() if (name in versions.YOURS) == is_own] for is_own in (False, True))
last = {row["version"]: row for row in timed if row["n"] == sizes[-1]}
metrics = {
    **vars(args), "counted_at": counted_sizes[-1], "rows": counts, "summary": list(by_name.values()),
    "float32": [by_name[name] for name in versions.FLOAT32],
    **by_name, "given_error_of_allowed": versions.find_worst(course_rows), "yours_error_of_allowed": versions.find_worst(yours),
    "yours_faults": versions.count_faults(yours),
    "asked_mb": by_name["coalesced"]["load_mb"], "matrices_mb": 2 * 4 * counted_sizes[-1] ** 2 / 1e6,
    "naive_sectors_times": versions.ratio(
        by_name["naive"]["load_sectors_per_request"], by_name["coalesced"]["load_sectors_per_request"]
    ),
    "bytes_saved_times": versions.ratio(by_name["coalesced"]["load_bytes"], tiled["load_bytes"]),
    "registers_times_tiled": versions.ratio(registers["flop_per_byte"], tiled["flop_per_byte"]),
    "t4_limit_tflops": tiled["flop_per_byte"] and tiled["flop_per_byte"] * T4_GB_PER_S / 1e3,
    "compiled": compiled, "spill_bytes": sum(row["spill_bytes"] for row in compiled) if compiled else None,
    "timed": timed, "library": library, "steps_down": versions.count_steps_down(timed),
    "registers_percent_of_library": last.get("registers", {}).get("percent_of_library"),
    "timed_error_of_allowed": max((row["error_of_allowed"] for row in timed), default=None),
    "refused": sum(row["refused"] for row in timed + library),
    "beside_published": versions.set_beside(timed),
    "simulated": None if timed_here else "addresses are counted by an emulator on a processor; nothing was timed",
}  # fmt: skip
titles = {"version": "version", "state": "state", "load_mb": "MB", "flop_per_byte": "FLOP/byte",
          "load_sectors_per_request": "sectors", "shared_load_conflicts": "conflicts", "races": "races"}  # fmt: skip
bench.say_table(list(by_name.values()), titles)
name = torch.cuda.get_device_name(device) if timed_here else "a GPU"
(out / "versions.md").write_text(versions.write_page(name, list(by_name.values()), timed), encoding="utf-8")
if out.resolve() != HERE:
    shutil.copyfile(HERE / "my_gemm.cu", out / "my_gemm.cu")  # the file that was run, kept with its results
path = bench.write_metrics("gemm_versions/1", device, world_size=1, seed=SEED, metrics=metrics)
bench.say_end(path, device)
