"""Get nvcc's report on the kernels of 5.1, and their times on a GPU. GB/s count the bytes that a kernel must move."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import bench
import findings
import gpus
import nvcc
import torch

ARCH = "sm_75"  # a T4's architecture: without a GPU, its registers and occupancy are reported
LIMIT_S = 120.0
OF_NVCC = {"registers": None, "shared_bytes": None, "spill_bytes": None, "occupancy_percent": None}
NOT_MEASURED = {
    "median_ms": None,
    "gb_per_s": None,
    "percent_of_copy": None,
    "sanitizer_errors": None,
    "sanitizer_hazards": None,
}
TIMED = (
    "copy",
    "vector_copy",
    "shifted_copy",
    "strided_copy",
    "read_field",
    "vector_add",
    "block_sum",
    "transpose",
    "clip_sum",
)


@dataclass
class Compilation:
    """The files that nvcc compiles: the kernels, to find their registers, and on a GPU the programs to time."""

    arch: str
    device: torch.device
    nvcc: str | None
    cubins: dict[str, Future[list[nvcc.CompiledKernel]]] = field(default_factory=dict)
    programs: dict[str, Future[Path]] = field(default_factory=dict)

    def describe(self, name: str, kernel: str, block: int) -> dict[str, Any]:
        """Return a kernel's registers per thread, shared memory per block, spills and theoretical occupancy. Without nvcc, all
        are None."""
        if name not in self.cubins:
            return OF_NVCC
        try:
            kernels = {item.name: item for item in self.cubins[name].result()}
        except nvcc.NvccFailed:
            return OF_NVCC
        if kernel not in kernels:
            return OF_NVCC
        item = kernels[kernel]
        threads = 1024 if kernel == "transpose" else 32 if kernel.startswith("column_of_") else block
        return {
            "registers": item.registers,
            "shared_bytes": item.shared_bytes,
            "spill_bytes": item.spill_bytes,
            "occupancy_percent": nvcc.occupancy(self.arch, item.registers, item.shared_bytes, threads).percent
            if self.arch in nvcc.ARCHITECTURES
            else None,
        }


def start(pool: ThreadPoolExecutor, files: list[Path], device: torch.device, folder: Path) -> Compilation:
    """Start compiling the kernels with nvcc, if it is installed, and return the compilation.

    On a computer with a GPU, also compile whole programs.
    """
    arch = ARCH
    if device.type == "cuda":
        major, minor = torch.cuda.get_device_capability(device)
        arch = f"sm_{major}{minor}"
    work = Compilation(arch, device, nvcc.find_nvcc())
    if work.nvcc is None:
        return work
    for file in files:
        work.cubins[file.name] = pool.submit(nvcc.compile_cubin, work.nvcc, file, arch, folder / f"{file.stem}.cubin")
        if device.type == "cuda":
            work.programs[file.name] = pool.submit(_build, work.nvcc, file, arch, folder / f"{file.stem}-gpu")
    return work


def _build(compiler: str, file: Path, arch: str, program: Path) -> Path:
    nvcc.build_for_gpu(compiler, findings.HARNESS, arch, program, {"PART": findings.FILES.index(file.name)})
    return program


@dataclass
class Times:
    """The times of all kernels by name, the speed of the GPU's own copy, and the number of impossible figures."""

    note: str
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    copy_gb_per_s: float | None = None
    refused: int = 0


def time_all(work: Compilation, rows: list[dict[str, Any]], elements: int, block: int, stride: int) -> Times:
    """Return the times of every kernel that computes the right values and stays inside its arrays; none without a GPU and
    nvcc."""
    if work.device.type != "cuda":
        return Times("not measured: GB/s, which need a GPU" + ("" if work.nvcc else f"; {nvcc.ABSENT}"))
    if work.nvcc is None:
        return Times(f"not measured: GB/s; {nvcc.ABSENT}")
    sheet = gpus.find(torch.cuda.get_device_name(work.device))
    times = Times(
        f"timed on {torch.cuda.get_device_name(work.device)}, {elements:,} elements, the L2 cache emptied before each launch"
    )
    part_of = {kernel: name for name, kernels in findings.LEARNERS.items() for kernel in kernels}
    safe = [row for row in rows if row["kernel"] in TIMED and not (row["wrong_sizes"] or row["out_of_bounds"] or row["ended"])]
    for row in safe:
        kernel, file = row["kernel"], part_of.get(row["kernel"], "given.cu")
        try:
            program = work.programs[file].result()
        except nvcc.NvccFailed as error:
            bench.say(f"nvcc refuses {file}: {error}")
            continue
        times.rows[kernel] = _time(program, kernel, elements, block, stride) | _sanitize(program, kernel, block, stride)
    for row in times.rows.values():
        if row["gb_per_s"] is not None and sheet is not None and row["gb_per_s"] > sheet.gb_per_s:
            bench.say(f"refused: {row['gb_per_s']:,.0f} GB/s is more than the {sheet.gb_per_s:,.0f} of the data sheet")
            row["gb_per_s"] = None
            times.refused += 1
    times.copy_gb_per_s = times.rows.get("copy", NOT_MEASURED)["gb_per_s"]
    for row in times.rows.values():
        if row["gb_per_s"] and times.copy_gb_per_s:
            row["percent_of_copy"] = 100 * row["gb_per_s"] / times.copy_gb_per_s
    return times


def _time(program: Path, kernel: str, elements: int, block: int, stride: int) -> dict[str, Any]:
    """Return the median time of many warm launches, and the GB/s, which count the bytes that the kernel must move."""
    count = max(1, elements // {"strided_copy": stride, "read_field": 4}.get(kernel, 1))  # arrays of the same length
    words = [str(program), "time", kernel, str(block), str(stride), str(count)]
    output = _call(words)
    answers = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    timed = next((answer for answer in answers if "seconds" in answer), None)
    if timed is None or any(answer.get("wrong") for answer in answers):
        bench.say(f"{kernel} was not timed: it failed, or its numbers are wrong: {output.strip()[-200:]}")
        return dict(NOT_MEASURED)
    if kernel == "transpose":
        rows, columns = findings.shape_of_transpose(count)
        count = rows * columns
    spread = bench.spread_ms(timed["seconds"])
    needed_bytes = findings.count_bytes(kernel, count) or 0
    return {**NOT_MEASURED, "median_ms": spread["median_ms"], "gb_per_s": needed_bytes / spread["median_ms"] / 1e6}


def _sanitize(program: Path, kernel: str, block: int, stride: int) -> dict[str, int | None]:
    """Return the errors and hazards that NVIDIA's compute-sanitizer counts on the GPU.

    Return an empty dict if it is not installed. A count that it does not report is None.
    """
    tool = shutil.which("compute-sanitizer")
    if tool is None:
        return {}
    words = [str(program), kernel, str(block), str(stride), *map(str, findings.SIZES)]
    errors = re.search(r"ERROR SUMMARY: (\d+) error", _call([tool, "--tool", "memcheck", *words]))
    hazards = re.search(r"RACECHECK SUMMARY: (\d+) hazard", _call([tool, "--tool", "racecheck", *words]))
    return {"sanitizer_errors": int(errors[1]) if errors else None, "sanitizer_hazards": int(hazards[1]) if hazards else None}


def _call(words: list[str]) -> str:
    """Return the output of a program, or a message if it took too long."""
    try:
        process = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return f"it did not end within {LIMIT_S:g} s"
    return process.stdout + process.stderr
