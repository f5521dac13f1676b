"""A learner's .cu file, whatever is in it: judged with its own line, or open where a kernel is still the course's."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpucourse.judge.client import Judge

EXERCISES = Path(__file__).parents[3] / "exercises"
FOLDER = EXERCISES / "05-gpu-programming"
DELIVERED = (FOLDER / "my_kernels.cu").read_text(encoding="utf-8")
SOLUTION = (FOLDER / "solutions" / "my_kernels.cu").read_text(encoding="utf-8")
ADD_WRITTEN = DELIVERED.replace('  OPEN("vector_add', '  // OPEN("vector_add').replace("  sum[i] =", "  if (i < n) sum[i] =")
pytestmark = pytest.mark.skipif(sys.platform != "linux" or not shutil.which("g++"), reason="the emulator needs g++ on Linux")

FATES = {
    "bom-and-crlf": ("\ufeff" + SOLUTION.replace("\n", "\r\n"), "passed", "", ""),
    "one-of-two": (ADD_WRITTEN, "open", "", "block_sum: not written yet"),
    "syntax-on-line-1": (
        SOLUTION.replace("#include <cuda_runtime.h>", "int x = ;"),
        "failed",
        "compile",
        "my_kernels.cu:1: error",
    ),
    "no-end": (SOLUTION.rstrip().removesuffix("}"), "failed", "compile", "my_kernels.cu:"),
    "empty": ("", "failed", "renamed", "has no kernel vector_add"),
    "no-text": ("\ufeffint x;\0", "failed", "renamed", "has no kernel vector_add"),
    "wrong-number": (
        SOLUTION.replace("part[t] += part[t + d]", "part[t] -= part[t + d]"),
        "failed",
        "values",
        "with n = 31 it gives",
    ),
    "null": (SOLUTION.replace("atomicAdd(sum, part[0])", "*(float*)0 = part[0]"), "failed", "ended", "null pointer"),
}


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge() as judge:
        yield judge


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name == "one-of-two" else pytest.mark.slow) for name in FATES])
def test_a_file_of_kernels_gets_a_verdict_with_its_reason(judge: Judge, tmp_path: Path, name: str) -> None:
    text, word, way, says = FATES[name]
    file = tmp_path / "my_kernels.cu"
    file.write_bytes(text.encode())
    judged = judge.judge(
        FOLDER / "judges" / "my_kernels.py", file, torch=False, limit_s=20.0, path=(FOLDER, EXERCISES / "shared")
    )
    assert (judged.word, judged.way) == (word, way), judged
    assert says in judged.says
