"""The exercises of module 0 as a learner runs them, with real processes, judged by the checks of their own manifest.

Each healthy run passes every check. Each fault, injected into a copy of a file, is found by the check that is there for it.
"""

from __future__ import annotations

import csv
import math
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.ports import take_port
from tests.system.exercising import (
    Finished,
    check_plots_and_tables,
    environment,
    flags,
    lay_out,
    list_failed_checks,
    needs_torch,
    read_finished,
    run_ranks,
    run_with_changes,
    start,
    wait,
    with_faults,
    words,
)

pytestmark = [pytest.mark.system, needs_torch]


# --- 0.1 ---------------------------------------------------------------------------------------------------------------

BRIEF = {"epochs": "1", "layers": "1", "compare_layers": "2", "hidden": "16"}


@pytest.fixture(scope="module")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tiny") / "a node's work"


@pytest.fixture(scope="module")
def tiny(tiny_folder: Path) -> Finished:
    return with_faults("0.1", tiny_folder, epochs="2")


@pytest.mark.slow
def test_tiny_transformers_learn(tiny: Finished) -> None:
    assert tiny.code == 0, tiny.output
    assert words(tiny.verdict()) == {}
    assert (values := tiny.metrics)["loss_of_guessing"] == pytest.approx(math.log(30))
    assert values["loss_of_counting"] < values["loss_of_guessing"]
    assert [row["layers"] for row in values["models"]] == [2, 4]
    assert (values["schema"], values["mode"], values["cuda"]) == ("tiny_transformer/1", "local", None)


@pytest.mark.slow
def test_every_step_of_both_depths_is_on_record(tiny: Finished, tiny_folder: Path, tmp_path: Path) -> None:
    for row in tiny.metrics["models"]:
        mine = [step for step in tiny.metrics["curve"] if step["line"] == f"{row['layers']} layers"]
        assert [step["step"] for step in mine] == list(range(1, row["steps"] + 1))
        assert row["training_s"] == pytest.approx(sum(step["took_s"] for step in mine))
        assert row["tokens_per_s"] == pytest.approx(16 * 64 / row["median_ms"] * 1e3)
        width, vocabulary, context = 32, 30, 64
        block = 12 * width**2 + 13 * width  # matrices; biases and two norms
        outside = (vocabulary + context) * width + 2 * width + (width + 1) * vocabulary
        assert row["parameters"] == row["layers"] * block + outside
    lines = {row["line"] for row in tiny.metrics["curve"] if row["layers"] is None}
    assert lines == {"guessing, 3.40", "counting, 2.92", "no model is better, 0.10"}, "the lesson's"
    samples = (tiny_folder / "samples.txt").read_text(encoding="utf-8")
    assert "2 layers wrote:\n" in samples
    assert "4 layers wrote:\n" in samples
    check_plots_and_tables(tiny, tmp_path)


@pytest.mark.slow
def test_a_model_that_does_not_step_has_not_learned(tmp_path: Path) -> None:
    fault = ("tiny_transformer.py", "            optimizer.step()", "            pass")
    run = with_faults("0.1", tmp_path / "work", fault, **BRIEF)
    assert run.code == 0, run.output
    assert "more-than-counting" in list_failed_checks(run)
    assert run.verdict().verdict == "failed"


@pytest.mark.slow
def test_a_model_that_sees_the_answer_is_found(tmp_path: Path) -> None:
    fault = ("transformer.py", "triu(diagonal=1)", "triu(diagonal=2)")
    run = with_faults("0.1", tmp_path / "work", fault, **BRIEF)
    assert run.code == 0, run.output
    assert list_failed_checks(run) == {"no-look-ahead"}


@pytest.mark.slow
def test_first_weights_that_are_too_large_are_found(tmp_path: Path) -> None:
    run = with_faults("0.1", tmp_path / "work", ("transformer.py", "std=0.02", "std=0.5"), **BRIEF)
    assert run.code == 0, run.output
    assert "begins-by-guessing" in list_failed_checks(run)


@pytest.mark.slow
def test_a_learning_rate_far_off_fails(tmp_path: Path) -> None:
    run = with_faults("0.1", tmp_path / "work", **BRIEF, lr="100")
    assert run.code == 0, run.output
    assert "more-than-counting" in list_failed_checks(run)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("--hidden=30", "30 is not a multiple of 4"),
        ("--compare-layers=2", "both 2: there is nothing to compare"),
        ("--lr=nan", "every value must be above zero"),
        ("--batch-size=2000", "too few for a step of 2000 pieces of 64 (--batch-size)"),
    ],
)
def test_what_cannot_be_trained_is_refused_with_a_sentence(flag: str, said: str, tmp_path: Path) -> None:
    _, script = lay_out("0.1", tmp_path / "work")
    process = start([sys.executable, str(script), flag], tmp_path, environment(tmp_path))
    output = wait(process)
    assert process.returncode in {1, 2}
    assert said in output
    assert "Traceback" not in output


