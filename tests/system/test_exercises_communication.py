"""3.3 as a learner runs it: real ranks, real collectives; its checks pass, and each injected fault is found by its check."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gpucourse.figures.plots import draw
from gpucourse.ui.loglines import leave_out_tables
from tests.system.exercising import (
    Finished,
    environment,
    lay_out,
    needs_torch,
    run_ranks,
    run_with_changes,
    start,
    wait,
    words,
)

pytestmark = [pytest.mark.system, needs_torch]

SMALL = {"max_bytes": "65536", "factor": "8"}
COLLECTIVES = ["AllReduce", "Broadcast", "AllGather", "ReduceScatter"]


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return run_ranks("3.3", 2, tmp_path_factory.mktemp("profile") / "a node's work", **SMALL)


@pytest.mark.slow
def test_on_two_ranks_it_passes_every_check_that_a_cpu_can_make(profile: Finished) -> None:
    assert profile.code == 0, profile.output
    assert words(profile.verdict()) == {"plateau": "not_measured: not measured: needs a GPU"}
    assert profile.verdict().verdict == "passed"
    assert (profile.metrics["schema"], profile.metrics["backend"]) == ("communication_profile/1", "gloo")


@pytest.mark.slow
def test_every_collective_at_every_size_with_both_bandwidths(profile: Finished) -> None:
    sweep = profile.metrics["sweep"]
    assert [(row["collective"], row["bytes"]) for row in sweep] == [(c, b) for c in COLLECTIVES for b in (1024, 8192, 65536)]
    factors = {"AllReduce": 1.0, "Broadcast": 1.0, "AllGather": 0.5, "ReduceScatter": 0.5}
    for row in sweep:
        assert row["algbw_gb_per_s"] == pytest.approx(row["bytes"] / row["median_us"] / 1e3)
        assert row["busbw_gb_per_s"] == pytest.approx(row["algbw_gb_per_s"] * factors[row["collective"]])
        assert 0 < row["median_us"] <= row["p99_us"]
        assert row["samples"] >= 20
        assert row["link_gb_per_s"] is None


@pytest.mark.slow
def test_log_on_the_screen_has_one_line_for_each_collective(profile: Finished) -> None:
    lines = [(0.0, line.encode()) for line in profile.output.splitlines()]
    shown = [line.decode() for _, line in leave_out_tables(lines)]
    assert [line.split(":")[0] for line in shown if "GB/s on the bus" in line] == COLLECTIVES
    assert not any("1,024" in line for line in shown)
    assert sum(" 1,024 " in f" {line} " for line in profile.output.splitlines()) == len(COLLECTIVES)


@pytest.mark.slow
def test_the_summary_says_latency_asymptote_and_plateau_of_each(profile: Finished) -> None:
    assert [row["collective"] for row in profile.metrics["summary"]] == COLLECTIVES
    for row in profile.metrics["summary"]:
        assert row["plateau"].startswith(("from ", "not reached: still rising"))
        assert (row["plateau_bytes"] is None) == row["plateau"].startswith("not")
        assert row["latency_us"] is None or row["latency_us"] > 0
        assert row["percent_of_link"] is None


@pytest.mark.slow
def test_what_it_measured_can_be_drawn_and_tabled(profile: Finished, tmp_path: Path) -> None:
    for plot in profile.exercise.plots:
        assert len(draw(plot, profile.metrics, subtitle="test", folder=tmp_path)) == 2
    shown = (tmp_path / "bandwidth.svg").read_text(encoding="utf-8")
    assert "busbw: ReduceScatter" in shown
    assert "theoretical link" not in shown, "a loopback has none"
    for table in profile.exercise.tables[:2]:
        rows = profile.metrics[table.rows.removeprefix("metrics.")]
        assert all(column.key in row for row in rows for column in table.columns)
    assert profile.metrics["beside_all_reduce_perf"] == []
    assert profile.metrics["all_reduce_perf_not_run"]


@pytest.mark.slow
def test_three_ranks_and_sizes_that_do_not_divide(tmp_path: Path) -> None:
    run = run_ranks("3.3", 3, tmp_path / "work", min_bytes="4", max_bytes="400", factor="10", link_gbps="1e-5")
    assert run.code == 0, run.output
    sizes = {row["bytes"] for row in run.metrics["sweep"]}
    assert sizes == {12, 36, 396}, "whole float32 elements, as many for each rank"
    assert sum(row["wrong"] for row in run.metrics["sweep"]) == 0
    assert words(run.verdict())["below-the-link"].startswith("failed: "), "nothing is faster than its link"
    plot = run.exercise.plots[0]
    draw(plot, run.metrics, subtitle="test", folder=tmp_path)
    assert "theoretical link" in (tmp_path / "bandwidth.svg").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_collective_with_a_wrong_value_is_found(tmp_path: Path) -> None:
    """Another root; an AllReduce of an AllReduce; parts in another order; each rank keeps a part that is not quite its own."""
    changes = [
        ("dist.broadcast(brought, src=0)", "dist.broadcast(brought, src=1)"),
        (
            "lambda: dist.all_reduce(brought), brought, brought, total",
            "lambda: (dist.all_reduce(brought), dist.all_reduce(brought)), brought, brought, total",
        ),
        ("gather(every, mine)", "gather(every, mine.flip(0))"),
        ("scatter(kept, brought)", "scatter(kept, brought.roll(1))"),
    ]
    run = run_with_changes("3.3", tmp_path / "work", *changes, max_bytes="1024")
    assert run.code == 0, run.output
    assert [row["wrong"] > 0 for row in run.metrics["sweep"]] == [True] * 4
    assert run.check("values-right").verdict == "failed"
    assert run.verdict().verdict == "failed"


@pytest.mark.slow
def test_a_backend_without_reduce_scatter_is_named_and_measured(tmp_path: Path) -> None:
    missing = "def scatter(*_):\n    raise RuntimeError('ProcessGroupGloo does not support reduce_scatter')"
    old = 'scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor'
    run = run_with_changes("3.3", tmp_path / "work", (old, missing), collective="reduce_scatter", max_bytes="65536", factor="8")
    assert run.code == 0, run.output
    assert "no ReduceScatter here (ProcessGroupGloo does not support reduce_scatter)" in run.output
    assert {row["via"] for row in run.metrics["sweep"]} == {"all_reduce"}
    assert run.check("values-right").verdict == "passed"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flag", "code", "sentence"),
    [
        ("--collective=all", 1, "one rank has nobody to talk to"),
        ("--min-bytes=3", 2, "error:"),
    ],
)
def test_alone_or_with_a_wrong_flag_it_says_so(flag: str, code: int, sentence: str, tmp_path: Path) -> None:
    _, script = lay_out("3.3", tmp_path / "work")
    process = start([sys.executable, str(script), flag], tmp_path, environment(tmp_path))
    output = wait(process)
    assert (process.returncode, sentence in output, "Traceback" in output) == (code, True, False), output
