"""Figures in the lessons of 8.2 and 8.3 are those of the course's own files, with the settings of a run."""

from __future__ import annotations

import math
import random
from types import ModuleType
from typing import Any

import pytest

from tests.course import CATALOG, FOLDERS
from tests.system.exercising import needs_torch
from tests.unit.exercises.scripts import beside_the_script

FOLDER = "08-inference-engines"
DEFAULTS = {parameter.name: parameter.default for parameter in CATALOG.exercise("8.3")[1].parameters}
waste = beside_the_script(FOLDER, "waste")
step_clock = beside_the_script(FOLDER, "step_clock")


def read_lesson(name: str) -> str:
    """Return a lesson in one line."""
    return " ".join((FOLDERS.modules / FOLDER / name).read_text(encoding="utf-8").split())


PAGES, SCHEDULER = read_lesson("lesson-3-pages.md"), read_lesson("lesson-4-scheduler.md")


@pytest.fixture(scope="module")
def trial() -> ModuleType:
    return beside_the_script(FOLDER, "schedule_trial")


@pytest.fixture(scope="module")
def course_schedule(trial: ModuleType) -> Any:
    """Return the solution of 8.3; it imports paged_engine for the types alone."""
    text = (FOLDERS.exercises / FOLDER / "solutions" / "my_scheduler.py").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    exec(compile(text.replace("from paged_engine import PagePool, Request\n", ""), "my_scheduler.py", "exec"), names)
    return names["schedule"]


@needs_torch
def test_waste_in_the_lesson_is_that_of_a_local_run() -> None:
    page_trial = beside_the_script(FOLDER, "page_trial")
    requests = page_trial.draw_requests(500, 2048)
    for how, rule in page_trial.waste.list_rules(2048, (16, 256)).items():
        used, empty = page_trial.waste.follow(requests, page_trial.waste.Reserved(rule))
        assert (f"| {how} | {used:.1f} % |" in PAGES) == (how != "pages of 16"), "the run shows pages of 16"
        if how.startswith("pages"):
            assert empty == pytest.approx((int(how.split()[-1]) - 1) / 2, rel=0.03)


def test_worked_examples_of_pages_hold() -> None:
    weights = [math.exp(score - 3) for score in (1, 3, 2)]
    assert f"l = e⁻² + 1 = {weights[0] + 1:.3f}, o = 10 e⁻² + 20 = {10 * weights[0] + 20:.2f}" in PAGES
    out = sum(weight * value for weight, value in zip(weights, (10, 20, 30), strict=True))
    assert f"l = 1.135 + e⁻¹ = {sum(weights):.3f}, o = 21.35 + 30 e⁻¹ = {out:.2f}" in PAGES
    assert f"Result: {out / sum(weights):.2f}" in PAGES
    (question,) = [question for question in CATALOG.exercise("8.2")[1].questions if question.id == "table"]
    gigabytes = f"{128_000 * step_clock.Clock().cache_bytes / 1e9:.1f} GB"
    assert f"{128_000 // 16:,} entries of 4 bytes are 32 kB, compared with {gigabytes}" in (question.look_for or "")
    assert gigabytes not in PAGES


def test_steps_in_the_lesson_are_those_of_the_clock() -> None:
    clock = step_clock.Clock()
    kinds = {"1 token, 999 before it": [(999, 1)], "16 tokens, each with 999 before it": [(999, 1)] * 16,
             "512 tokens of a prompt": [(0, 512)], "2,048 tokens of a prompt": [(0, 2048)]}  # fmt: skip
    for name, rows in kinds.items():
        times = (clock.read_ns(rows), clock.compute_ns(rows), clock.ns(rows))
        assert f"| {name} | " + " | ".join(f"{time / 1e6:.1f} ms" for time in times) + " |" in SCHEDULER
    clock = step_clock.Clock(gpu="h100")
    tokens = clock.operations_per_s / clock.bytes_per_s
    assert f"for an H100: speed / bandwidth = 60 % × 989e12 / (80 % × 3,350e9) = {tokens:.0f} tokens" in SCHEDULER