# --- 0.2 ---------------------------------------------------------------------------------------------------------------

SMALL: dict[str, Any] = {"samples": "64", "batch_size": "16", "epochs": "2"}


@pytest.fixture(scope="module")
def shared_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Finished, Path]:
    folder = tmp_path_factory.mktemp("shared") / "a node's work"
    return run_ranks("0.2", 3, folder, epochs="2"), folder


@pytest.mark.slow
def test_ranks_train_one_model_on_shares_of_their_own(shared_run: tuple[Finished, Path], tmp_path: Path) -> None:
    run, _ = shared_run
    assert run.code == 0, run.output
    assert words(run.verdict()) == {}
    rows = run.metrics["ranks"]
    assert len({row["made"] for row in rows}) == 3, "each rank made weights of its own"
    assert {row["wrapped"] for row in rows} == {rows[0]["made"]}, "and DDP gave it rank 0's"
    assert len({row["trained"] for row in rows}) == 1
    assert len({row["loss_last_step"] for row in rows}) == 3
    assert run.metrics["own_gradient_difference_across_ranks"] > 0
    check_plots_and_tables(run, tmp_path)


@pytest.mark.slow
def test_the_shards_of_the_ranks_are_a_partition_but_for_the_padding(shared_run: tuple[Finished, Path]) -> None:
    run, folder = shared_run
    for epoch in ("1", "2"):
        shards = []
        for rank in range(3):
            with (folder / f"shard_rank{rank}.csv").open(encoding="utf-8") as file:
                rows = [row for row in csv.DictReader(file) if row["epoch"] == epoch]
            assert {row["rank"] for row in rows} == {str(rank)}
            shards.append([int(row["sample"]) for row in rows])
        assert [len(shard) for shard in shards] == [171, 171, 171]
        assert set().union(*map(set, shards)) == set(range(512))
    assert run.metrics["samples_twice"] == run.metrics["samples_twice_expected"] == 1
    assert all(moved > 50 for moved in run.metrics["samples_new_in_second_epoch"])


@pytest.mark.slow
def test_logs_side_by_side(shared_run: tuple[Finished, Path]) -> None:
    run, folder = shared_run
    lines = (folder / "side_by_side.txt").read_text(encoding="utf-8").splitlines()
    assert lines[0].split()[:7] == ["step", "rank", "0", "rank", "1", "rank", "2"]
    assert len(lines) == 2 + 2 * 6, "a title, a rule, and six steps an epoch"
    assert all("=" not in line for line in lines), "one averaged gradient a step"
    for rank in range(3):
        assert run.output.count(f"step   1  rank {rank}  samples") == 1
    assert "given the same samples they differ by 0." in run.output


@pytest.mark.slow
def test_ddp_by_hand_is_a_world_of_one(tmp_path: Path) -> None:
    run = with_faults("0.2", tmp_path / "work", **SMALL)
    assert run.code == 0, run.output
    assert words(run.verdict()) == {}


@pytest.mark.slow
def test_a_script_without_a_sampler_is_found(tmp_path: Path) -> None:
    run = run_with_changes(
        "0.2", tmp_path / "work", ("batch_size=args.batch_size, sampler=sampler", "batch_size=args.batch_size"), **SMALL
    )
    assert run.code == 0, run.output
    assert run.check("nothing-twice").verdict == "failed"
    assert run.metrics["samples_twice"] == 64


@pytest.mark.slow
def test_epochs_that_all_have_one_order_are_found(tmp_path: Path) -> None:
    run = run_with_changes("0.2", tmp_path / "work", ("    sampler.set_epoch(epoch)  #", "    pass  #"), **SMALL)
    assert run.code == 0, run.output
    assert list_failed_checks(run) == {"shuffled-anew"}


@pytest.mark.slow
def test_gradients_that_stay_with_their_rank_are_found(tmp_path: Path) -> None:
    run = run_with_changes(
        "0.2", tmp_path / "work", ("loss_of(model, x, y).backward()", "loss_of(model.module, x, y).backward()"), **SMALL
    )
    assert run.code == 0, run.output
    failed_checks = {check.id for check in run.verdict().checks if check.verdict == "failed"}
    assert failed_checks >= {"gradients-equal", "gradients-mean", "parameters-equal", "same-samples-same-loss"}


# --- 0.3 ---------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def launcher_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Finished, Path]:
    folder = tmp_path_factory.mktemp("launched") / "a node's work"
    return with_faults("0.3", folder, nnodes="2", nproc_per_node="2"), folder


