"""The exercises of module 4 as a learner runs them, with real processes, judged by the checks of their own manifest.

Each healthy run passes every check that a CPU can answer. Each fault, planted into a copy of a file, is found by the check
that is there for it.
"""

from __future__ import annotations

import importlib.util
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


# --- 4.3 ---------------------------------------------------------------------------------------------------------------

FEW = {"batch_sizes": "1,3", "input_len": "8", "output_len": "6", "repeats": "2"}
needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
)


@pytest.fixture(scope="module")
def throughput(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return with_faults("4.3", tmp_path_factory.mktemp("throughput") / "a node's work", **FEW)


@needs_transformers
def test_throughput_by_batch_size(throughput: Finished, tmp_path: Path) -> None:
    assert throughput.code == 0, throughput.output
    assert unanswered(throughput) == {}
    assert on_cpu(throughput) == {"batching-pays"}
    found = throughput.metrics
    assert [(row["batch"], row["requests"]) for row in found["rows"]] == [(1, 2), (3, 6)]
    for row in found["rows"]:
        assert row["low_tok_per_s"] <= row["output_tok_per_s"] <= row["high_tok_per_s"] < row["ceiling_tok_per_s"]
        assert row["total_tok_per_s"] == pytest.approx(row["output_tok_per_s"] * (8 + 6) / 6)
        assert row["cache_mib"] == row["batch"] * 14 * 2 * 4 * 4 * 64 * 4 / 2**20
    assert found["best_tok_per_s"] >= 0.9 * found["most_tok_per_s"]
    assert found["prompts_sent"] == 3 + (1 + 3) * 3
    assert (found["simulated"] is None, found["gpu"]) == (False, None)
    told(throughput, tmp_path)


@needs_transformers
def test_faults_of_a_throughput_are_found(tmp_path: Path) -> None:
    twice = (
        "inference_throughput.py",
        "    asked.update(map(tuple, made))\n",
        "    made = [[5] * args.input_len] * count\n    asked.update(map(tuple, made))\n",
    )
    too_many = (
        "inference_throughput.py",
        "sum(answer.tokens for answer in answered) / wall",
        "sum(1e4 * answer.tokens for answer in answered) / wall",
    )
    stops = ("completions.py", '"max_tokens": max_tokens,', '"max_tokens": max(1, max_tokens - 2),')
    run = with_faults("4.3", tmp_path / "work", twice, too_many, stops, **FEW)
    assert run.code == 0, run.output
    assert failed(run) >= {"nothing-kept", "possible", "equal-work"}
    assert all(row["output_tok_per_s"] is None for row in run.metrics["rows"]), "a refused figure is not shown"
    assert "refused: 3 at a time" in run.output


def test_lengths_beyond_the_model_are_refused_with_a_sentence(tmp_path: Path) -> None:
    run = with_faults("4.3", tmp_path / "work", input_len="1000", output_len="100")
    assert run.code == 2
    assert "together at most 1024, the longest of tiny" in run.output
    assert "Traceback" not in run.output
