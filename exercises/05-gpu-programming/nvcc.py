"""Get nvcc's report on kernels, if it is installed: registers, shared memory, spills, instructions; and the occupancy.

Without nvcc, `find_nvcc` returns None, and these values are not measured.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ABSENT = (
    "no nvcc here: registers, spills and occupancy are not measured (pip install nvidia-cuda-nvcc nvidia-cuda-cuobjdump "
    "nvidia-cuda-nvdisasm installs it, 135 MB)"
)
CUDA_FOLDER = Path("/usr/local/cuda/bin")
COMPILE_LIMIT_S = 180.0
WARP = 32
INSTRUCTIONS = ("FFMA", "LDS", "HMMA")  # multiply-add, load from shared memory, product on the tensor cores


class NvccFailed(Exception):
    """nvcc failed to compile the file, or took too long. The text is the first lines of its output."""


@dataclass(frozen=True)
class CompiledKernel:
    """One kernel of a cubin: its name in the source ("tiled<16>"), its name in the cubin, and the resources that it needs."""

    name: str
    symbol: str
    registers: int  # a thread
    shared_bytes: int  # a block
    spill_bytes: int  # per thread: stores and loads of registers that did not fit


@dataclass(frozen=True)
class Multiprocessor:
    """The limits of one multiprocessor (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability").

    `unit`: shared memory is allocated in multiples of this many bytes.
    `reserved`: bytes of shared memory that the system keeps for each block.
    """

    threads: int
    blocks: int
    shared_bytes: int
    unit: int
    reserved: int
    registers: int = 65536


ARCHITECTURES = {
    "sm_75": Multiprocessor(threads=1024, blocks=16, shared_bytes=64 << 10, unit=256, reserved=0),
    "sm_80": Multiprocessor(threads=2048, blocks=32, shared_bytes=164 << 10, unit=128, reserved=1024),
    "sm_86": Multiprocessor(threads=1536, blocks=16, shared_bytes=100 << 10, unit=128, reserved=1024),
    "sm_89": Multiprocessor(threads=1536, blocks=24, shared_bytes=100 << 10, unit=128, reserved=1024),
    "sm_90": Multiprocessor(threads=2048, blocks=32, shared_bytes=228 << 10, unit=128, reserved=1024),
}


@dataclass(frozen=True)
class Occupancy:
    """The blocks that fit on a multiprocessor at a time, their threads in percent of its limit, and the scarcest resource."""

    blocks: int
    percent: float
    limit: str


def occupancy(arch: str, registers: int, shared_bytes: int, block: int) -> Occupancy:
    """Return the theoretical occupancy of a kernel with `registers` registers per thread, and with `shared_bytes` bytes of
    shared memory and `block` threads per block.

    As in NVIDIA's occupancy calculator, registers are allocated to warps in units of 256, and each of the four parts of a
    multiprocessor has a quarter of them. Raises ValueError for an unknown architecture or an impossible block.
    """
    if arch not in ARCHITECTURES:
        raise ValueError(f"{arch} is not one of {', '.join(ARCHITECTURES)}")
    if not 1 <= block <= 1024 or not 1 <= registers <= 255:
        raise ValueError(f"no kernel has {block} threads per block and {registers} registers per thread")
    has = ARCHITECTURES[arch]
    warps = _round_up(block, WARP) // WARP
    warps_by_registers = 4 * (has.registers // 4 // _round_up(registers * WARP, 256))
    shared = _round_up(shared_bytes + has.reserved, has.unit)
    limits = {
        "blocks": has.blocks,
        "threads": has.threads // WARP // warps,
        "registers": warps_by_registers // warps,
        "shared memory": has.shared_bytes // shared if shared else has.blocks,
    }
    limit = min(limits, key=lambda name: limits[name])
    return Occupancy(limits[limit], 100 * limits[limit] * warps * WARP / has.threads, limit)


def _round_up(number: int, unit: int) -> int:
    return -(-number // unit) * unit


def find_nvcc() -> str | None:
    """Return the path of nvcc from the PATH, CUDA's own folder, or pip's packages, or None if nvcc is not installed."""
    homes = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH")]
    folders = [Path(home) / "bin" for home in homes if home] + [CUDA_FOLDER, *_list_pip_folders()]
    return shutil.which("nvcc") or _find_program("nvcc", folders)


def find_cuobjdump(nvcc: str | None) -> str | None:
    """Return the path of cuobjdump, which reads the instructions in a cubin, or None if it is not installed.

    cuobjdump needs nvdisasm in its folder.
    """
    folders = [Path(os.path.realpath(nvcc)).parent] if nvcc else []
    return shutil.which("cuobjdump") or _find_program("cuobjdump", [*folders, *_list_pip_folders()])


def _find_program(name: str, folders: Sequence[Path]) -> str | None:
    return next((path for folder in folders if (path := shutil.which(name, path=str(folder)))), None)


def _list_pip_folders() -> list[Path]:
    """Return the folders of programs in pip's packages nvidia-cuda-* and triton. Triton contains cuobjdump and nvdisasm."""
    folders: list[Path] = []
    for package, pattern in (("nvidia", "cu*/bin"), ("triton", "backends/nvidia/bin")):
        spec = importlib.util.find_spec(package)
        for place in (spec.submodule_search_locations or []) if spec else []:
            folders += sorted(Path(place).glob(pattern), reverse=True)
    return folders


def compile_cubin(
    nvcc: str, source: Path, arch: str, cubin: Path, defines: Mapping[str, object] | None = None
) -> list[CompiledKernel]:
    """Compile the kernels of `source` and of its included files for one architecture, and return them. Raises NvccFailed."""
    return read_ptxas(_call(nvcc, source, arch, cubin, defines, "-Xptxas", "-v", "-cubin"))


def build_for_gpu(nvcc: str, source: Path, arch: str, program: Path, defines: Mapping[str, object] | None = None) -> None:
    """Build the whole `program` for GPUs of an architecture. Raises NvccFailed."""
    _call(nvcc, source, arch, program, defines)


def _call(nvcc: str, source: Path, arch: str, target: Path, defines: Mapping[str, object] | None, *extra: str) -> str:
    words = [nvcc, "-std=c++17", "-O3", f"-arch={arch}", *(f"-D{name}={value}" for name, value in (defines or {}).items())]
    try:
        process = subprocess.run(
            [*words, *extra, "-o", str(target), str(source)],
            capture_output=True, text=True, errors="replace", timeout=COMPILE_LIMIT_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise NvccFailed(f"nvcc did not end within {COMPILE_LIMIT_S:g} s") from None
    except OSError as error:
        raise NvccFailed(f"{nvcc} cannot be started: {error.strerror}") from None
    output = process.stdout + process.stderr
    if process.returncode:
        lines = [line for line in output.splitlines() if line.strip()]
        raise NvccFailed("\n".join(lines[:5]) or f"nvcc ended with exit code {process.returncode}")
    return output


def read_ptxas(output: str) -> list[CompiledKernel]:
    """Return the kernels in the output of `ptxas -v`."""
    kernels = []
    for entry in output.split("Compiling entry function ")[1:]:
        symbol, spills, usage = (
            re.match(r"'([^']+)'", entry),
            re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", entry),
            re.search(r"Used (\d+) registers", entry),
        )
        if symbol and spills and usage:
            shared = re.search(r"(\d+) bytes smem", entry)
            kernels.append(
                CompiledKernel(
                    name=read_symbol(symbol[1]),
                    symbol=symbol[1],
                    registers=int(usage[1]),
                    shared_bytes=int(shared[1]) if shared else 0,
                    spill_bytes=int(spills[1]) + int(spills[2]),
                )
            )
    return kernels


def read_symbol(symbol: str) -> str:
    """Return the name and whole numbers in a symbol: `tiled<16>` for `_Z5tiledILi16EEvPKfS1_Pfi`. Return others unchanged."""
    begin = re.match(r"_Z(\d+)", symbol)
    if begin is None:
        return symbol
    end = begin.end() + int(begin[1])
    name, suffix = symbol[begin.end() : end], symbol[end:]
    arguments = re.match(r"I((?:L[ijlmb]\d+E)+)E", suffix)
    numbers = re.findall(r"L[ijlmb](\d+)E", arguments[1]) if arguments else []
    return f"{name}<{', '.join(numbers)}>" if numbers else name


def count_sass(cuobjdump: str, cubin: Path, instructions: Sequence[str] = INSTRUCTIONS) -> dict[str, dict[str, int]] | None:
    """Return how often each of `instructions` occurs in each kernel of a cubin, by symbol, or None if it is unreadable."""
    path = os.pathsep.join([str(Path(cuobjdump).parent), os.environ.get("PATH", "")])
    try:
        process = subprocess.run(
            [cuobjdump, "-sass", str(cubin)], env={**os.environ, "PATH": path},
            capture_output=True, text=True, errors="replace", timeout=COMPILE_LIMIT_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return read_sass(process.stdout, instructions) if process.returncode == 0 else None


def read_sass(output: str, instructions: Sequence[str] = INSTRUCTIONS) -> dict[str, dict[str, int]]:
    """Return how often each of `instructions` occurs in each kernel, by symbol, from the output of cuobjdump."""
    counts = {}
    for part in output.split("Function : ")[1:]:
        symbol, _, body = part.partition("\n")
        counts[symbol.strip()] = {name: len(re.findall(rf"\s(?:@!?U?P\w+ )?{name}[\s.]", body)) for name in instructions}
    return counts
