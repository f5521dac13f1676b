"""The exercises of module 4 as a learner runs them, with real processes, judged by the checks of their own manifest.

Each healthy run passes every check that a CPU can answer. Each fault, injected into a copy of a file, is found by the check
that is there for it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.parts import needs_module
from tests.system.cli import Learner
from tests.system.exercising import (
    Finished,
    by_command_line,
    check_plots_and_tables,
    environment,
    flags,
    lay_out,
    list_failed_checks,
    list_unanswered,
    needs_torch,
    on_cpu,
    read_finished,
    start,
    wait,
    with_faults,
)

pytestmark = [pytest.mark.system, needs_torch]


# --- 4.1 ---------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Learner]:
    """Somebody with module 4 up, in a folder whose name has a space and quotes in it."""
    learner = Learner(tmp_path_factory.mktemp("benchmark") / 'it\'s my "work" space')
    learner.takes_ports()
    with learner.leaves_nothing():
        learner.types("deploy", "4")
        yield learner


@pytest.mark.slow
def test_the_table_checks_itself_and_a_cpu_is_no_gpu(benchmark: Learner, tmp_path: Path) -> None:
    run, _ = by_command_line(benchmark, "4.1")
    assert list_unanswered(run) == {}
    assert on_cpu(run) == {"agrees"}
    device = {row["spec"]: row["device"] for row in run.metrics["specs"]}
    assert device["float32 peak, derived"] is None
    assert (run.metrics["known"], run.metrics["gpu"]) == (None, None)
    assert run.metrics["ratio_l4_t4_fp16"] == pytest.approx(1.86, abs=0.005)
    assert run.metrics["ratio_l4_t4_bandwidth"] == pytest.approx(0.94, abs=0.005)
    assert "(local mode)" in run.output
    check_plots_and_tables(run, tmp_path)


@pytest.mark.slow
def test_a_sparse_figure_and_a_guess_are_found(tmp_path: Path) -> None:
    sparse = ("gpus.json", '"fp32": 30.3, "tf32": 60, "fp16": 121,', '"fp32": 30.3, "tf32": 60, "fp16": 242,')
    alike = ("gpus.py", "if wanted in map(_normal, gpu.names)", "if any(wanted in _normal(name) for name in gpu.names)")
    run = with_faults("4.1", tmp_path / "work", sparse, alike)
    assert run.code == 0, run.output
    assert list_failed_checks(run) == {"formula", "never-guessed"}


# --- 4.2 ---------------------------------------------------------------------------------------------------------------

SMALL = {"sizes": "48,96", "dtypes": "float32,float64,float16", "sustained_s": "0.1"}


def test_formats_and_sizes_in_a_burst_and_for_a_while(tmp_path: Path) -> None:
    speeds = with_faults("4.2", tmp_path / "work", **SMALL)
    assert speeds.code == 0, speeds.output
    assert list_unanswered(speeds) == {}
    assert on_cpu(speeds) == {"plausible"}
    values = speeds.metrics
    assert [(row["dtype"], row["size"]) for row in values["rows"] if row["aligned"]] == [
        ("float32", 48), ("float32", 96), ("float64", 48), ("float64", 96),
    ]  # fmt: skip
    assert [row["size"] for row in values["rows"] if not row["aligned"]] == [95, 95]
    assert values["skipped"] == [{"dtype": "float16", "reason": "float16 is for GPUs"}]
    assert all(row["peak_tflops"] is None and row["percent_of_peak"] is None for row in values["rows"])
    assert [row["dtype"] for row in values["sustained"]] == ["float32", "float64"]
    kinds = ["long" if word == "for" else "burst" for word in re.findall(r"float\d\d +\d+² +(for|[\d.]+)", speeds.output)]
    assert kinds == 6 * ["burst"] + 2 * ["long"], "a burst is not measured on a device that a long run has heated"
    assert values["best_float32_tflops"] == max(row["tflops"] for row in values["rows"][:2])
    check_plots_and_tables(speeds, tmp_path)


@pytest.mark.slow
def test_formats_and_sizes_by_their_command(benchmark: Learner) -> None:
    run, _ = by_command_line(benchmark, "4.2", **SMALL)
    assert list_unanswered(run) == {}


@pytest.mark.slow
def test_faults_of_a_benchmark_are_found(tmp_path: Path) -> None:
    not_computed = ("matmuls.py", "lambda: torch.mm(x, y, out=out)", "lambda: torch.mm(x, x, out=out)")
    too_fast = (
        "tflops_benchmark.py",
        "    tflops, most = gpus.matmul_tflops(n, median), limit(dtype)",
        "    tflops, most = 1e6, limit(dtype)",
    )
    fewer = ("tflops_benchmark.py", "    for n in [*sizes, sizes[-1] - 1]:", "    for n in [sizes[0], sizes[-1] - 1]:")
    no_long_run = ("tflops_benchmark.py", 'for dtype in dict.fromkeys(row["dtype"] for row in rows) if', "for dtype in () if")
    run = with_faults("4.2", tmp_path / "work", not_computed, too_fast, fewer, no_long_run, **SMALL)
    assert run.code == 0, run.output
    assert list_failed_checks(run) == {"right", "possible", "every-pair", "long-runs"}
    assert run.verdict().verdict == "failed"
    assert all(row["tflops"] is None for row in run.metrics["rows"]), "a refused figure is not shown"


@pytest.mark.slow
def test_a_format_that_was_not_measured_has_no_figure(tmp_path: Path) -> None:
    run = with_faults("4.2", tmp_path / "work", sizes="16", dtypes="float64", sustained_s="0")
    assert run.code == 0, run.output
    assert run.metrics["best_float32_tflops"] is None, "that of another format is none of it"
    assert run.metrics["summary"][0]["best_tflops"] > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("word", "code", "said"),
    [
        ("--sizes=many", 2, "whole numbers with commas"),
        ("--sizes=8", 2, "16 to 32768"),
        ("--dtypes=fp16", 2, "fp16 is not one of"),
        ("--dtypes=float16,tf32", 1, "nothing was measured: cpu multiplies none of float16,tf32"),
    ],
)
def test_what_cannot_be_measured_is_refused_with_a_sentence(word: str, code: int, said: str, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    _, script = lay_out("4.2", folder)
    process = start([sys.executable, script.name, word], folder, environment(folder))
    output = wait(process)
    assert process.returncode == code
    assert said in output
    assert "Traceback" not in output


# --- 4.3 ---------------------------------------------------------------------------------------------------------------

FEW = {"batch_sizes": "1,3", "input_len": "8", "output_len": "6", "repeats": "2"}
needs_transformers = needs_module("transformers")


@pytest.fixture(scope="module")
def typed_throughput(benchmark: Learner) -> tuple[Finished, Path]:
    return by_command_line(benchmark, "4.3", **FEW)


@needs_transformers
@pytest.mark.slow
def test_throughput_by_batch_size(typed_throughput: tuple[Finished, Path], tmp_path: Path) -> None:
    throughput, _ = typed_throughput
    assert list_unanswered(throughput) == {}
    assert on_cpu(throughput) == {"batching-pays", "best-is-clear"}
    values = throughput.metrics
    assert [(row["batch"], row["requests"]) for row in values["rows"]] == [(1, 2), (3, 6)]
    for row in values["rows"]:
        assert row["low_tok_per_s"] <= row["output_tok_per_s"] <= row["high_tok_per_s"] < row["ceiling_tok_per_s"]
        assert row["total_tok_per_s"] == pytest.approx(row["output_tok_per_s"] * (8 + 6) / 6)
        assert row["cache_mib"] == row["batch"] * 14 * 2 * 4 * 4 * 64 * 4 / 2**20
    assert values["best_tok_per_s"] >= 0.9 * values["most_tok_per_s"]
    assert values["prompts_sent"] == 3 + (1 + 3) * 3
    assert (values["simulated"] is None, values["gpu"]) == (False, None)
    check_plots_and_tables(throughput, tmp_path)


@pytest.mark.slow
@needs_transformers
def test_a_run_of_4_3_travels_along_to_4_4(benchmark: Learner, typed_throughput: tuple[Finished, Path], tmp_path: Path) -> None:
    throughput, home = typed_throughput
    cost, _ = by_command_line(benchmark, "4.4")
    assert list_unanswered(cost) == {}
    assert on_cpu(cost) == {"measured"}
    assert [run_row["run"] for run_row in cost.metrics["measured"]] == [home.name], "the run of 4.3 travelled along"
    assert cost.metrics["reference_tok_per_s"] == throughput.metrics["best_tok_per_s"]
    assert [row["from"] for row in cost.metrics["rows"] if row["tok_per_s"]] == ["what if"], "a CPU is no T4"
    check_plots_and_tables(cost, tmp_path)


@pytest.mark.slow
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
    assert list_failed_checks(run) >= {"nothing-kept", "possible", "equal-work"}
    assert all(row["output_tok_per_s"] is None for row in run.metrics["rows"]), "a refused figure is not shown"
    assert "refused: 3 at a time" in run.output


@pytest.mark.slow
def test_lengths_beyond_the_model_are_refused_with_a_sentence(tmp_path: Path) -> None:
    run = with_faults("4.3", tmp_path / "work", input_len="1000", output_len="100")
    assert run.code == 2
    assert "together at most 1024, the longest of tiny" in run.output
    assert "Traceback" not in run.output


# --- 4.4 ---------------------------------------------------------------------------------------------------------------


def leave_a_run_of_4_3(folder: Path, number: int, device: str, model: str, speed: float) -> None:
    """What a run of 4.3 would have left; made up, to test the reckoning."""
    metrics = {"device": device, "model": model, "engine": "vllm", "best_batch": 8, "best_tok_per_s": speed,
             "best_total_tok_per_s": 2 * speed, "best_power_w": 68.0}  # fmt: skip
    (folder / f"earlier-4.3-2026010{number}-000000-otter.json").write_text(json.dumps(metrics), encoding="utf-8")


def run_cost_analysis(folder: Path, *changes: tuple[str, str, str], left: bool = True, **settings: str) -> Finished:
    """4.4, with runs of 4.3 on a T4 and on an L4 beside it."""
    exercise, script = lay_out("4.4", folder)
    for name, old, new in changes:
        text = (folder / name).read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {name}"
        (folder / name).write_text(text.replace(old, new), encoding="utf-8")
    if left:
        leave_a_run_of_4_3(folder, 1, "NVIDIA L4", "gpt2", 4000.0)
        leave_a_run_of_4_3(folder, 2, "Tesla T4", "gpt2", 2000.0)
        leave_a_run_of_4_3(folder, 3, "NVIDIA L4", "opt-1.3b", 900.0)
    process = start([sys.executable, script.name, *flags(exercise, **settings)], folder, environment(folder))
    output = wait(process)
    return read_finished(exercise, process.returncode, output, folder, 1)


def test_costs_of_what_was_measured_and_of_nothing_else(tmp_path: Path) -> None:
    run = run_cost_analysis(tmp_path / "work", model="gpt2")
    assert run.code == 0, run.output
    assert list_unanswered(run) == {}
    rows = {row["instance"]: row for row in run.metrics["rows"]}
    t4, l4 = rows["g4dn.xlarge"], rows["g6.xlarge"]
    assert (t4["from"], l4["from"]) == ("run 20260102-000000-otter", "run 20260101-000000-otter"), (
        "one model, not the newest run"
    )
    assert t4["usd_per_million"] == pytest.approx(0.526 / (2000 * 3600) * 1e6)
    assert l4["usd_per_million"] == pytest.approx(0.8048 / (4000 * 3600) * 1e6)
    assert l4["spot_usd_per_million"] == pytest.approx(0.347 / (4000 * 3600) * 1e6)
    assert t4["usd_per_million_utilised"] == pytest.approx(2.5 * t4["usd_per_million"])
    assert t4["usd_per_million_total"] == pytest.approx(t4["usd_per_million"] / 2)
    assert rows["g5.xlarge"]["usd_per_million"] is None, "nobody measured an A10G"
    assert run.metrics["cheapest_measured"] == "g6.xlarge"
    assert "2026-07-20" in run.output, "the day on which the prices were read"
    check_plots_and_tables(run, tmp_path)


@pytest.mark.slow
def test_the_newest_model_where_nobody_says_which(tmp_path: Path) -> None:
    run = run_cost_analysis(tmp_path / "work", tok_per_s="200")
    assert run.code == 0, run.output
    rows = {row["instance"]: row for row in run.metrics["rows"]}
    assert run.metrics["model"] == "opt-1.3b"
    assert (rows["g4dn.xlarge"]["from"], rows["g4dn.xlarge"]["usd_per_million"]) == ("what if", pytest.approx(0.7306, abs=5e-5))
    assert rows["g6.xlarge"]["tok_per_s"] == 900.0


@pytest.mark.slow
def test_without_a_measurement_nothing_is_reckoned(tmp_path: Path) -> None:
    run = run_cost_analysis(tmp_path / "work", left=False)
    assert run.code == 1
    assert "run 4.3 first" in run.output
    assert "Traceback" not in run.output


@pytest.mark.slow
def test_faults_of_a_reckoning_are_found(tmp_path: Path) -> None:
    minutes = ("costs.py", "tok_per_s * 3600 * util", "tok_per_s * 60 * util")
    others = ("cost_analysis.py", 'if run["gpu"] == gpu), None)', 'if run["gpu"] in (gpu, "T4")), None)')
    borrowed = (
        "cost_analysis.py",
        'and throughput(row["gpu"]) is None for',
        'and row["gpu"] not in {each["gpu"] for each in of_model} for',
    )
    squared = ("costs.py", "    return price / other\n", "    return price**2 / other\n")
    run = run_cost_analysis(tmp_path / "work", minutes, others, borrowed, squared, model="gpt2")
    assert run.code == 0, run.output
    assert list_failed_checks(run) == {"formula", "price-ratio", "nothing-invented"}
