"""The exercises 9.4 and 9.6 as a learner runs them, judged by the checks of their own manifest."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.system.exercising import check_healthy, list_failed_checks, needs_torch, run_exercise

pytestmark = [pytest.mark.system, needs_torch]

# --- 9.4 ----------------------------------------------------------------------------------------------------------------

PARTS_RUN = {"order-runs", "split-runs"}
"""These checks are not judged while their parts are open."""
OF_YOURS = {
    "order-gradients", "order-bubble", "order-memory", "split-gradients", "split-late", "split-products", "choice-fits",
    "choice-best", "choice-reasons",
}  # fmt: skip
SMALL = {"layers": "8", "width": "256", "micro_batches": "8", "stages": "4"}


@pytest.mark.slow
def test_pipelines_as_delivered_have_the_gradients_of_one_process(tmp_path: Path) -> None:
    run = run_exercise("9.4", tmp_path / "work", ranks_per_node="2", **SMALL)
    check_healthy(run, tmp_path, failures=PARTS_RUN, open_checks=OF_YOURS)
    assert [row["products"] for row in run.metrics["real"]] == [3, 3, 3]
    assert [row["in_flight"] for row in run.metrics["real"]] == [8, 2, 2.5]
    assert run.metrics["end_of_1f1b"] == 8 * 30 + 3 * 30


@pytest.mark.slow
def test_pipelines_solved_fill_the_gaps_on_real_ranks(tmp_path: Path) -> None:
    run = run_exercise("9.4", tmp_path / "work", solved=True, ranks_per_node="4", **SMALL)
    check_healthy(run, tmp_path)
    rows = {row["schedule"]: row for row in run.metrics["real"]}
    assert [rows[name]["products"] for name in ("zb-v, your split", "your order and split")] == [3, 3]
    assert rows["your order"]["products"] == 3.5, "without a split layer, torch computes an inner gradient of inputs twice"
    assert rows["your order"]["in_flight"] == 4
    assert run.metrics["yours"]["order"]["bubble"] == 3 * (10 + 12 - 8)
    assert run.metrics["yours"]["choice"]["label"] == "dualpipe"


@pytest.mark.slow
def test_pipelines_name_the_rank_of_a_split_that_computes_too_early(tmp_path: Path) -> None:
    early = ("my_split.py", "        return gradient @ weight, None, None\n",
             "        compute_weights(ctx.store)\n        return gradient @ weight, None, None\n")  # fmt: skip
    run = run_exercise("9.4", tmp_path / "work", early, solved=True, ranks_per_node="2", **SMALL)
    assert list_failed_checks(run) == {"split-late"}


# --- 9.6 ----------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_overlap_as_delivered_records_the_orders_of_torch(tmp_path: Path) -> None:
    run = run_exercise("9.6", tmp_path / "work", ranks_per_node="2", layers="5")
    parts = {"timeline-runs", "prefetch-runs"}
    check_healthy(
        run,
        tmp_path,
        failures=parts,
        open_checks={"timeline-exact", "order-as-torch", "choice-fits", "choice-best", "choice-room"},
    )
    assert "my_overlap.yaml is not filled in yet." in run.output
    assert [row["gathers"] for row in run.metrics["recorded"]] == [10, 10, 10, 10, 5]
    assert run.metrics["forward_exposed_share"] == pytest.approx((2 + 0.02) / 10), "the first gather, and its issue"


@pytest.mark.slow
def test_overlap_solved_equals_torch_and_the_event_queue(tmp_path: Path) -> None:
    uneven = {"uneven": "true", "issue_us": "3000", "puzzle": "4"}
    run = run_exercise("9.6", tmp_path / "work", solved=True, ranks_per_node="2", layers="6", **uneven)
    check_healthy(run, tmp_path)
    ends = {row["way"]: row["end_ms"] for row in run.metrics["recorded"]}
    assert ends["whole after forward"] < ends["torch's default"], "there is less to issue"
    assert run.metrics["choice"]["times_of_best"] == 1
