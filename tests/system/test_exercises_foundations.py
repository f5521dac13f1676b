"""The exercises of module 0 as a learner runs them, with real processes, judged by the checks of their own manifest."""

from __future__ import annotations

import csv
import math
import sys
from pathlib import Path

import pytest

from tests.ports import take_port
from tests.system.exercising import (
    check_healthy,
    environment,
    flags,
    lay_out,
    list_open_checks,
    needs_torch,
    read_finished,
    run_exercise,
    start,
    wait,
)

pytestmark = [pytest.mark.system, needs_torch]


@pytest.mark.slow
def test_tiny_transformers_record_every_step_of_both_depths(tmp_path: Path) -> None:
    run = run_exercise("0.1", tmp_path / "work", solved=True, epochs="1")
    check_healthy(run, tmp_path)
    assert [row["line"] for row in run.metrics["rows"]] == ["2 layers", "4 layers", "2 layers, yours"]
    values = run.metrics
    assert values["loss_of_guessing"] == pytest.approx(math.log(30))
    for row, layers in zip(values["models"], (2, 4), strict=True):
        steps = [step for step in values["curve"] if step["line"] == f"{layers} layers"]
        assert [step["step"] for step in steps] == list(range(1, row["steps"] + 1))
        assert row["training_s"] == pytest.approx(sum(step["took_s"] for step in steps))
        width, vocabulary, context = 32, 30, 64
        block = 12 * width**2 + 13 * width  # matrices; biases and two norms
        assert row["parameters"] == layers * block + (vocabulary + context) * width + 2 * width + (width + 1) * vocabulary
        assert f"{layers} layers wrote:\n" in (tmp_path / "work" / "samples.txt").read_text(encoding="utf-8")
    lines = {row["line"] for row in values["curve"] if row["took_s"] is None}
    assert lines == {"guessing, 3.40", "counting, 2.92", "no model is better, 0.10"}, "the lesson's"


def test_ranks_train_one_model_on_shares_that_are_a_partition(tmp_path: Path) -> None:
    folder = tmp_path / "a node's work"
    run = run_exercise("0.2", folder, ranks=3, solved=True, samples="64", batch_size="16", epochs="2")
    check_healthy(run, tmp_path)
    rows = run.metrics["ranks"]
    assert len({row["made"] for row in rows}) == 3, "each rank made weights of its own"
    assert {row["wrapped"] for row in rows} == {rows[0]["made"]}, "and DDP gave it rank 0's"
    assert run.metrics["samples_twice"] == run.metrics["samples_twice_expected"] == 3 * 22 - 64
    shards = []
    for rank in range(3):
        with (folder / f"shard_rank{rank}.csv").open(encoding="utf-8") as file:
            shards.append([int(row["sample"]) for row in csv.DictReader(file) if row["epoch"] == "2"])
    assert [len(shard) for shard in shards] == [22, 22, 22]
    assert set().union(*shards) == set(range(64))
    theirs, yours = run.metrics["samplers"]
    assert yours == {**theirs, "sampler": "yours"}, "the solution shuffles and deals as DistributedSampler does"
    seen = {
        name: [row["seen"] for row in run.metrics["seen"] if row["sampler"] == name] for name in ("DistributedSampler", "yours")
    }
    assert seen["yours"] == seen["DistributedSampler"]
    assert (seen["yours"][:2], len(seen["yours"])) == ([16, 22], 4), "two steps in each of two epochs"


@pytest.mark.slow
def test_the_launcher_starts_real_processes_that_meet(tmp_path: Path) -> None:
    run = run_exercise("0.3", tmp_path / "work", solved=True, nnodes="2", nproc_per_node="2")
    check_healthy(run, tmp_path, open_checks={"rank-range"})
    assert [row["rank"] for row in run.metrics["launches"] if row["by"] == "yours"] == list(range(2 + 4))
    rows = run.metrics["ranks"]
    assert [(row["node_rank"], row["local_rank"], row["rank"]) for row in rows] == [
        (0, 0, 0), (0, 1, 1), (1, 0, 2), (1, 1, 3),
    ]  # fmt: skip
    assert not {"first", "last"} & set(run.metrics["challenge"]), "the answer is not in the record"


@pytest.mark.slow
def test_a_launcher_on_each_node_starts_that_nodes_process(tmp_path: Path) -> None:
    exercise, script = lay_out("0.3", tmp_path / "work", solved=True)
    command = [sys.executable, script.name, *flags(exercise, nnodes="2", nproc_per_node="1", answer="12-13")]
    meeting = environment(script.parent) | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(take_port())}
    nodes = [start(command, script.parent, meeting | {"NODE_RANK": str(node)}) for node in (0, 1)]
    outputs = [wait(node) for node in nodes]
    run = read_finished(exercise, max(abs(node.returncode) for node in nodes), ["".join(outputs)], script.parent)
    assert run.code == 0, run.output
    assert list_open_checks(run) == {}
    assert len({row["parent"] for row in run.metrics["ranks"]}) == 2, "each node's process has a launcher of its own"