@needs_torch
def test_budgets_and_pages_in_the_lesson_are_those_of_a_run(trial: ModuleType, course_schedule: Any) -> None:
    settings = DEFAULTS | {"pages": 2641}
    for budget in (64, 256, 2048, 8192):
        row = trial.describe(course_schedule, "", settings, budget=budget)
        cells = (f"{budget:,}", f"{row['sim_ttft_p99_ms']:,.0f} ms", f"{row['sim_tpot_p99_ms']:.1f} ms",
                 f"{row['sim_longest_pause_ms']:,.0f} ms", f"{row['goodput_percent']:.1f} %")  # fmt: skip
        assert f"| {' | '.join(cells)} |" in SCHEDULER
    for pages in (2641, 799, 586, 533):
        row = trial.describe(course_schedule, "", settings, pages=pages)
        cells = (f"{pages:,}", str(row["preempted"]), f"{row['computed_again']:,}", f"{row['sim_ttft_p99_ms']:,.0f} ms",
                 f"{row['goodput_percent']:.1f} %")  # fmt: skip
        assert f"| {' | '.join(cells)} |" in SCHEDULER
    trace = trial.make_trace("chat", 200, 0.9)
    total = sum(request.prompt_tokens + request.answer_tokens for request in trace)
    assert f"have {total:,} tokens in all: with 533 pages, {row['computed_again'] / total:.1f} times" in SCHEDULER


@needs_torch
def test_preemption_in_the_lesson_is_by_its_formulas(trial: ModuleType) -> None:
    def swap(tokens: int, size: int, link: float, copies: float, copy_ns: int) -> float:
        return 2 * tokens * (size / link + copies * copy_ns)

    def recompute(tokens: int, rows: list[tuple[int, int]], clock: Any) -> int:
        return int(clock.ns([*rows, (0, tokens)])) - (int(clock.ns(rows)) if rows else 0)

    rows = {gpu: trial.compare_preemptions(recompute, swap, step_clock.Clock(gpu=gpu), 12.0)
            for gpu in ("l4", "h100")}  # fmt: skip
    l4, h100 = (next(row for row in rows[gpu] if row["tokens"] == 2048) for gpu in ("l4", "h100"))
    both = f"computing again takes {l4['recompute_ms']:.0f} ms, and swapping takes {l4['swap_ms']:.0f} ms"
    assert f"on an L4, {both}" in SCHEDULER
    assert f"swapping takes {h100['small_ms']:.0f} ms" in SCHEDULER
    (question,) = [question for question in CATALOG.exercise("8.3")[1].questions if question.id == "swap"]
    assert f"computing again {h100['recompute_ms']:.0f} ms, and copies" in (question.explanation or "")
    few = next(row for row in rows["l4"] if row["tokens"] == 128)
    assert few["beside_ms"] < few["swap_ms"] < few["recompute_ms"], "beside other requests few tokens are nearly free"


@needs_torch
@pytest.mark.parametrize(
    ("prompt", "answer", "page", "samples"), [(21, 13, 16, 4), (32, 3, 16, 5), (10, 1, 16, 3), (9, 6, 1, 2)]
)
def test_planned_pages_hold_what_the_formula_says(prompt: int, answer: int, page: int, samples: int) -> None:
    page_trial = beside_the_script(FOLDER, "page_trial")
    planned = page_trial.Planned(page, prompt=prompt, answer=answer, samples=samples)
    row = page_trial.follow_answers(planned, planned.pages, page=page, prompt=prompt, answer=answer, samples=samples)
    held = prompt // page + samples * (-(-(prompt + answer) // page) - prompt // page)
    assert (row["pages"], row["copies"]) == (held, samples - 1 if prompt % page else 0)
    assert row["logits_off"] < 1e-9


def test_follow_counts_the_room_of_running_requests_only() -> None:
    source = random.Random(1)
    requests = [waste.Request(f"r{number}", 0, source.randrange(1, 50), source.randrange(1, 20)) for number in range(100)]
    exact = waste.Reserved(lambda _prompt, _answer, now: now)
    assert waste.follow(requests, exact) == (100.0, 0.0)
    assert exact.room() == 0
    used, empty = waste.follow(requests, waste.Reserved(lambda _prompt, _answer, now: 2 * now))
    assert used == 50
    assert empty > 0
