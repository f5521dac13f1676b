"""The exercises of module 8 as a learner runs them, judged by the checks of their own manifest."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.parts import needs_module
from tests.system.exercising import (
    check_healthy,
    check_plots_and_tables,
    list_failed_checks,
    list_open_checks,
    needs_torch,
    run_exercise,
    run_on_a_gpu,
)

pytestmark = [pytest.mark.system, needs_torch]
needs_transformers = needs_module("transformers")


# --- 8.1 ----------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_token_costs_as_delivered_are_counted_without_the_learners_formulas(tmp_path: Path) -> None:
    run = run_exercise("8.1", tmp_path / "work")
    assert run.code == 0, run.output
    assert list_failed_checks(run) == {"yours-runs"}, "it says nothing while its part is open"
    assert set(list_open_checks(run)) == {"yours-runs", "yours-counted", "yours-published", "yours-experts"}
    assert (run.metrics["fits"], run.metrics["ridge_batch"], run.metrics["attention_per_byte"]) == (10, 404, 4)
    assert run.metrics["bytes_per_token"] == 131_072
    assert "my_costs.py is not written yet" in run.output
    check_plots_and_tables(run, tmp_path)


@pytest.mark.slow
def test_token_costs_solved_equal_the_counts_of_a_model_with_windows_and_experts(tmp_path: Path) -> None:
    run = run_exercise("8.1", tmp_path / "work", solved=True, card="gpt-oss-120b", gpu="h200", puzzle="7", context="200")
    check_healthy(run, tmp_path)
    assert run.metrics["fits_of_8_bit_weights"] is None, "its weights in 16 bits do not fit"


# --- 8.2 ----------------------------------------------------------------------------------------------------------------


def list_unexplained(open_checks: dict[str, str]) -> list[str]:
    """Return the open checks that do not belong to an open part."""
    return [check for check in open_checks if not check.startswith(("yours-", "attention-", "preemption-"))]


@pytest.mark.slow
def test_pages_as_delivered_are_planned_and_both_parts_are_open(tmp_path: Path) -> None:
    run = run_exercise("8.2", tmp_path / "work", samples="3", page="8", requests="40")
    assert run.code == 0, run.output
    assert list_unexplained(list_open_checks(run)) == []
    held = 100 // 8 + 3 * (120 // 8 - 100 // 8)
    assert (run.metrics["pages_held"], run.metrics["pages_unshared"], run.metrics["copies_needed"]) == (held, 45, 2)
    assert "my_pages.py is not written yet" in run.output
    check_plots_and_tables(run, tmp_path)


@pytest.mark.slow
def test_pages_solved_pass_every_check(tmp_path: Path) -> None:
    run = run_exercise("8.2", tmp_path / "work", solved=True, requests="100")
    check_healthy(run, tmp_path)
    assert run.metrics["yours"]["pages"] == 14
    assert run.metrics["waste"][-1]["used_percent"] == run.metrics["used_percent"]


# --- 8.3 ----------------------------------------------------------------------------------------------------------------


def test_schedulers_as_delivered_are_the_two_old_ones(tmp_path: Path) -> None:
    run = run_exercise("8.3", tmp_path / "work", engine="none", requests="60")
    assert run.code == 0, run.output
    assert list_unexplained(list_open_checks(run)) == ["pause-ratio"]
    assert [row["policy"] for row in run.metrics["policies"]] == ["static batches", "prompts first"]
    assert (run.metrics["free_tokens"], run.metrics["tokens_off"]) == (301, 0)
    assert "Steps of prompts first" in (tmp_path / "work" / "steps.txt").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_scheduler_of_the_course_passes_every_check_beside_a_real_engine(tmp_path: Path) -> None:
    run = run_exercise("8.3", tmp_path / "work", solved=True)
    check_healthy(run, tmp_path)
    assert (run.metrics["yours"]["real_preempted"], run.metrics["yours"]["real_again"]) == (13, 717)
    assert [row["preempted"] for row in run.metrics["pools"]] == [0, 7, 158, 291]


@pytest.mark.slow
@needs_transformers
@pytest.mark.parametrize(
    ("line", "log"), [("raise ValueError('not here')", "ValueError: not here"), ("__import__('time').sleep(60)", "sleep(60)")]
)
def test_a_scheduler_that_fails_or_hangs_in_the_real_engine_is_named_and_costs_nothing_else(
    line: str, log: str, tmp_path: Path
) -> None:
    first = "    plan: dict[str, int] = {}\n"
    failing = f"    if waiting and waiting[0].name.startswith('cmpl'):\n        {line}\n"
    changes = ("my_scheduler.py", first, failing + first), ("serve.py", "LIMIT_S_PART = 300, 20", "LIMIT_S_PART = 300, 2")
    run = run_exercise("8.3", tmp_path / "work", *changes, solved=True, requests="20")
    assert run.code == 0, run.output
    assert "yours-serves" in list_failed_checks(run)
    assert "look at the end of engine.log" in run.metrics["engine_error"]
    assert log in (tmp_path / "work" / "engine.log").read_text(encoding="utf-8")
    assert [row["scheduler"] for row in run.metrics["engine_times"]] == ["prompts first"]


# --- 8.4 ----------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@needs_transformers
def test_prefix_cache_as_delivered_searches_texts_and_asks_an_engine(tmp_path: Path) -> None:
    run = run_exercise("8.4", tmp_path / "work", requests="40", pages="240")
    assert run.code == 0, run.output
    assert list_failed_checks(run) <= {"yours-runs"}, "it says nothing while its part is open"
    assert {"template-best", "yours-found", "yours-scores"} <= set(list_open_checks(run))
    assert [row["found"] for row in run.metrics["talk"]] == [0, 432, 576, 720, 848]
    assert run.metrics["stamped_percent"] == 0
    assert run.metrics["behind_percent"] > 50
    assert run.metrics["false_hit_off"] > 1
    check_plots_and_tables(run, tmp_path)


@pytest.mark.slow
@needs_transformers
def test_prefix_cache_solved_finds_what_is_there_for_each_tenant(tmp_path: Path) -> None:
    run = run_exercise("8.4", tmp_path / "work", solved=True, requests="60", pages="300", tenants="3", page="13")
    assert run.code == 0, run.output
    assert list_failed_checks(run) <= {"faster-again"}, "a busy computer"
    assert run.metrics["yours"]["computed_tokens"] == 230 - 5 * 16
    assert [row["yours"] for row in run.metrics["memory"]] == [row["last_page_first"] for row in run.metrics["memory"]]


# --- 8.5 ----------------------------------------------------------------------------------------------------------------

OPEN_8_5 = {
    "accept-runs", "accept-same-text", "accept-distribution", "accept-length", "speedup-runs", "speedup-coins", "speedup-best",
}  # fmt: skip
WRONG = "def verify(draft, q, p, uniform):\n    return [*draft, max(range(len(p[-1])), key=p[-1].__getitem__)]\n"


@pytest.mark.slow
def test_guesses_change_no_token_and_pay_for_small_batches(tmp_path: Path) -> None:
    run = run_exercise("8.5", tmp_path / "work", solved=True, tokens="10", samples="5000")
    check_healthy(run, tmp_path)
    drafts = {(row["draft"], row["whose"]): row["tokens_per_step"] for row in run.metrics["drafts"]}
    assert len(drafts) == 8
    assert 1 < drafts["small model", "yours"] < 5
    assert [row["rejected_100"] for row in run.metrics["power"]] == [20, 20]
    best = {(row["context"], row["batch"]): row["best_gamma"] for row in run.metrics["pays"]}
    assert best[100, 1] > best[100, 256] >= best[100, 512] == 0
    assert best[8000, 512] == best[8000, 1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "failures"), [("", set()), (WRONG, {"accept-same-text", "accept-distribution", "accept-length"})]
)
def test_a_wrong_rule_costs_its_own_checks_alone(tmp_path: Path, part: str, failures: set[str]) -> None:
    files = {"my_accept.py": part} if part else None
    run = run_exercise("8.5", tmp_path / "work", files=files, tokens="6", samples="2000")
    assert run.code == 0, run.output
    assert list_failed_checks(run) == failures
    is_open = OPEN_8_5 if not part else {check for check in OPEN_8_5 if check.startswith("speedup")}
    assert set(list_open_checks(run)) == is_open | failures
    assert run.metrics["greedy_off"] == 0
    check_plots_and_tables(run, tmp_path)


@pytest.mark.slow
def test_the_products_of_a_step_are_timed_on_a_gpu(tmp_path: Path) -> None:
    narrow = ("cards.py", "Card(32, 4096, 32, 8, 128, 14336, 128256, 8_030", "Card(32, 64, 4, 2, 16, 128, 128256, 8_030")
    run = run_on_a_gpu("8.5", tmp_path / "work", narrow, tokens="6", samples="1000")
    assert [row["tokens"] for row in run.metrics["products"]] == [1, 5, 64, 512]
    assert run.metrics["products_ratio"] > 0
    check_plots_and_tables(run, tmp_path)


# --- 8.6 ----------------------------------------------------------------------------------------------------------------

OPEN_8_6 = {
    "groups-runs", "groups-bytes", "groups-half", "groups-model", "e4m3-runs", "e4m3-exact", "scales-runs", "scales-function",
    "search-pays", "smooth-pays",
}  # fmt: skip


@pytest.mark.slow
def test_fewer_bits_solved_repairs_what_outliers_break(tmp_path: Path) -> None:
    run = run_exercise("8.6", tmp_path / "work", solved=True, bits="3", group="16")
    check_healthy(run, tmp_path)
    assert run.metrics["yours"]["search_gain"] > 1.5
    assert run.metrics["outlier_ratio"] > 30
    steps = {row["format"]: row for row in run.metrics["decode"]}
    assert steps["int3 groups of 16"]["sim_ms_batch_1"] < 0.4 * steps["16 bits"]["sim_ms_batch_1"]
    assert run.metrics["sim_gain_batch_512"] == pytest.approx(1)


@pytest.mark.slow
def test_fewer_bits_as_delivered_is_whole_and_its_parts_are_open(tmp_path: Path) -> None:
    run = run_exercise("8.6", tmp_path / "work", outlier="1", gpu="a100")
    check_healthy(run, tmp_path, open_checks=OPEN_8_6)
    assert run.metrics["outlier_ratio"] == pytest.approx(1)
    assert [row["sim_ms_batch_1"] for row in run.metrics["decode"]][2] is None, "an A100 has no FP8"
    assert "my_scales.py is open: once it is written, three rows 'yours' will be here" in run.output


# --- 8.7 ----------------------------------------------------------------------------------------------------------------

PARTS_RUN = {"heads-run", "choice-runs", "experts-run"}
"""These checks are not judged while their parts are open."""
OF_YOURS = {
    "your-slices", "your-cache", "your-hand-over", "your-pieces", "shared-work", "your-choice", "choice-bytes", "your-experts",
    "expert-bytes",
}  # fmt: skip


@pytest.mark.slow
def test_a_model_on_ranks_as_delivered_is_whole_and_its_parts_are_open(tmp_path: Path) -> None:
    run = run_exercise("8.7", tmp_path / "work", ranks=2, ranks_per_node="1", senders="1", receivers="1", tokens="5")
    check_healthy(run, tmp_path, failures=PARTS_RUN, open_checks=OF_YOURS)
    assert [row["cache_share"] for row in run.metrics["slices"]] == [1, 0.5]
    assert run.metrics["sums_bytes"] == 2 * 2 * 64 * 8


@pytest.mark.slow
def test_a_model_on_ranks_solved_hands_over_between_unequal_cuts(tmp_path: Path) -> None:
    run = run_exercise("8.7", tmp_path / "work", solved=True, senders="1", receivers="2", tokens="8")
    check_healthy(run, tmp_path)
    assert [row["cache_share"] for row in run.metrics["slices"][:3]] == [1, 0.5, 0.5], "two key-value heads"
    assert [row["bytes"] for row in run.metrics["handed"]] == [37_888, 18_944]
    assert run.metrics["yours"]["choice"]["bytes_per_step"] == run.metrics["sums_bytes"] + 16
    all_rows, by_expert, by_rank = (row["bytes"] for row in run.metrics["moved"])
    assert by_rank < by_expert < all_rows


@pytest.mark.slow
def test_a_part_that_ends_its_process_costs_the_other_parts_nothing(tmp_path: Path) -> None:
    sizes = ("my_experts.py", "    dist.all_to_all_single(expected, sent, group=group)\n", "    expected = sent.clone()\n")
    run = run_exercise("8.7", tmp_path / "work", sizes, solved=True, tokens="4")
    assert run.code == 0, run.output
    assert list_failed_checks(run) == {"experts-run"}
    assert "my_experts.py" in run.metrics["errors"]["experts"]
    assert run.metrics["yours"]["heads"]["tokens_off"] == run.metrics["yours"]["choice"]["tokens_off"] == 0


# --- 8.8 ----------------------------------------------------------------------------------------------------------------

FEW = {"requests": "470"}


@pytest.mark.slow
def test_a_service_as_delivered_shows_queues_routers_and_pools(tmp_path: Path) -> None:
    run = run_exercise("8.8", tmp_path / "work", **FEW)
    assert run.code == 0, run.output
    assert list_failed_checks(run) <= {"capacity-runs", "router-runs"}, "these two say nothing while their parts are open"
    assert run.metrics["plans"] == [], "other plans are shown once the learner's meets the limits"
    assert run.metrics["wait_ratio"] == pytest.approx(6, abs=0.5)


@pytest.mark.slow
def test_a_service_solved_keeps_its_limits_beside_other_plans(tmp_path: Path) -> None:
    run = run_exercise("8.8", tmp_path / "work", solved=True)
    check_healthy(run, tmp_path)
    assert run.metrics["plan"]["times_of_cheapest"] < 0.8, "the learner's router saves a GPU of four"
    assert run.metrics["two_pools_up_to_ms"] < run.metrics["one_pool_from_ms"]
    needed = {row["plan"]: row["engines"] for row in run.metrics["plans"]}
    assert needed["3 of a10g, bf16, my router"] == 3
    assert needed["4 of a10g, bf16"] == 4


@pytest.mark.slow
def test_a_service_with_a_fault_in_its_plan_ends_well_and_names_it(tmp_path: Path) -> None:
    wrong = ("my_service.yaml", "format: bf16", "format: fp8")
    short = ("service_trial.py", "QUEUE_REQUESTS = 200_000", "QUEUE_REQUESTS = 2000")
    run = run_exercise("8.8", tmp_path / "work", short, wrong, solved=["my_service.yaml"], **FEW)
    assert run.code == 0, run.output
    assert "rules" in list_failed_checks(run)
    assert "a10g has no units for fp8" in run.output
