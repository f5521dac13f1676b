"""Run a CUDA program on this node: with nvcc on its GPU or, if one of the two is missing, on the emulator.

You will learn    what your kernels do on the machine that you have, and which of the two ran them
You will produce  the program's own output; on the emulator also the counts and faults of each kernel
Run it            gpucourse run --script my.cu, or by hand: python cuda_program.py my.cu ARGUMENTS
Your part         the program
Reading           docs/cuda.md
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CUDA_FOLDER = Path("/usr/local/cuda/bin")
NVCC_FLAGS = ("-O3", "-lineinfo", "-arch=native", "-std=c++17")
LIMIT_S = 86_400  # the run has its own limit
LOOK_S = 30.0


def main() -> int:
    """Run the program that the first argument names, and return its exit code."""
    if len(sys.argv) < 2:
        sys.exit("which program? python cuda_program.py my.cu ARGUMENTS")
    source, arguments = Path(sys.argv[1]), sys.argv[2:]
    nvcc, gpu = find_nvcc(), find_gpu()
    if nvcc and gpu:
        print(f"[cuda] {source.name} runs on a GPU, {gpu}, built by {nvcc}", flush=True)
        return run_on_gpu(nvcc, source, arguments)
    absent = " and ".join(name for name, present in (("nvcc", nvcc), ("a GPU", gpu)) if not present)
    print(f"[cuda] {source.name} runs on the emulator, because this node lacks {absent}; no time is measured", flush=True)
    from emulator.__main__ import main as emulate

    return emulate([str(source), "--limit", str(LIMIT_S), "--", *arguments])


def find_nvcc() -> str | None:
    """Return the path of nvcc from the PATH or from CUDA's own folder, or None."""
    return shutil.which("nvcc") or shutil.which("nvcc", path=str(CUDA_FOLDER))


def find_gpu() -> str:
    """Return the name of the first GPU that nvidia-smi reports, or an empty string."""
    words = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        process = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=LOOK_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return process.stdout.partition("\n")[0].strip() if process.returncode == 0 else ""


def run_on_gpu(nvcc: str, source: Path, arguments: list[str]) -> int:
    """Build the program with nvcc, run it, and return its exit code, or that of nvcc if it does not compile."""
    with tempfile.TemporaryDirectory(prefix="cuda-") as folder:
        program = Path(folder) / "program"
        code = subprocess.run([nvcc, *NVCC_FLAGS, str(source), "-o", str(program)], check=False).returncode
        if code == 0:
            code = subprocess.run([str(program), *arguments], stdin=subprocess.DEVNULL, check=False).returncode
    return 128 - code if code < 0 else code  # a signal, as a shell reports it


if __name__ == "__main__":
    sys.exit(main())