@pytest.mark.slow
def test_the_launcher_starts_real_processes_that_meet(launcher_run: tuple[Finished, Path]) -> None:
    run, folder = launcher_run
    assert run.code == 0, run.output
    assert words(run.verdict()) == {"rank-range": "not_measured: not answered yet: --set answer=FIRST-LAST"}
    assert run.verdict().verdict == "passed", "an open answer is no fault"
    rows = run.metrics["ranks"]
    assert [(row["node_rank"], row["local_rank"], row["rank"]) for row in rows] == [
        (0, 0, 0), (0, 1, 1), (1, 0, 2), (1, 1, 3),
    ]  # fmt: skip
    assert len({row["pid"] for row in rows}) == 4
    assert len({row["parent"] for row in rows}) == 1, "the launcher"
    assert {row["sum"] for row in rows} == {10.0}
    for row in rows:
        assert f"node {row['node_rank']}: started process {row['pid']} with RANK={row['rank']} WORLD_SIZE=4" in run.output
    assert (folder / "rank_table.txt").read_text(encoding="utf-8").splitlines()[0].split()[0] == "RANK"
    assert run.metrics["challenge"]["right"] is None
    assert not {"first", "last"} & set(run.metrics["challenge"]), "the answer is not in the record"


@pytest.mark.slow
def test_one_node_a_launcher_as_on_a_cluster(tmp_path: Path) -> None:
    exercise, script = lay_out("0.3", tmp_path / "work")
    command = [sys.executable, script.name, *flags(exercise, nnodes="2", nproc_per_node="1", answer="4-7")]
    meeting = environment(script.parent) | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(take_port())}
    nodes = [start(command, script.parent, meeting | {"NODE_RANK": str(node)}) for node in (0, 1)]
    outputs = [wait(node) for node in nodes]
    run = read_finished(exercise, max(abs(node.returncode) for node in nodes), "".join(outputs), script.parent, 1)
    assert run.code == 0, run.output
    assert words(run.verdict()) == {}
    assert len({row["parent"] for row in run.metrics["ranks"]}) == 2, "each node's process has a launcher of its own"


@pytest.mark.slow
def test_torchrun_tells_the_same(tmp_path: Path) -> None:
    exercise, script = lay_out("0.3", tmp_path / "work")
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--master-addr=127.0.0.1"]
    process = start([*command, f"--master-port={take_port()}", "worker.py"], script.parent, environment(script.parent))
    output = wait(process)
    assert process.returncode == 0, output
    rows = read_finished(exercise, 0, output, script.parent, 2).metrics["ranks"]
    assert [(row["node_rank"], row["local_rank"], row["rank"], row["world_size"]) for row in rows] == [
        (0, 0, 0, 2),
        (0, 1, 1, 2),
    ]


@pytest.mark.slow
def test_a_wrong_answer_fails_and_does_not_say_the_right_one(tmp_path: Path) -> None:
    run = with_faults("0.3", tmp_path / "work", nnodes="1", nproc_per_node="1", question="3", answer="0-1")
    assert run.code == 0, run.output
    assert list_failed_checks(run) == {"rank-range"}


@pytest.mark.slow
def test_ranks_counted_round_the_nodes_are_found(tmp_path: Path) -> None:
    fault = ("launcher.py", "node * args.nproc_per_node + local_rank  #", "local_rank * args.nnodes + node  #")
    run = with_faults("0.3", tmp_path / "work", fault)
    assert run.code == 0, run.output
    assert list_failed_checks(run) == {"rank-formula"}


@pytest.mark.slow
def test_two_processes_with_one_rank_end_with_words_and_not_in_a_hang(tmp_path: Path) -> None:
    fault = ("launcher.py", "node * args.nproc_per_node + local_rank  #", "local_rank  #")
    run = with_faults("0.3", tmp_path / "work", fault, nproc_per_node="1")
    assert run.code == 1
    assert "or another process has my rank" in run.output
    assert "failed first, with code 1; the others are ended" in run.output
    assert "Traceback" not in run.output


@pytest.mark.slow
def test_a_node_that_never_comes_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    exercise, script = lay_out("0.3", tmp_path / "work")
    alone = {"NODE_RANK": "0", "MASTER_PORT": str(take_port()), "GPUCOURSE_COLLECTIVE_TIMEOUT_S": "1"}
    words = [sys.executable, script.name, *flags(exercise, nproc_per_node="1")]
    process = start(words, script.parent, environment(script.parent) | alone)
    output = wait(process)
    assert process.returncode == 1
    assert "the others did not come within 1 s" in output
    assert "Traceback" not in output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flag", "node", "said"),
    [
        ("--nnodes=0", None, "there must be 1 to 32 processes in all"),
        ("--nproc-per-node=17", None, "there must be 1 to 32 processes in all"),
        ("--answer=many", None, "write the first and the last, such as 40-47"),
        ("--nnodes=2", "2", "NODE_RANK=2: the nodes are 0 to 1"),
    ],
)
def test_what_cannot_be_launched_is_refused_with_a_sentence(flag: str, node: str | None, said: str, tmp_path: Path) -> None:
    _, script = lay_out("0.3", tmp_path / "work")
    where = {"NODE_RANK": node} if node else {}
    process = start([sys.executable, str(script), flag], tmp_path, environment(tmp_path) | where)
    output = wait(process)
    assert (process.returncode, "Traceback" in output) == (2, False)
    assert said in output
