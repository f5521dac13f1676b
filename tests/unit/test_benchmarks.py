"""`make bench`: every row as it is measured, what fails beside the others, nothing lost."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from benchmarks.__main__ import main
from benchmarks.measure import Row, attempt


def row(what: str, *, held: bool = True) -> Row:
    return Row(what=what, ours_s=1.0, theirs="by hand", theirs_s=2.0, promise="faster", held=held)


def test_a_row_that_fails_stands_in_the_table_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    def breaks() -> Iterator[Row]:
        yield row("first")
        assert "first  1.000 s  by hand  2.000 s  0.50x  faster  yes" in capsys.readouterr().err, "printed as it is measured"
        raise subprocess.CalledProcessError(7, ["gpucourse", "deploy"], stderr="two\nnode0 does not answer\n")

    def lacks() -> list[Row]:
        pytest.skip("/run/sshd is not there")

    assert main([], {"broken": breaks, "lacking": lacks, "whole": lambda: [row("last")]}) == 1
    table = {line.split("  ")[0]: line for line in capsys.readouterr().out.splitlines()}
    assert table["first"].endswith("yes")
    assert table["broken"].endswith("node0 does not answer")
    assert table["lacking"].endswith("failed: /run/sshd is not there")
    assert table["last"].endswith("yes")


def test_a_part_of_a_benchmark_that_fails_leaves_the_other_parts() -> None:
    def fails() -> list[Row]:
        raise RuntimeError("no\nroom " + "x" * 500)

    def measure() -> Iterator[Row]:
        yield from attempt("64 nodes", fails)
        yield from attempt("2 nodes", lambda: [row("2 nodes")])

    rows = list(measure())
    assert [(measured_row.what, measured_row.held) for measured_row in rows] == [("64 nodes", False), ("2 nodes", True)]
    assert rows[0].failure.startswith("no room xxx")
    assert len(rows[0].failure) == 200


def test_ctrl_c_keeps_what_was_measured(capsys: pytest.CaptureFixture[str]) -> None:
    def stop() -> Iterator[Row]:
        yield row("first")
        raise KeyboardInterrupt

    assert main(["stopped"], {"stopped": stop}) == 130
    assert "first  1.000 s" in capsys.readouterr().out


def test_the_exit_code_says_whether_every_promise_held() -> None:
    assert main([], {"good": lambda: [row("a")]}) == 0
    assert main([], {"bad": lambda: [row("a", held=False)]}) == 1
    assert main(["other"], {"good": lambda: [row("a")]}) == 2


def test_the_proof_on_a_gpu_needs_no_tool_of_the_tests() -> None:
    """`make gpu-proof` installs what a learner has, and no more."""
    program = """
import runpy, sys
sys.modules.update(dict.fromkeys(("pytest", "hypothesis", "moto")))
sys.argv = ["benchmarks", "gpu", "9.9"]
runpy.run_module("benchmarks", run_name="__main__")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr[:29]) == (2, "there is no exercise 9.9 here"), done.stderr
