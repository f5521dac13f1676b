"""Run schedulers on a clock that follows a data sheet, and compute their plans with a small model in pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import engine_sim
import torch
from engine_sim import Run
from paged_engine import PagePool, Schedule
from real_steps import REAL_PAGES, draw_prompts, run_for_real
from request_traces import make_trace
from step_clock import Clock

SHARES_OF_PAGES = (1.0, 1.5, 1.1)  # of all pages, then of those that the longest request needs
ANSWERS, ANSWER_TOKENS = 20, 1000  # beside which a preempted request is computed again
BUDGETS = (64, 128, 256, 512, 1024, 2048, 8192)
Row = dict[str, Any]


def simulate(schedule: Schedule, settings: Row, **changes: Any) -> Run:
    """Run a trace on the simulated clock, and return the run. `settings` are the script's; `changes` replaces some of them."""
    values = settings | changes
    trace = make_trace("chat", values["requests"], values["per_s"])
    limits = {name: values[name] for name in ("pages", "budget", "max_requests")}
    return engine_sim.simulate(trace, schedule, make_clock(values), **limits)


def make_clock(settings: Row) -> Clock:
    """Return the clock of the script's settings."""
    shares = {name: settings[name] for name in ("memory_percent", "compute_percent")}
    return Clock(settings["card"], settings["gpu"], **shares, overhead_ns=settings["overhead_us"] * 1000)


def describe(schedule: Schedule, policy: str, settings: Row, **changes: Any) -> Row:
    """Return the row of one run on the simulated clock, or, if it did not end, the row without figures."""
    values = settings | changes
    row = {"policy": policy, "label": policy} | {name: values[name] for name in ("per_s", "budget", "pages")}
    run = simulate(schedule, settings, **changes)
    row |= engine_sim.describe(run.requests, run.end_ns, ttft_ms=values["ttft_ms"], tpot_ms=values["tpot_ms"])
    return row | {
        "fullest_step": max(sum(step.plan.values()) for step in run.steps),
        "most_running": max(len(step.running) for step in run.steps),
    }


def count_free_tokens(clock: Clock) -> int:
    """Return how many tokens a prompt's step may have while reading the weights takes longer than computing."""
    tokens = 1
    while clock.compute_ns([(0, tokens + 1)]) <= clock.read_ns([(0, tokens + 1)]):
        tokens += 1
    return tokens


def list_steps(run: Run, count: int = 20) -> list[str]:
    """Return lines of text about the steps around the fullest one: when each begins, and how many tokens each request gets."""
    fullest = max(range(len(run.steps)), key=lambda number: sum(run.steps[number].plan.values()))
    first, lines = max(0, fullest - count // 2), []
    for number, step in enumerate(run.steps[first : first + count], first + 1):
        words = [f"{name} {tokens}" for name, tokens in step.plan.items()]
        shown = ", ".join(words[:8]) + (f" and {len(words) - 8} more" if len(words) > 8 else "")
        lines.append(f"{number:5} {step.start_ns / 1e6:9.1f} ms  {sum(step.plan.values()):5} tokens: {shown}")
    return lines


def try_scheduler(_world: object, *, settings: Row, rates: list[float], needed: int) -> Row:
    """Return the results of the learner's my_scheduler.py: for several rates, budgets and numbers of pages,
    and on a small model."""
    import my_scheduler

    torch.set_num_threads(1)
    schedule = my_scheduler.schedule
    run = simulate(schedule, settings)
    pages = sorted({settings["pages"], *(int(share * needed) for share in SHARES_OF_PAGES)}, reverse=True)
    return {
        "policies": [describe(schedule, "yours", settings, per_s=rate) for rate in rates],
        "budgets": [describe(schedule, "yours", settings, budget=budget) for budget in BUDGETS],
        "pools": [describe(schedule, "yours", settings, pages=count) for count in pages],
        "steps": list_steps(run),
        **run_for_real(schedule, PagePool(REAL_PAGES), REAL_PAGES, draw_prompts()),
    }


def try_preemption(_world: object, *, settings: Row, link_gb: float) -> list[Row]:
    """Return the times that the learner's my_preemption.py computes: a row for each of several lengths, in milliseconds."""
    import my_preemption

    return compare_preemptions(my_preemption.recompute_ns, my_preemption.swap_ns, make_clock(settings), link_gb)


def compare_preemptions(
    recompute_ns: Callable[..., float], swap_ns: Callable[..., float], clock: Clock, link_gb: float
) -> list[Row]:
    """Return a row for each length, with four times in milliseconds. Two are of computing the tokens again, alone and beside
    running answers. Two are of swapping them, in large copies and in small ones (4 for a token, 10 µs each)."""
    answers = [(ANSWER_TOKENS, 1)] * ANSWERS
    return [
        {
            "tokens": tokens,
            "recompute_ms": float(recompute_ns(tokens, [], clock)) / 1e6,
            "beside_ms": float(recompute_ns(tokens, answers, clock)) / 1e6,
            "swap_ms": float(swap_ns(tokens, clock.cache_bytes, link_gb, 0.0, 0)) / 1e6,
            "small_ms": float(swap_ns(tokens, clock.cache_bytes, link_gb, 4.0, 10_000)) / 1e6,
        }
        for tokens in (16, 128, 512, 2048, 8192)
    ]
