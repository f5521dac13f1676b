"""The exercises of module 3 as a learner runs them, with real ranks, judged by the checks of their own manifest."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.ui.loglines import leave_out_tables
from tests.course import FOLDERS
from tests.system.exercising import (
    check_healthy,
    check_plots_and_tables,
    list_open_checks,
    needs_torch,
    run_exercise,
)

pytestmark = [pytest.mark.system, needs_torch]


def test_hello_measures_every_size_with_its_spread(tmp_path: Path) -> None:
    run = run_exercise("3.1", tmp_path / "a node's work", ranks=2, elements="1000")
    check_healthy(run, tmp_path, open_checks={"own-ring"})
    for rank, output in enumerate(run.outputs):
        assert f"rank {rank}: before {rank + 1}, after the sum 3, as an average 1.5: right on every element" in output
    assert [row["elements"] for row in run.metrics["sync"]] == [1, 4, 16, 64, 256, 1000]
    for row in run.metrics["sync"]:
        assert row["bytes"] == 4 * row["elements"]
        assert 0 < row["p20_ms"] <= row["median_ms"] <= row["p80_ms"]


@pytest.mark.slow
def test_training_on_three_ranks_divides_samples_and_compares_itself(tmp_path: Path) -> None:
    odd = {"samples": "1001", "hidden": "33", "batch_size": "50", "steps": "5", "epochs": "2"}
    run = run_exercise("3.2", tmp_path / "work", ranks=3, **odd)
    check_healthy(run, tmp_path, open_checks={"own-ddp"})
    values = run.metrics
    assert (values["schema"], values["mode"], values["world_size"], values["backend"]) == ("ddp_training/1", "local", 3, "gloo")
    assert (values["gpu_memory_bytes"], values["cuda"], values["nccl"], values["peak_gpu_memory_bytes"]) == (None,) * 4
    assert values["share_samples"] == [333, 333, 333]
    assert values["gradient_bytes"] == 4 * (784 * 33 + 33 + 33 * 10 + 10)
    single_row = values["comparison"][0]
    assert [row["ranks"] for row in values["comparison"]] == [1, 3, 3]
    for row in values["comparison"]:
        throughput = row["ranks"] * row["batch_per_rank"] / row["median_ms"] * 1e3
        assert row["samples_per_s"] == pytest.approx(throughput)
        assert row["speedup"] == pytest.approx(throughput / single_row["samples_per_s"])
        assert row["efficiency_percent"] == pytest.approx(100 * row["speedup"] / row["ranks"])


COLLECTIVES = ["AllReduce", "Broadcast", "AllGather", "ReduceScatter"]


@pytest.mark.slow
def test_every_collective_is_measured_at_every_size_with_both_bandwidths(tmp_path: Path) -> None:
    run = run_exercise("3.3", tmp_path / "work", ranks=2, max_bytes="8192", factor="8")
    check_healthy(run, tmp_path, open_checks={"own-line"})
    sweep = run.metrics["sweep"]
    assert [(row["collective"], row["bytes"]) for row in sweep] == [
        (name, size) for name in COLLECTIVES for size in (1024, 8192)
    ]
    factors = {"AllReduce": 1.0, "Broadcast": 1.0, "AllGather": 0.5, "ReduceScatter": 0.5}
    for row in sweep:
        assert row["algbw_gb_per_s"] == pytest.approx(row["bytes"] / row["median_us"] / 1e3)
        assert row["busbw_gb_per_s"] == pytest.approx(row["algbw_gb_per_s"] * factors[row["collective"]])
    screen_lines = [line.decode() for _, line in leave_out_tables([(0.0, line.encode()) for line in run.output.splitlines()])]
    assert [line.split(":")[0] for line in screen_lines if "GB/s on the bus" in line] == COLLECTIVES, (
        "on the screen a line for each"
    )
    assert "theoretical link" not in (tmp_path / "bandwidth.svg").read_text(encoding="utf-8"), "a loopback has none"


@pytest.mark.slow
def test_one_worker_and_two_are_compared_in_one_run(tmp_path: Path) -> None:
    run = run_exercise("3.4", tmp_path / "work", ranks=2, images="1024", batch_size="32", epochs="3")
    check_healthy(run, tmp_path, open_checks={"own-speed-up"})
    single_row, strong, weak = run.metrics["comparison"]
    assert [row["batch_per_rank"] for row in (single_row, strong, weak)] == [32, 16, 32]
    assert [row["steps"] for row in (single_row, strong, weak)] == [96, 96, 48], "1,024 pictures, 3 epochs"
    assert strong["speedup"] == pytest.approx(single_row["train_s"] / strong["train_s"])
    assert weak["speedup"] == pytest.approx(single_row["train_s"] / weak["train_s"]), "the same pictures once more"


WAYS = ["no accumulation", "sync every micro-step", "big batch", "no_sync, yours"]
SMALL_GROUPS = {"micro_batch": "8", "hidden": "32", "steps": "5"}


@pytest.mark.slow
def test_ways_of_accumulation_have_their_traffic(tmp_path: Path) -> None:
    run = run_exercise("3.5", tmp_path / "work", ranks=2, solved=True, **SMALL_GROUPS)
    check_healthy(run, tmp_path)
    values = run.metrics
    assert [(row["way"], row["updates"]) for row in values["ways"]] == list(zip(WAYS, (4, 1, 1, 1), strict=True))
    gradients = values["gradient_bytes"]
    assert [row["allreduce_bytes"] for row in values["ways"]] == [4 * gradients, 4 * gradients, gradients, gradients]
    none, every, _, yours = values["ways"]
    assert max(every["gradient_error"], yours["gradient_error"], yours["last_group_error"]) < 1e-5
    assert none["gradient_error"] > 0.1, "the last micro-batch alone is not the batch"
    assert values["last_group_error_by_k"] > 0.1, "dividing by k is wrong when the group is not full"


@pytest.mark.slow
def test_every_schedule_is_swept_with_both_bubbles_and_so_is_a_learners(tmp_path: Path) -> None:
    run = run_exercise("3.6", tmp_path / "work", ranks=2, solved=True, hidden="64", steps="3")
    check_healthy(run, tmp_path)
    sweep = run.metrics["sweep"]
    assert [(row["way"], row["micro_batches"], row["in_flight"]) for row in sweep] == [
        *(("gpipe", m, m) for m in (1, 2, 4, 8)),
        *(("1f1b", m, 2) for m in (2, 4, 8)),
        *(("interleaved", m, held) for m, held in ((2, 2), (4, 2.5), (8, 2.5))),
    ]
    yours = run.metrics["yours"]["rows"]
    assert [(row["way"], row["micro_batches"], row["in_flight"]) for row in yours] == [("yours", m, 2) for m in (2, 4, 8)]
    for row in run.metrics["every_way"]:
        pieces = row["micro_batches"] * (2 if row["way"] == "interleaved" else 1)
        assert row["bubble_predicted_percent"] == pytest.approx(100 / (pieces + 1))
        assert row["bubble_wall_percent"] is None, "ranks that share cores show no bubble by the clock"
    assert "rank 1 of 2 on node0 (cpu) has layers 4 to 7 of 8" in run.output
    assert "(p - 1) / (m + p - 1)" in (tmp_path / "bubble.svg").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_scaling_curve_holds_its_own_formulas(tmp_path: Path) -> None:
    run = run_exercise("3.7", tmp_path / "work", ranks=4, solved=True, hidden="64", steps="5")
    check_healthy(run, tmp_path)
    rows = run.metrics["scaling"]
    assert [(row["mode"], row["workers"], row["batch_per_worker"]) for row in rows] == [
        *(("weak", n, 128) for n in (1, 2, 4)),
        *(("strong", n, 128 // n) for n in (1, 2, 4)),
    ]
    for row in rows:
        rate = row["workers"] * row["batch_per_worker"] / row["median_ms"] * 1e3
        assert row["speedup"] == pytest.approx(rate / rows[0]["samples_per_s"])
        assert row["efficiency_percent"] == pytest.approx(100 * row["speedup"] / row["workers"])
        if row["workers"] > 1:
            assert row["ideal_ms"] + row["lost_ms"] == pytest.approx(row["median_ms"])
    assert run.output.count("2 workers, weak:") == 2, "only the workers of a group speak"
    for row in run.metrics["yours"]["rows"]:
        lost = next(each["lost_ms"] for each in rows if (each["mode"], each["workers"]) == (row["mode"], 4))
        assert row["communication_ms"] + row["slower_computing_ms"] == pytest.approx(lost)
    assert [(row["by"], row["mode"], row["workers"]) for row in run.metrics["breakdown"][-2:]] == [
        ("yours", "weak", 4), ("yours", "strong", 4)
    ]  # fmt: skip


@pytest.mark.slow
def test_each_hook_sends_its_bytes_and_the_rest_is_left_out_with_the_reason(tmp_path: Path) -> None:
    run = run_exercise("3.8", tmp_path / "work", ranks=2, solved=True, hidden="64", batch_size="32", steps="20")
    check_healthy(run, tmp_path)
    rows = {row["hook"]: row for row in run.metrics["compared"]}
    parameters = 784 * 64 + 64 + 64 * 64 + 64 + 64 * 10 + 10
    edges, biases = 784 + 64 + 64 + 64 + 64 + 10, 64 + 64 + 10
    expected = {"none": 4 * parameters, "fp16": 2 * parameters, "fp8-gather": parameters + 4,
                "yours": 2 * parameters, "powersgd-1": 4 * (edges + biases),
                "powersgd-2": 4 * (2 * edges + biases)}  # fmt: skip
    assert {name: row["bytes_per_step"] for name, row in rows.items()} == expected
    assert rows["powersgd-1"]["bytes_first_step"] == 4 * parameters, "it begins later"
    assert run.metrics["left_out"] == [{"hook": "bf16", "reason": "DDP accepts this hook with NCCL only"}]
    assert run.metrics["fp16_tiny_share"] < 0.3 < run.metrics["yours"]["tiny_learned_share"], "it keeps what fp16 loses"
    plain = rows.pop("none")
    for row in run.metrics["hooks"][1:]:
        compressing = max(
            0.0, row["without_network_ms"] - plain["without_network_ms"]
        )  # otherwise it is too short to be measured
        saved = plain["wire_bytes"] - row["wire_bytes"]
        pays_below = pytest.approx(saved * 8 / (compressing / 1e3) / 1e9) if compressing else None
        assert row["pays_below_gbps"] == pays_below


@pytest.mark.slow
@pytest.mark.parametrize("solution", ["my_hook.py", "other/my_hook.py"])
def test_own_hook_trains_when_ddp_makes_new_buckets_after_the_first_step(tmp_path: Path, solution: str) -> None:
    hook = (FOLDERS.exercises / "03-parallel-computing" / "solutions" / solution).read_text()
    small = {"hidden": "64", "bucket_mb": "0.01", "batch_size": "32", "steps": "20", "hook": "none"}
    run = run_exercise("3.8", tmp_path / "work", ranks=2, files={"my_hook.py": hook}, **small)
    check_healthy(run, tmp_path)
    row = run.metrics["yours"]["rows"][0]
    assert row["messages_per_step"] > 1, "otherwise DDP has kept its first bucket"
    assert row["bytes_first_step"] == 2 * row["bytes_per_step"], "AllReduce sends the first step"


@pytest.mark.slow
def test_each_layout_of_the_mesh_holds_and_sends_what_the_formulas_say(tmp_path: Path) -> None:
    run = run_exercise("3.9", tmp_path / "work", ranks=4, solved=True, steps="4")
    assert run.code == 0, run.output
    assert list_open_checks(run) == {}
    check_plots_and_tables(run, tmp_path)
    for rank, output in enumerate(run.outputs):
        assert f"rank {rank} on node0: copy {rank // 2} of 2, slice {rank % 2} of 2" in output
    compared, *layouts = run.metrics["compared"]
    assert [(row["dp"], row["tp"]) for row in layouts] == [(2, 2), (4, 1), (1, 4), (1, 4)], "the last has the learner's layers"
    cut = 2 * (12 * 64 * 64 + 7 * 64)
    size = 2 * 6 * 64 + (64 + 32) * 64 + 2 * 64 + 65 * 64
    assert compared["parameter_bytes"] == 4 * (cut + size)
    for row in layouts:
        assert row["parameter_bytes"] == 4 * (cut // row["tp"] + size)
        assert row["state_bytes"] == 3 * row["parameter_bytes"]
        assert row["tp_messages"] == (8 if row["tp"] > 1 else 0)
        assert row["tp_message_bytes"] == (16 // row["dp"] * 32 * 64 * 4 if row["tp"] > 1 else 0)
        assert row["dp_message_bytes"] == (row["parameter_bytes"] if row["dp"] > 1 else 0)
