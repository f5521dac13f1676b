"""Exercises 9.1 and 9.2 as a learner runs them, judged by the checks of their own manifest."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.system.exercising import check_healthy, list_failed_checks, needs_torch, run_exercise

pytestmark = [pytest.mark.system, needs_torch]
ROUNDS = {"numbers": "1001", "nodes": "4", "per_node": "4"}
EXPERTS = {"tokens": "24", "width": "8", "steps": "40"}
OF_ROUNDS = {"your-sums", "your-bytes", "your-messages", "your-crossing"}
OF_SECONDS = {"your-formulas", "your-choices"}
OF_GATE = {"your-choices", "your-weights", "your-loss", "balances", "bias-helps"}
OF_DISPATCH = {"your-output", "your-gradients", "your-bytes", "dropless"}


# --- 9.1 ----------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_all_reduces_as_delivered_are_sums_and_both_parts_are_open(tmp_path: Path) -> None:
    run = run_exercise("9.1", tmp_path / "work", ranks=2, ranks_per_node="2", **ROUNDS)
    check_healthy(run, tmp_path, failures={"rounds-run", "seconds-run"}, open_checks=OF_ROUNDS | OF_SECONDS)
    ring, doubling, tree, pieces = run.metrics["real"]
    assert [row["messages"] for row in (ring, doubling, tree)] == [6, 2, 2]
    assert doubling["bytes"] == tree["bytes"] == 2 * 1001 * 8
    assert (ring["crossing_times"], doubling["crossing_times"]) == (pytest.approx(1.5, abs=0.01), 2)
    assert pieces["rounds"] == 2 * 2 + 15
    assert "my_rounds.py is not written yet" in run.output


@pytest.mark.slow
def test_all_reduces_solved_cross_the_network_as_little_as_possible(tmp_path: Path) -> None:
    run = run_exercise("9.1", tmp_path / "work", ranks=2, ranks_per_node="2", solved=True, **ROUNDS)
    check_healthy(run, tmp_path)
    halving, two_levels = run.metrics["real"][-2:]
    assert (halving["messages"], two_levels["messages"]) == (4, 4)
    assert run.metrics["yours"]["rounds"]["crossing_times"] <= 1.01
    assert {row["fastest"] for row in run.metrics["sizes"]} >= {"doubling", "yours, halving"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "red", "words"),
    [
        (
            "def halving_doubling(ranks, numbers):\n    return [[(0, 1, 0, 'all', True)]]\n",
            "rounds-run",
            "needs four whole numbers",
        ),
        (
            "def halving_doubling(ranks, numbers):\n    import os\n    os._exit(3)\n",
            "rounds-run",
            "the process ended with code 3",
        ),
        ("def halving_doubling(ranks, numbers):\n    return []\n", "your-sums", ""),
    ],
    ids=["wrong type", "ends", "nothing sent"],
)
def test_all_reduces_name_rounds_that_cannot_be_performed(part: str, red: str, words: str, tmp_path: Path) -> None:
    text = part + "\n\ndef hierarchical(nodes, per_node, numbers):\n    return []\n"
    run = run_exercise("9.1", tmp_path / "work", files={"my_rounds.py": text}, ranks_per_node="2", **ROUNDS)
    assert run.code == 0, run.output
    assert red in list_failed_checks(run)
    assert words in run.metrics["errors"]["rounds"]


# --- 9.2 ----------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_mixture_as_delivered_equals_one_process_and_both_parts_are_open(tmp_path: Path) -> None:
    run = run_exercise("9.2", tmp_path / "work", ranks=2, ranks_per_node="1", **EXPERTS)
    check_healthy(run, tmp_path, failures={"gate-runs", "dispatch-runs"}, open_checks=OF_GATE | OF_DISPATCH)
    assert run.metrics["moved"][0]["combine_bytes"] == 24 * 8 * 8
    assert run.metrics["limit_of_four"] == pytest.approx(0.74, abs=0.02)
    assert "my_dispatch.py is not written yet" in run.output


@pytest.mark.slow
def test_a_mixture_solved_equals_one_process_and_balances(tmp_path: Path) -> None:
    run = run_exercise("9.2", tmp_path / "work", ranks_per_node="2", solved=True, **(EXPERTS | {"steps": "120"}))
    check_healthy(run, tmp_path)
    ranks_rows = run.metrics["ranks"]
    assert all(row["sent_bytes"] == row["back_bytes"] == row["by_formula_bytes"] for row in ranks_rows)
    assert run.metrics["yours"]["gate"]["largest_of_none"] > 1.7


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("    return x.new_empty(5 << 27)\n", "allocate"),
        ("    return 'rows'\n", "forward returned str"),
        ("    return exchange(x, [len(x)] * 2, [0] * 2)\n", "its sizes to send add up to"),
    ],
    ids=["5 GiB", "wrong type", "sizes that lie"],
)
def test_a_mixture_names_a_dispatch_that_does_not_run(change: str, words: str, tmp_path: Path) -> None:
    text = f"def forward(x, weights, chosen, experts, exchange_counts, exchange, compute):\n{change}"
    files = {"my_dispatch.py": text}
    run = run_exercise("9.2", tmp_path / "work", files=files, ranks_per_node="2", **(EXPERTS | {"steps": "4"}))
    assert run.code == 0, run.output
    assert "dispatch-runs" in list_failed_checks(run)
    assert "rank " in run.metrics["errors"]["dispatch"]
    assert words in run.metrics["errors"]["dispatch"]
