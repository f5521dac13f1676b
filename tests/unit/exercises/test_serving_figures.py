"""Figures in the lessons of 8.7 and 8.8 are those of the course's own clocks, traces and prices."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.course import CATALOG, FOLDERS
from tests.system.exercising import needs_torch
from tests.unit.exercises.scripts import beside_the_script

FOLDER = "08-inference-engines"
cards = beside_the_script(FOLDER, "cards")
service_plans = beside_the_script(FOLDER, "service_plans")
service_trial = beside_the_script(FOLDER, "service_trial")
slice_clock = beside_the_script(FOLDER, "slice_clock")
step_clock = beside_the_script(FOLDER, "step_clock")


def read_lesson(name: str) -> str:
    """Return a lesson in one line, without the breaks of its lines."""
    path: Path = FOLDERS.modules / FOLDER / name
    return " ".join(path.read_text(encoding="utf-8").split())


RANKS, SERVICE = read_lesson("lesson-8-ranks.md"), read_lesson("lesson-9-service.md")


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ("nvlink", "{1} ms on 2 GPUs and {3} on 8, of which {sums} are all-reduces"),
        ("pcie", "{1} ms on 2 GPUs, {2} on 4 and {3} on 8, of which {sums} are all-reduces"),
        ("network", "{1} and {3} ms, of which {sums} are all-reduces"),
    ],
)
def test_a_decode_step_by_slices_takes_what_the_explanation_says(link: str, words: str) -> None:
    """The steps over PCIe are predicted, so the lesson has only steps over NVLink, on at most four GPUs."""
    clocks = [slice_clock.SliceClock(step_clock.Clock("llama-3.1-70b", "h100"), slices, link) for slices in (1, 2, 4, 8)]
    steps = [f"{clock.ns([(1000, 1)] * 32) / 1e6:.1f}" for clock in clocks]
    sums = f"{160 * clocks[-1].all_reduce_ns(32) / 1e6:.1f} ms"
    prediction = CATALOG.exercise("8.7")[1].predict
    assert prediction
    assert words.format(*steps, sums=sums) in (prediction.explanation or "")
    assert steps[3] not in RANKS
    if link == "nvlink":
        assert f"| NVLink | {steps[0]} ms | {steps[1]} | {steps[2]} |" in RANKS


def test_sums_and_hand_overs_have_the_bytes_that_the_lesson_says() -> None:
    large, small = cards.CARDS["llama-3.1-70b"], cards.CARDS["llama-3.1-8b"]
    one = 32 * large.width * 2
    assert f"one sum takes {one >> 10} KiB, and {2 * large.layers} of them take {2 * large.layers * one >> 20} MiB" in RANKS
    token = 2 * small.layers * small.kv_heads * small.head_dim * 2
    assert f"has {token >> 10} KiB in 16 bits, so a prompt of 3,000 tokens is {3000 * token >> 20} MiB" in RANKS
    assert f"At 25 GB/s that takes {3000 * token / 25e6:.0f} ms" in RANKS
    assert [round(us * 160 / 1e3, 1) for us in (11.8, 7.8)] == [1.9, 1.2]
    assert "that is 1.9 and 1.2 ms of every step" in RANKS


@needs_torch
def test_experts_on_ranks_are_as_uneven_as_the_lesson_says() -> None:
    rows = beside_the_script(FOLDER, "ranks_report").list_placements()
    in_order, by_load, copies = (row["heaviest_over_mean"] for row in rows[:3])
    words = (
        f"has {in_order:.1f} times the mean if experts are placed in the order of their numbers, and still {by_load:.1f} times"
    )
    assert words in RANKS
    assert (
        f"With 8 copies the busiest rank has {100 * (copies - 1):.1f} % more than the mean; the plot shows {copies:.3g}"
        in RANKS
    )


def test_waits_are_those_of_the_simulated_queue() -> None:
    service_s = service_trial.list_service_s()
    mean, square = sum(service_s) / len(service_s), sum(time * time for time in service_s) / len(service_s)
    assert f"take {1e3 * mean:.0f} ms on average, and the mean of the squares is {square / mean**2:.1f} times" in SERVICE
    waits = [
        1e3 * service_trial.simulate_wait_s(service_trial.find_rate(use, service_s), service_s) for use in service_trial.USES
    ]
    assert f"{waits[0]:.0f} ms at 20 % of use, and {waits[4] / 1e3:.1f} s at 90 %" in SERVICE
    assert round(waits[3] / waits[1]) == 6


def test_routers_find_and_keep_what_the_explanation_says() -> None:
    rows, _ = service_trial.list_routers(500)
    questions = {question.id: question for question in CATALOG.exercise("8.8")[1].questions}
    quoted = set(re.findall(r"\d+\.\d", (questions["fifth-engine"].explanation or "").partition("100 ms")[2]))
    assert quoted == {f"{row[key]:.1f}" for row in rows for key in ("found_percent", "goodput_percent")}
    assert not [number for number in quoted if f"{number} %" in SERVICE]


@pytest.mark.slow
def test_pools_serve_what_the_lesson_says() -> None:
    rows, _ = service_trial.list_pools(500)
    rates: dict[tuple[int, str], Any] = {(row["tpot_ms"], row["pools"]): row["sim_per_s_per_gpu"] for row in rows}
    for tpot_ms in (75, 150):  # a question asks what is between
        words = " | ".join(f"{rates[tpot_ms, pools]:.2f}" for pools in ("one pool", "1 + 3", "2 + 2"))
        assert f"| {tpot_ms} ms | {words} |" in SERVICE


@pytest.mark.parametrize("gpu", ["l4", "a10g", "l40s", "h100"])
def test_machines_cost_and_take_what_the_lesson_says(gpu: str) -> None:
    (offer,) = (one for one in service_plans.list_offers() if (one.gpu, one.slices) == (gpu, 1))
    bf16, fp8 = (f"{offer.clock('llama-3.1-8b', name).ns([(0, 1)]) / 1e6:.1f} ms" for name in slice_clock.FORMATS)
    fp8 = "no units" if offer.clock("llama-3.1-8b", "fp8").clock.sheet.fp8 is None else fp8
    assert f"| {gpu.upper()} | {offer.usd_per_hour:.2f} | {bf16} | {fp8} |" in SERVICE
