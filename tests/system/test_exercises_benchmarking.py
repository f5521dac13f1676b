"""The exercises of module 4 as a learner runs them, with real processes, judged by the checks of their own manifest.

Each healthy run passes every check that a CPU can answer. Each fault, planted into a copy of a file, is found by the check
that is there for it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.system.exercising import Finished, failed, needs_torch, on_cpu, told, unanswered, with_faults

pytestmark = [pytest.mark.system, needs_torch]


# --- 4.1 ---------------------------------------------------------------------------------------------------------------


def test_the_table_checks_itself_and_a_cpu_is_no_gpu(tmp_path: Path) -> None:
    run = with_faults("4.1", tmp_path / "work")
    assert run.code == 0, run.output
    assert unanswered(run) == {}
    assert on_cpu(run) == {"agrees"}
    device = {row["spec"]: row["device"] for row in run.metrics["specs"]}
    assert device["float32 peak, derived"] is None
    assert (run.metrics["known"], run.metrics["gpu"]) == (None, None)
    assert run.metrics["ratio_l4_t4_fp16"] == pytest.approx(1.86, abs=0.005)
    assert run.metrics["ratio_l4_t4_bandwidth"] == pytest.approx(0.94, abs=0.005)
    assert "(local mode)" in run.output
    told(run, tmp_path)


def test_a_sparse_figure_and_a_guess_are_found(tmp_path: Path) -> None:
    sparse = ("gpus.json", '"fp32": 30.3, "tf32": 60, "fp16": 121,', '"fp32": 30.3, "tf32": 60, "fp16": 242,')
    alike = ("gpus.py", "if wanted in map(_normal, gpu.names)", "if any(wanted in _normal(name) for name in gpu.names)")
    run = with_faults("4.1", tmp_path / "work", sparse, alike)
    assert run.code == 0, run.output
    assert failed(run) == {"formula", "never-guessed"}


# --- 4.2 ---------------------------------------------------------------------------------------------------------------

SMALL = {"sizes": "48,96", "dtypes": "float32,float64,float16", "sustained_s": "0.1"}


@pytest.fixture(scope="module")
def speeds(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return with_faults("4.2", tmp_path_factory.mktemp("speeds") / "a node's work", **SMALL)


def test_formats_and_sizes_in_a_burst_and_for_a_while(speeds: Finished, tmp_path: Path) -> None:
    assert speeds.code == 0, speeds.output
    assert unanswered(speeds) == {}
    assert on_cpu(speeds) == {"plausible"}
    found = speeds.metrics
    assert [(row["dtype"], row["size"]) for row in found["rows"] if row["aligned"]] == [
        ("float32", 48), ("float32", 96), ("float64", 48), ("float64", 96),
    ]  # fmt: skip
    assert [row["size"] for row in found["rows"] if not row["aligned"]] == [95, 95]
    assert found["skipped"] == [{"dtype": "float16", "reason": "float16 is for GPUs"}]
    assert all(row["peak_tflops"] is None and row["percent_of_peak"] is None for row in found["rows"])
    assert [row["dtype"] for row in found["sustained"]] == ["float32", "float64"]
    assert found["best_float32_tflops"] == max(row["tflops"] for row in found["rows"][:2])
    told(speeds, tmp_path)


def test_faults_of_a_benchmark_are_found(tmp_path: Path) -> None:
    not_computed = ("matmuls.py", "lambda: torch.mm(x, y, out=out)", "lambda: torch.mm(x, x, out=out)")
    too_fast = (
        "tflops_benchmark.py",
        "    tflops, most = gpus.matmul_tflops(n, median), limit(dtype)",
        "    tflops, most = 1e6, limit(dtype)",
    )
    fewer = ("tflops_benchmark.py", "    for n in [*sizes, sizes[-1] - 1]:", "    for n in [sizes[0], sizes[-1] - 1]:")
    run = with_faults("4.2", tmp_path / "work", not_computed, too_fast, fewer, **SMALL)
    assert run.code == 0, run.output
    assert failed(run) == {"right", "possible", "every-pair", "long-runs"}
    assert run.verdict().verdict == "failed"
    assert all(row["tflops"] is None for row in run.metrics["rows"]), "a refused figure is not shown"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"sizes": "many"}, "whole numbers with commas"),
        ({"sizes": "8"}, "16 to 32768"),
        ({"dtypes": "fp16"}, "fp16 is none of"),
    ],
)
def test_what_cannot_be_measured_is_refused_with_a_sentence(settings: dict[str, str], said: str, tmp_path: Path) -> None:
    run = with_faults("4.2", tmp_path / "work", **settings)
    assert run.code == 2
    assert said in run.output
    assert "Traceback" not in run.output
