"""`python -m benchmarks gpu`, on a GPU that is played by the processor (tests/fake_gpu)."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import gpu
from benchmarks.gpu_cases import CASES, SOLUTION, Case, Figure, figures
from benchmarks.gpu_record import for_plots
from gpucourse.course.gpu_record import FOLDER, FORMAT, find_recorded_plots
from gpucourse.grading.checks import evaluate
from tests.course import CATALOG, FOLDERS
from tests.system.exercising import FAKE_GPU, needs_torch
from tests.waiting import STUCK_S

pytestmark = [pytest.mark.system, needs_torch]

LONG_S = 250.0  # on a busy machine
PRODUCTS = Case("1.1", {"small": "32", "size": "128", "repeats": "2"}, limit_s=LONG_S)
ONE_PROCESS = Case("0.3", {"nnodes": "1", "nproc_per_node": "1"}, limit_s=LONG_S)
FORMATS = Case("4.2", {"sizes": "64,128", "dtypes": "bfloat16", "sustained_s": "0.1"}, limit_s=LONG_S)


def test_every_exercise_has_its_case_and_those_with_a_solution_run_it(tmp_path: Path) -> None:
    assert {case.exercise for case in CASES} == {exercise.id for module in CATALOG.modules for exercise in module.exercises}
    for number, case in enumerate(case for case in CASES if case.note.startswith(SOLUTION)):
        module, exercise = CATALOG.exercise(case.exercise)
        folder = tmp_path / str(number)
        gpu.lay_out(case, exercise, folder)
        solutions = FOLDERS.exercises / CATALOG.folder_name(module) / "solutions"
        assert exercise.yours
        assert all((folder / part.file).read_text() == (solutions / part.file).read_text() for part in exercise.yours)


@pytest.mark.slow
def test_figures_of_a_gpu_are_shown_with_their_ceilings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(FAKE_GPU))
    cases = [PRODUCTS, FORMATS, Case("3.3", gpus=2), ONE_PROCESS]
    assert gpu.prove([], cases=cases, recorded=tmp_path / FOLDER, sides=(64,)) == 1, "0.3 computed on processors"
    output = capsys.readouterr().out
    assert "product of 128 " in output
    assert "% of 67,000)" in output, "the float32 peak of an H100, in GFLOP/s"
    assert "% of 989)" in output, "and that of bf16, in TFLOP/s"
    assert "needs 2 GPUs, and there is 1" in output
    assert "not measured: it did not use the GPU" in output
    assert "of it (promise: 0.98)" in output
    record = json.loads((tmp_path / FOLDER / "nvidia-h100-80gb-hbm3.json").read_text(encoding="utf-8"))
    assert (record["format"], record["gpu"], record["gpus"]) == (FORMAT, "NVIDIA H100 80GB HBM3", 1)
    assert set(record["versions"]) == {"torch", "cuda", "driver", "transformers", "python"}
    assert set(record["exercises"]) == {"1.1", "4.2"}
    assert record["exercises"]["1.1"]["settings"]["size"] == 128
    assert record["exercises"]["1.1"]["checks"]["right"] == "passed"
    assert record["ceilings"]["shapes"] == 1
    for exercise in (CATALOG.exercise("1.1")[1], CATALOG.exercise("4.2")[1]):
        warnings: list[str] = []
        plots = find_recorded_plots(tmp_path, exercise, warnings.append)
        assert plots.keys() == {plot.file for plot in exercise.plots}
        assert not warnings


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone ends a process with its parent")
def test_a_case_ends_when_the_proof_is_killed(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    child = f"import os, time; file = open({str(fifo)!r}, 'w'); print(os.getpid(), file=file, flush=True); time.sleep(600)"
    words = [sys.executable, "-c", child]
    start = f"import os, pathlib; from benchmarks import gpu; gpu._process({words!r}, pathlib.Path('.'), os.environ, 600)"
    with subprocess.Popen([sys.executable, "-c", start], cwd=gpu.ROOT) as proof:
        assert select.select([reader], [], [], STUCK_S)[0]
        pid = int(os.read(reader, 20))
        proof.kill()
    is_over = bool(select.select([reader], [], [], STUCK_S)[0])
    if not is_over:
        os.kill(pid, signal.SIGKILL)
    os.close(reader)
    assert is_over, "the child has closed the pipe"


def test_a_figure_above_its_ceiling_is_a_fault() -> None:
    (figure,) = figures("1.2", {"tok_per_s": 200.0, "ceiling_tok_per_s": 122.0}, {})
    assert not figure.possible
    assert "ABOVE the ceiling" in figure.text
    assert Figure("copies", 3000.0, "GB/s", 3350.0).text == "copies 3,000 GB/s (90% of 3,350)"
    assert Figure("copies", 3000.0, "GB/s").possible, "nothing is known of this GPU"


def test_the_record_has_what_plots_draw_and_no_more() -> None:
    row = {"size": 128, "speedup": 1.23456789, "speedup_with_copies": 1.0, "first_call_ms": 2.0, "error": 1e-9}
    record = for_plots(CATALOG.exercise("1.1")[1], {"speedups": [row], "rows": [row], "seed": 0})
    assert record.keys() == {"times", "speedup"}
    assert record["times"]["rows"] == [{"first_call_ms": 2.0, "size": 128}]
    assert record["speedup"]["rows"] == [{"size": 128, "speedup": 1.23457, "speedup_with_copies": 1.0}]


@pytest.mark.parametrize(("exercise", "check"), [("3.2", "scaling"), ("3.4", "speed-up")])
def test_one_gpu_has_nothing_to_be_compared_with(exercise: str, check: str) -> None:
    metrics: dict[str, Any] = {"cuda": "13.0", "weak_efficiency_percent": None, "least_efficiency_percent": 90.0}
    metrics["strong_speedup"] = None
    plan = {"world_size": 1, "nodes": 1}
    verdict = evaluate(CATALOG.exercise(exercise)[1], metrics, plan, {"state": "succeeded"}, mode="aws")
    result = next(candidate for candidate in verdict.checks if candidate.id == check)
    assert result.verdict == "not_measured"
    assert f"run {exercise} --nodes 2" in result.observed


@pytest.mark.parametrize(("efficiency", "verdict"), [(35.0, "passed"), (20.0, "failed")])
def test_a_slow_link_sets_the_bound_of_the_efficiency(efficiency: float, verdict: str) -> None:
    """Judge 3.26 MB of gradients over 10 Gbit/s for each millisecond of computing: half of each GPU's time is lost."""
    metrics: dict[str, Any] = {
        "weak_efficiency_percent": efficiency,
        "least_efficiency_percent": 100 * 1.0 / (1.1 * (1.1 + 2.7)),
    }
    plan = {"world_size": 2, "nodes": 2}
    result = evaluate(CATALOG.exercise("3.2")[1], metrics | {"cuda": "13.0"}, plan, {"state": "succeeded"}, mode="aws")
    assert next(check for check in result.checks if check.id == "scaling").verdict == verdict
