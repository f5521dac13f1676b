"""The exercises of module 4 as a learner runs them, with real processes, judged by the checks of their own manifest."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.parts import needs_module
from tests.system.exercising import check_healthy, list_earlier_throughputs, needs_torch, run_exercise

pytestmark = [pytest.mark.system, needs_torch]


def test_the_table_of_gpus_checks_itself_and_a_cpu_is_no_gpu(tmp_path: Path) -> None:
    run = run_exercise("4.1", tmp_path / "work")
    check_healthy(run, tmp_path, open_checks={"sheets-judged"})
    device = {row["spec"]: row["device"] for row in run.metrics["specs"]}
    assert (device["float32 peak, derived"], run.metrics["known"], run.metrics["gpu"]) == (None, None, None)
    assert run.metrics["ratio_l4_t4_fp16"] == pytest.approx(1.86, abs=0.005)
    assert run.metrics["ratio_l4_t4_bandwidth"] == pytest.approx(0.94, abs=0.005)


def test_formats_and_sizes_are_measured_in_a_burst_and_for_a_while(tmp_path: Path) -> None:
    run = run_exercise("4.2", tmp_path / "work", sizes="48,96", dtypes="float32,float64,float16", sustained_s="0.1")
    check_healthy(run, tmp_path, open_checks={"rates-possible"})
    values = run.metrics
    assert [(row["dtype"], row["size"]) for row in values["rows"] if row["aligned"]] == [
        ("float32", 48), ("float32", 96), ("float64", 48), ("float64", 96),
    ]  # fmt: skip
    assert [row["size"] for row in values["rows"] if not row["aligned"]] == [95, 95]
    assert values["skipped"] == [{"dtype": "float16", "reason": "float16 is for GPUs"}]
    assert all(row["peak_tflops"] is None and row["percent_of_peak"] is None for row in values["rows"])
    assert values["best_float32_tflops"] == max(row["tflops"] for row in values["rows"][:2])
    kinds = ["long" if word == "for" else "burst" for word in re.findall(r"float\d\d +\d+² +(for|[\d.]+)", run.output)]
    assert kinds == 6 * ["burst"] + 2 * ["long"], "a burst is not measured on a device that a long run has heated"
    published = {"gpu": "T4", "slowest": 24, "fastest": 42.7, "peak": 65}
    assert published in values["published"], "somebody else's runs, for there is no GPU"


@pytest.mark.slow
@needs_module("transformers")
def test_throughput_is_measured_by_batch_size(tmp_path: Path) -> None:
    run = run_exercise("4.3", tmp_path / "work", batch_sizes="1,3", input_len="8", output_len="6", repeats="2")
    check_healthy(run, tmp_path, open_checks={"figures-right"})
    values = run.metrics
    assert [(row["batch"], row["requests"]) for row in values["rows"]] == [(1, 2), (3, 6)]
    for row in values["rows"]:
        assert row["low_tok_per_s"] <= row["output_tok_per_s"] <= row["high_tok_per_s"] < row["ceiling_tok_per_s"]
        assert row["total_tok_per_s"] == pytest.approx(row["output_tok_per_s"] * (8 + 6) / 6)
        assert row["cache_mib"] == row["batch"] * 14 * 2 * 4 * 4 * 64 * 4 / 2**20
    assert values["prompts_sent"] == 3 + (1 + 3) * 3


def test_costs_are_computed_only_from_measurements(tmp_path: Path) -> None:
    run = run_exercise("4.4", tmp_path / "work", files=list_earlier_throughputs(), model="gpt2")
    check_healthy(run, tmp_path, open_checks={"plan-serves", "plan-cheapest"})
    rows = {row["instance"]: row for row in run.metrics["rows"]}
    t4, l4 = rows["g4dn.xlarge"], rows["g6.xlarge"]
    assert t4["from"] == "run 20260102-000000-otter"
    assert l4["from"] == "run 20260101-000000-otter", "one model, not the newest run"
    assert t4["usd_per_million"] == pytest.approx(0.526 / (2000 * 3600) * 1e6)
    assert l4["usd_per_million"] == pytest.approx(0.8048 / (4000 * 3600) * 1e6)
    assert l4["spot_usd_per_million"] == pytest.approx(0.347 / (4000 * 3600) * 1e6)
    assert t4["usd_per_million_utilised"] == pytest.approx(2.5 * t4["usd_per_million"])
    assert t4["usd_per_million_total"] == pytest.approx(t4["usd_per_million"] / 2)
    assert rows["g5.xlarge"]["usd_per_million"] is None, "nobody measured an A10G"
    assert run.metrics["cheapest_measured"] == "g6.xlarge"
    assert "2026-07-20" in run.output, "the day on which the prices were read"
    assert [row["plan"] for row in run.metrics["day"]] == ["peak all day, on demand", "by the hour, on demand"]


SOLVED = {
    "4.1": {}, "4.2": {"sizes": "48,96", "dtypes": "float32", "sustained_s": "0.1"},
    "4.3": {"batch_sizes": "1,3", "input_len": "8", "output_len": "6", "repeats": "2"},
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("exercise", SOLVED)
def test_a_solved_benchmark_shows_and_checks_what_the_learner_wrote(exercise: str, tmp_path: Path) -> None:
    run = run_exercise(exercise, tmp_path / "work", solved=True, **SOLVED[exercise])
    check_healthy(run, tmp_path)
    assert "yours" in run.output


def test_a_day_costs_less_with_a_right_plan(tmp_path: Path) -> None:
    run = run_exercise("4.4", tmp_path / "work", solved=True, tok_per_s="200")
    check_healthy(run, tmp_path)
    costs = {row["plan"]: row["usd_per_day"] for row in run.metrics["day"]}
    assert costs["yours"] < costs["by the hour, on demand"] < costs["peak all day, on demand"]


def test_nothing_is_computed_without_a_measurement(tmp_path: Path) -> None:
    run = run_exercise("4.4", tmp_path / "work")
    assert (run.code, "run 4.3 first" in run.output, "Traceback" in run.output) == (1, True, False)
    assert "peak all day, on demand" in run.output, "the day needs no measurement"
