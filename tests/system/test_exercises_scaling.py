"""3.7 and 3.8 as a learner runs them: groups of workers, compressed gradients; each injected fault is found by its check."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.system.exercising import Finished, check_plots_and_tables, needs_torch, run_ranks, run_with_changes, words

pytestmark = [pytest.mark.system, needs_torch]

SMALL_HOOKS = {"hidden": "64", "batch_size": "32", "steps": "20"}
SMALL_SCALING = {"hidden": "32", "batch_size": "24", "steps": "5", "depth": "1"}


@pytest.fixture(scope="module")
def curve(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return run_ranks("3.7", 4, tmp_path_factory.mktemp("curve") / "a node's work")


@pytest.mark.slow
def test_the_curve_passes_every_cpu_check_with_local_defaults(curve: Finished) -> None:
    assert curve.code == 0, curve.output
    reason = "not_measured: not measured: needs a GPU"
    assert words(curve.verdict()) == {"weak-efficiency": reason, "steady-baseline": reason}
    assert curve.verdict().verdict == "passed"
    assert (curve.metrics["schema"], curve.metrics["backend"]) == ("scaling_efficiency/1", "gloo")


@pytest.mark.slow
def test_the_curve_holds_its_own_formulas(curve: Finished) -> None:
    rows = curve.metrics["scaling"]
    assert [(row["mode"], row["workers"], row["batch_per_worker"]) for row in rows] == [
        *(("weak", n, 128) for n in (1, 2, 4)),
        *(("strong", n, 128 // n) for n in (1, 2, 4)),
    ]
    for row in rows:
        rate = row["workers"] * row["batch_per_worker"] / row["median_ms"] * 1e3
        assert row["samples_per_s"] == pytest.approx(rate)
        assert row["speedup"] == pytest.approx(rate / rows[0]["samples_per_s"])
        assert row["efficiency_percent"] == pytest.approx(100 * row["speedup"] / row["workers"])
        assert row["efficiency_low_percent"] <= row["efficiency_percent"] <= row["efficiency_high_percent"]
        if row["workers"] > 1:
            parts = row["ideal_ms"] + row["slower_computing_ms"] + row["communication_ms"]
            assert parts == pytest.approx(row["median_ms"])
            assert row["ideal_ms"] == pytest.approx(rows[0]["median_ms"] * row["batch_per_worker"] / 128)
    assert curve.metrics["strong_efficiency_percent"] == rows[-1]["efficiency_percent"]
    assert rows[0]["median_ms"] == rows[3]["median_ms"], "one worker is one worker"


@pytest.mark.slow
def test_only_the_workers_of_a_group_speak(curve: Finished) -> None:
    assert curve.output.count("2 workers, weak:") == 2
    assert curve.output.count("4 workers, strong:") == 4


@pytest.mark.slow
def test_what_was_measured_can_be_drawn_and_tabled(curve: Finished, tmp_path: Path) -> None:
    check_plots_and_tables(curve, tmp_path, with_gaps=True)


@pytest.mark.slow
def test_workers_that_train_apart_or_less_show_even_with_fewer_ranks(
    tmp_path: Path,
) -> None:
    changes = [
        ("group = dist.new_group(range(n)) if n > 1 else None", "group = [dist.new_group([r]) for r in range(size)][rank]"),
        ("trained += len(y)", "trained += len(y) - rank"),
    ]
    run = run_with_changes("3.7", tmp_path / "work", *changes, **SMALL_SCALING)
    assert run.code == 0, run.output
    assert run.metrics["counts"] == [1, 2]
    failed = {check.id for check in run.verdict().checks if check.verdict == "failed"}
    assert failed == {"gradients-right", "one-model", "no-sample-missing"}


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return run_ranks("3.8", 2, tmp_path_factory.mktemp("hooks") / "a node's work")


@pytest.mark.slow
def test_the_hooks_pass_every_cpu_check_with_local_defaults(hooks: Finished) -> None:
    assert hooks.code == 0, hooks.output
    assert words(hooks.verdict()) == {"communicates": "not_measured: not measured: needs a GPU"}
    assert hooks.verdict().verdict == "passed"
    assert (hooks.metrics["schema"], hooks.metrics["backend"]) == ("gradient_compression/1", "gloo")


@pytest.mark.slow
def test_each_hook_sent_its_bytes_and_powersgd_only_from_its_start_on(hooks: Finished) -> None:
    rows = {row["hook"]: row for row in hooks.metrics["hooks"]}
    assert list(rows) == ["none", "fp16", "powersgd-1", "powersgd-2"]
    parameters = 784 * 512 + 512 + 512 * 512 + 512 + 512 * 10 + 10
    biases = 512 + 512 + 10
    expected = {
        "none": 4 * parameters,
        "fp16": 2 * parameters,
        "powersgd-1": 4 * (784 + 512 + 512 + 512 + 512 + 10 + biases),
        "powersgd-2": 4 * (2 * (784 + 512 + 512 + 512 + 512 + 10) + biases),
    }
    assert {name: row["bytes_per_step"] for name, row in rows.items()} == expected
    assert rows["powersgd-1"]["bytes_first_step"] == 4 * parameters
    assert rows["fp16"]["bytes_first_step"] == 2 * parameters
    assert [row["messages_per_step"] for row in rows.values()] == [1, 1, 3, 3]


@pytest.mark.slow
def test_what_a_cpu_cannot_do_is_left_out_with_the_reason(hooks: Finished) -> None:
    assert hooks.metrics["left_out"] == [{"hook": "bf16", "reason": "DDP takes this hook with NCCL only"}]
    assert "bf16 left out: DDP takes this hook with NCCL only" in hooks.output


@pytest.mark.slow
def test_the_link_below_which_a_hook_pays_follows_from_its_row(hooks: Finished) -> None:
    plain = hooks.metrics["hooks"][0]
    assert plain["pays_below_gbps"] is None
    for row in hooks.metrics["hooks"][1:]:
        compressing = max(0.0, row["without_network_ms"] - plain["without_network_ms"])  # else it is too short to be measured
        assert row["compressing_ms"] == pytest.approx(compressing)
        if compressing > 0:
            saved = plain["bytes_per_step"] - row["bytes_per_step"]
            assert row["pays_below_gbps"] == pytest.approx(saved * 8 / (compressing / 1e3) / 1e9)
        else:
            assert row["pays_below_gbps"] is None


@pytest.mark.slow
def test_what_the_hooks_measured_can_be_drawn_and_tabled(hooks: Finished, tmp_path: Path) -> None:
    check_plots_and_tables(hooks, tmp_path)


@pytest.mark.slow
def test_small_buckets_do_not_hang_and_make_more_messages(tmp_path: Path) -> None:
    small = SMALL_HOOKS | {"hook": "powersgd-2", "bucket_mb": "0.01"}
    run = run_with_changes("3.8", tmp_path / "work", **small)
    assert run.code == 0, run.output
    assert set(words(run.verdict())) == {"communicates"}
    plain, low_rank = run.metrics["hooks"]
    assert plain["messages_per_step"] >= 2
    assert low_rank["messages_per_step"] > plain["messages_per_step"]


@pytest.mark.slow
def test_powersgd_that_never_begins_is_found(tmp_path: Path) -> None:
    fault = (", start_powerSGD_iter=args.start_iteration", "")
    run = run_with_changes("3.8", tmp_path / "work", fault, **SMALL_HOOKS | {"hook": "powersgd-1"})
    assert run.code == 0, run.output
    assert run.check("bytes-by-formula").verdict == "failed"
    assert run.check("models-equal").verdict == "passed"
