"""A learner's .cu file, whatever is in it: judged with its own line, or open where a kernel is still the course's."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from gpucourse.judge.client import Judge
from tests.waiting import STUCK_S

EXERCISES = Path(__file__).parents[4] / "exercises"
FOLDER = EXERCISES / "05-gpu-programming"
DELIVERED = (FOLDER / "my_kernels.cu").read_text(encoding="utf-8")
SOLUTION = (FOLDER / "solutions" / "my_kernels.cu").read_text(encoding="utf-8")
ADD_WRITTEN = DELIVERED.replace('  OPEN("vector_add', '  // OPEN("vector_add').replace("  sum[i] =", "  if (i < n) sum[i] =")
pytestmark = pytest.mark.skipif(sys.platform != "linux" or not shutil.which("g++"), reason="the emulator needs g++ on Linux")

FATES = {
    "bom-and-crlf": ("\ufeff" + SOLUTION.replace("\n", "\r\n"), "passed", "", ""),
    "one-of-two": (ADD_WRITTEN, "open", "", "block_sum: not written yet"),
    "no-end": (SOLUTION.rstrip().removesuffix("}"), "failed", "compile", "my_kernels.cu:"),
    "wrong-number": (
        SOLUTION.replace("part[t] += part[t + d]", "part[t] -= part[t + d]"),
        "failed",
        "values",
        "with n = 31 the result is",
    ),
    "null": (SOLUTION.replace("atomicAdd(sum, part[0])", "*(float*)0 = part[0]"), "failed", "ended", "null pointer"),
}

GEMM = (FOLDER / "solutions" / "my_gemm.cu").read_text(encoding="utf-8")
OPEN_REGISTERS = (FOLDER / "my_gemm.cu").read_text(encoding="utf-8").split("template <int M", 1)[1]
FATES_OF_GEMM = {
    "bom-and-crlf": ("\ufeff" + GEMM.replace("\n", "\r\n"), "passed", "", ""),
    "one-of-two": (
        f"{GEMM.split('template <int M', 1)[0]}template <int M{OPEN_REGISTERS}",
        "open",
        "",
        "registers is not written yet",
    ),
    "syntax-on-line-1": (f"int x = ;\n{GEMM}", "failed", "not-compiled", "my_gemm.cu:1: "),
    "renamed": (GEMM.replace("void tiled(", "void tile("), "failed", "not-compiled", "it does not fit what calls it"),
    "endless": (GEMM.replace("first += T)", "first += 0)"), "failed", "endless", "Which loop never reaches n?"),
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name == "one-of-two" else pytest.mark.slow) for name in FATES])
def test_judge_of_my_kernels_says_the_reason(judge: Judge, tmp_path: Path, name: str) -> None:
    check(judge, tmp_path / "my_kernels.cu", *FATES[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", FATES_OF_GEMM)
def test_judge_of_my_gemm_says_the_reason(judge: Judge, tmp_path: Path, name: str) -> None:
    check(judge, tmp_path / "my_gemm.cu", *FATES_OF_GEMM[name])


def check(judge: Judge, file: Path, text: str, word: str, way: str, message: str) -> None:
    file.write_bytes(text.encode())
    limit_s = 20.0 if way == "endless" else STUCK_S
    verdict = judge.judge(
        FOLDER / "judges" / f"{file.stem}.py", file, torch=False, limit_s=limit_s, path=(FOLDER, EXERCISES / "shared")
    )
    assert (verdict.word, verdict.way) == (word, way), verdict
    assert message in verdict.says
