"""`make bench`: every row is printed as soon as it is measured, and a failure does not affect other rows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.emulator import (
    Verdict,
    find_wrong,
    list_causes,
    list_repositories,
    make_rows,
    measure_programs,
    reads_arguments,
)
from benchmarks.measure import Row
from tests.parts import need


def make_row(name: str) -> Row:
    return Row(what=name, ours=1.0, theirs="by hand", theirs_value=2.0, limit=3.0)


def test_main_keeps_what_was_measured_when_a_row_fails(capsys: pytest.CaptureFixture[str]) -> None:
    def breaks() -> Iterator[Row]:
        yield make_row("first")
        assert "first  1 s  by hand  2 s  at most 3 s  yes" in capsys.readouterr().err, "printed as it is measured"
        raise subprocess.CalledProcessError(7, ["gpucourse", "deploy"], stderr="two\nnode0 does not answer\n")

    assert main([], {"broken": breaks, "whole": lambda: [make_row("last")]}) == 1
    table = {line.split("  ")[0]: line for line in capsys.readouterr().out.splitlines()}
    assert table["first"].endswith("yes")
    assert table["broken"].endswith("node0 does not answer")
    assert table["last"].endswith("yes")


def test_gpu_proof_needs_no_tool_of_the_tests() -> None:
    """Import the benchmark with only the packages that `make gpu-proof` installs, which are those of a learner."""
    program = """
import runpy, sys
sys.modules.update(dict.fromkeys(("pytest", "hypothesis", "moto")))
sys.argv = ["benchmarks", "gpu", "9.9"]
runpy.run_module("benchmarks", run_name="__main__")
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr[:29]) == (2, "there is no exercise 9.9 here"), result.stderr


@pytest.mark.slow  # compiles the emulator without the cache of the tests
def test_emulator_measures_the_programs_that_are_there(tmp_path: Path) -> None:
    need("g++")
    texts = {
        "right.cu": "__global__ void add() {}\nint main() { add<<<1, SIZE>>>(); }",
        "absent.cu": "int main() { return absent; }",
        "wrong.cu": '#include <cstdio>\nint main() { puts("0 wrong before\\nArrays do not match"); }',
        "part.cu": "void rest();\nint main() { rest(); }",
        "needy.cu": '#include <cstdio>\nint main() { printf("Usage: needy N\\n"); return 1; }',
    }
    for name, text in texts.items():
        path = tmp_path / "someone+samples" / "add" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (path.parent / "rest.cpp").write_text("void rest() {}")
    (path.parent / "Makefile").write_text("CFLAGS = -O3 -DSIZE=1\nifdef LARGE\nCFLAGS += -DSIZE=2\nendif\n")
    programs = [("someone/samples", f"add/{name}") for name in (*texts, "lost.cu")]
    verdicts = [verdict for _, verdict in measure_programs(tmp_path, programs)]
    assert [verdict.state for verdict in verdicts] == [
        "ran",
        "not compiled",
        "failed",
        "several units",
        "needs input",
        "not there",
    ]
    assert "'absent' was not declared" in verdicts[1].cause
    assert verdicts[2].cause == "Arrays do not match"
    assert [(row.ours, row.held) for row in make_rows(verdicts)] == [(75, False), (pytest.approx(100 / 3), False)]
    assert list_repositories(verdicts)[1].split() == ["someone/samples", "1", "1", "0", "1", "1", "1", "1"]


def test_emulator_adds_up_causes_of_different_lines() -> None:
    verdicts = [Verdict("a/b", "failed", f"my.cu:{line}: the program crashed") for line in (3, 4)]
    assert list_causes(verdicts) == ["    2  failed           the program crashed"]
    assert make_rows([Verdict("a/b", "not there", "no such file")])[0].failure


@pytest.mark.parametrize(
    "line",
    [
        "UNMATCHED",
        "Error !! Obtained 3, expected 4",
        "mismatch at 17: 2 != 3",
        "mismatch at index 3: 0 vs 1",
        "block 0: FAIL",
        "Test 0 failed",
        "9 passed, 1 failed",
        "Result: INCORRECT",
        "The results do NOT match",
        "results don't match",
        "CPU and GPU are not equal",
        "Error at element 5",
        "found 12 errors",
        "errors: 3",
        "Passed: false",
        "\u274c vector addition",
    ],
)
def test_line_says_that_a_check_failed(line: str) -> None:
    assert find_wrong(f"begin\n  {line}\nend") == line


@pytest.mark.parametrize(
    "line",
    [
        "0 mismatches",
        "mismatches: 0",
        "Total mismatches between the GPU and the CPU: 0",
        "Failed tests = 0",
        "9 passed, 0 failed",
        "no mismatch found",
        "Max error: 0.0",
        "error = 1.5e-07",
        "errors: 1.5e-07",
        "CUDA error: no error",
        "number of errors: 0",
        "the launch failed as expected",
        "incorrect: 0.00",
        "Passed: true",
        "all results match",
        "first matching character: 7",
    ],
)
def test_line_says_that_nothing_failed(line: str) -> None:
    assert find_wrong(line) is None


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("int main(int argc, char** argv) { return atoi(argv[1]); }", True),
        ("int main(int nn, char *str[]) {\n  int n = atoi(str[1]); }", True),
        ("int main(int argc, const char* const* words, char** all) { open(words [2]); }", True),
        ('int main(int argc, char *argv[]) { while (getopt(argc, argv, "n:")) {} }', True),
        ("int main(int argc, char *str[]) { puts(str[0]); text[1] = 0; }", False),
        ("int main() { return list[1]; }", False),
    ],
)
def test_reads_arguments_finds_the_second_parameter_of_main(text: str, reads: bool) -> None:
    assert reads_arguments(text) is reads
