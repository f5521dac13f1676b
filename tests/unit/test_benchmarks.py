"""`make bench`: every row as it is measured, what fails beside the others, nothing lost."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext

import pytest

from benchmarks import course
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


class PlayedLab:
    """A lab whose `run 3 --all` ends with a check that failed, and in which module 2 cannot be deployed."""

    def type(self, *words: str) -> str:
        if words[:2] == ("deploy", "2"):
            raise subprocess.CalledProcessError(6, ["gpucourse"], stderr="Slurm is not installed\n")
        if words[0] != "run":
            return ""
        steps = [
            {
                "exercise": f"{words[1]}.1",
                "state": "succeeded",
                "verdict": "passed",
                "seconds": 31.0 if words[1] == "1" else 2.0,
            }
        ]
        steps += [{"exercise": "3.2", "state": "succeeded", "verdict": "failed", "seconds": 4.0}] if words[1] == "3" else []
        steps += [{"exercise": f"{words[1]}.9", "state": "skipped", "verdict": None, "seconds": None}]
        answer = json.dumps({"steps": steps})
        if words[1] == "3":
            raise subprocess.CalledProcessError(5, ["gpucourse"], answer, "1 of 3 did not pass")
        return answer


def test_the_course_in_one_go_names_what_did_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(course, "lab", lambda: nullcontext(PlayedLab()))
    rows = {row.what.partition(":")[0]: row for row in course.measure()}
    assert rows["module 0"].held
    assert rows["module 0"].what == "module 0: 1 scripts, slowest 0.1 with 2.0 s"
    assert not rows["module 1"].held, "31 s are too long"
    assert rows["module 2"].failure.endswith("Slurm is not installed")
    assert rows["module 3"].what.endswith("slowest 3.2 with 4.0 s; not passed: 3.2")
    [whole] = [row for name, row in rows.items() if name.startswith("all ")]
    assert not whole.held
    assert whole.theirs_s == sum(row.theirs_s or 0.0 for row in rows.values() if row is not whole)


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
