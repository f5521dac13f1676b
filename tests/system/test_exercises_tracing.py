"""The exercises of bonus B as a learner runs them: as delivered, with the solutions, and with values that cannot be."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.parts import need
from tests.system.exercising import (
    FOLDERS,
    check_plots_and_tables,
    environment,
    lay_out,
    list_failed_checks,
    list_unanswered,
    needs_torch,
    run_solved,
    with_faults,
)

pytestmark = [pytest.mark.system, pytest.mark.slow, needs_torch]
SOLUTIONS = FOLDERS.exercises / "B-ebpf-tracing" / "solutions"


@pytest.fixture(autouse=True)
def compiler() -> None:
    need("cc")


def test_as_delivered_a_trace_is_exact_and_the_part_open(tmp_path: Path) -> None:
    run = with_faults("B.2", tmp_path / "work")
    assert run.code == 0, run.output
    assert list_failed_checks(run) == set()
    assert set(list_unanswered(run)) == {"kernels-by-formula", "blocks-by-formula"}
    assert run.metrics["tracer"] in {"bpftrace", "perf", "preload"}
    assert run.metrics["launches_predicted"] == 8 * (2 + 5 * 4)


@pytest.mark.parametrize("settings", [{}, {"puzzle": "6", "prompt": "2048", "tokens": "1"}, {"puzzle": "9", "tokens": "512"}])
def test_the_solution_passes_every_check_without_a_gpu(settings: dict[str, str], tmp_path: Path) -> None:
    run = run_solved("B.2", tmp_path / "work", "my_costs.py", tracer="preload", **settings)
    assert run.code == 0, run.output
    assert list_unanswered(run) == {}
    check_plots_and_tables(run, tmp_path)


@pytest.mark.parametrize(
    ("flag", "words"), [("--tokens=0", "--tokens 1 to 512"), ("--engine=torch", "--engine torch needs a GPU")]
)
def test_values_that_cannot_be_are_refused_with_the_rule(flag: str, words: str, tmp_path: Path) -> None:
    _, script = lay_out("B.2", tmp_path / "work")
    command = [sys.executable, script.name, flag]
    done = subprocess.run(
        command, cwd=script.parent, env=environment(script.parent), capture_output=True, text=True, check=False
    )
    assert (done.returncode, words in done.stderr) == (2, True), done.stderr


def test_the_engine_for_a_gpu_answers_as_the_stand_in_does(tmp_path: Path) -> None:
    _, script = lay_out("B.2", tmp_path / "work")
    done = subprocess.run(
        [sys.executable, "torch_engine.py", "1"],
        input="ledger\nload\nrequest 4 3\n",
        cwd=script.parent, env=environment(script.parent), capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["tokens"] for answer in answers] == [0, 0, 3]
    assert {answer["calls"]["cudaMalloc"] for answer in answers} == {0}, "no GPU was asked for memory"
