"""The scheduler of an engine: how many tokens each request computes in the next step, by a clock and on a real engine.

You will learn    why engines plan every step, cut prompts into pieces, and take pages from running requests
You will produce  times, pauses and goodput of three schedulers by an L4's data sheet, and pauses of a real engine
Run it            python scheduler.py --engine=none           (by the clock, and a small model)
                  python scheduler.py --per-s=1.2 --budget=512
Your part         predict the tokens that are free; then my_scheduler.py and my_preemption.py
Reading           modules/08-inference-engines/lesson-4-scheduler.md
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import completions
import engines
import own_part
import real_steps
import schedule_trial
import step_clock
import torch
from bench import say
from paged_engine import LONGEST_ANSWER, PAGE, PART_ENGINE, PagePool, prompts_first, static
from request_traces import make_trace

PARTS = ("my_scheduler.py", "my_preemption.py")
LIMIT_S = 90
SHORT, LONG, ANSWER, AFTER = 16, 900, 80, 25  # tokens of two prompts and an answer; the long one comes after that many tokens
LARGE_BUDGET, SMALL_BUDGET = 1024, 64
COURSE_PAGES = 400  # for all of the small model's requests, with the longest answers
LIMIT_S_TOKEN = 60  # without a token, a real engine has stopped

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="schedulers by the clock of a data sheet, and on a real engine")
parser.add_argument("--gpu", default="l4", choices=list(step_clock.GPUS), help="the data sheet of the clock")
parser.add_argument(
    "--card", default="llama-3.1-8b", choices=["llama-2-7b", "llama-3.1-8b", "llama-3.1-70b", "qwen2.5-72b"], help="the model"
)
parser.add_argument("--requests", type=int, default=200, help="requests of the trace")
parser.add_argument("--per-s", type=float, default=0.9, help="requests that arrive in a second")
parser.add_argument("--budget", type=int, default=512, help="the most tokens of a step, for your scheduler")
parser.add_argument("--max-requests", type=int, default=64, help="the most requests that run at a time")
parser.add_argument("--pages", type=int, default=0, help="pages of 16 tokens; 0: what fits beside the weights")
parser.add_argument(
    "--memory-percent", type=int, default=80, help="percentage of the sheet's bandwidth that the engine reaches"
)
parser.add_argument("--compute-percent", type=int, default=60, help="percentage of the sheet's speed that the engine reaches")
parser.add_argument("--overhead-us", type=int, default=2000, help="microseconds that are added to each step")
parser.add_argument("--ttft-ms", type=int, default=2000, help="longest TTFT that counts for goodput")
parser.add_argument("--tpot-ms", type=int, default=150, help="longest TPOT that counts for goodput")
parser.add_argument("--link-gb", type=float, default=12, help="GB/s between GPU and host, for my_preemption.py")
parser.add_argument("--engine", default="auto", choices=["auto", "vllm", "transformers", "none"], help="the real engine")
args = parser.parse_args()
if min(args.budget, args.max_requests, args.requests, args.memory_percent, args.compute_percent) < 1 or args.per_s < 0.001:
    parser.error("--budget, --max-requests, --requests and both percentages must be at least 1, and --per-s at least 0.001")
settings: dict[str, Any] = vars(args) | {}
clock = schedule_trial.make_clock(settings)
settings["pages"] = args.pages or clock.pages()
trace = make_trace("chat", args.requests, args.per_s)
needed = -(-(max(request.prompt_tokens for request in trace) + LONGEST_ANSWER) // PAGE)
if not clock.pages() and not args.pages:
    parser.error(f"{args.card} does not fit into one {args.gpu}: choose a larger GPU, or say how many pages there are")
if settings["pages"] < needed:
    parser.error(f"the longest request needs {needed} pages, but there are only {settings['pages']}: --pages={needed} or more")

# --- set-up ------------------------------------------------------------------------------------------------------------
scheduling, preempting = (own_part.Process(name) for name in PARTS)  # before torch computes anything
torch.set_num_threads(1)  # the tensors are small, and threads would only wait for each other
device = bench.here()
out = Path(os.environ.get("GPUCOURSE_OUT") or ".").resolve()
out.mkdir(parents=True, exist_ok=True)
rates = [round(args.per_s * share, 3) for share in (1 / 3, 2 / 3, 1, 4 / 3)]
COURSE = {"static batches": static, "prompts first": prompts_first}

# --- the experiment: two schedulers by the clock -----------------------------------------------------------------------
by_rate = [schedule_trial.describe(schedule, name, settings, per_s=rate) for name, schedule in COURSE.items() for rate in rates]
steps = {name: schedule_trial.list_steps(schedule_trial.simulate(schedule, settings)) for name, schedule in COURSE.items()}
kinds = {
    "a token after 1,000": [(999, 1)], "16 tokens, each after 1,000": [(999, 1)] * 16,
    "64 tokens, each after 1,000": [(999, 1)] * 64, "512 tokens of a prompt": [(0, 512)],
    "2,048 tokens of a prompt": [(0, 2048)],
}  # fmt: skip
times = [
    {"step": name, "sim_ms": clock.ns(rows) / 1e6, "sim_read_ms": clock.read_ns(rows) / 1e6,
     "sim_compute_ms": clock.compute_ns(rows) / 1e6}
    for name, rows in kinds.items()
]  # fmt: skip
course_run = real_steps.run_for_real(static, PagePool(COURSE_PAGES), COURSE_PAGES, real_steps.draw_prompts())

# --- the experiment: your parts ----------------------------------------------------------------------------------------
outcome = scheduling.run(None, "schedule_trial:try_scheduler", limit_s=LIMIT_S, settings=settings, rates=rates, needed=needed)
yours: dict[str, Any] = outcome.results[0] if outcome.state == "ran" else {}
formulas = preempting.run(None, "schedule_trial:try_preemption", limit_s=LIMIT_S, settings=settings, link_gb=args.link_gb)
by_rate += yours.get("policies", [])
if yours:
    steps["yours"] = yours["steps"]


# --- the experiment: a real engine -------------------------------------------------------------------------------------
def measure_pauses(engine: engines.Engine, scheduler: str, budget: int) -> dict[str, Any]:
    """Return the pauses between tokens of an answer, during which a long prompt arrives, on an engine with this budget."""
    source = random.Random(0)
    short, long = ([source.randrange(3, 1000) for _ in range(length)] for length in (SHORT, LONG))
    model = PART_ENGINE if scheduler == "yours" else engine.model

    def send(prompt: list[int], tokens: int, watch: Callable[[int], object] | None = None) -> completions.Answer:
        return completions.complete(engine.url, model, prompt, tokens, watch=watch, limit_s=LIMIT_S_TOKEN)

    send(short, 8)
    with ThreadPoolExecutor(1) as pool:
        later: list[Future[completions.Answer]] = []
        first = send(short, ANSWER, lambda count: later.append(pool.submit(send, long, 2)) if count == AFTER else None)
        second = later[0].result()
    pauses = [1e3 * (later - earlier) for earlier, later in zip(first.arrivals_s[5:], first.arrivals_s[6:])]  # noqa: B905
    return {"scheduler": scheduler, "budget": budget, "median_pause_ms": bench.percentile(pauses, 50),
            "longest_pause_ms": max(pauses), "ttft_long_ms": 1e3 * second.ttft_s}  # fmt: skip


kind = "" if args.engine == "none" else engines.choose(args.engine)
measured: list[dict[str, Any]] = []
engine_error = None
limits = {"max_num_seqs": 4, "max_model_len": 1000, "part_budget": SMALL_BUDGET}
served_part = Path(__file__).with_name(PARTS[0]) if yours and kind != "vllm" else None
for budget in {"": (), "vllm": (LARGE_BUDGET, SMALL_BUDGET)}.get(kind, (LARGE_BUDGET,)):
    with engines.running(kind, "tiny", out, **limits, budget=budget, part=served_part) as engine:
        measured.append(measure_pauses(engine, "vLLM's own" if kind == "vllm" else "prompts first", budget))
        if served_part:
            try:
                measured.append(measure_pauses(engine, "yours", SMALL_BUDGET))
                engine_error = "no error"
            except (completions.RefusedByEngine, OSError) as error:  # the learner's scheduler failed in it, or is stuck
                engine_error = f"{error}: look at the end of engine.log"

# --- the record --------------------------------------------------------------------------------------------------------
at_rate = {row["policy"]: row for row in by_rate if row["per_s"] == rates[2]}
your_row = at_rate.get("yours", {})
pause_ms = at_rate["prompts first"]["sim_longest_pause_ms"]
is_comparable = args.budget <= 1024 and pause_ms >= 1000  # a long prompt came while others were answered
preempt = formulas.results[0] if formulas.state == "ran" else []
FIGURES = ("sim_longest_pause_ms", "sim_ttft_p99_ms", "goodput_percent", "preempted", "fullest_step", "most_running")
metrics = {
    **settings, "policies": list(at_rate.values()), "rates": by_rate, "budgets": yours.get("budgets", []),
    "pools": yours.get("pools", []), "steps": times, "preempt": preempt,
    "free_tokens": schedule_trial.count_free_tokens(clock), "engine_kind": kind or None, "engine_times": measured,
    "pause_ratio": measured[0]["longest_pause_ms"] / measured[1]["longest_pause_ms"] if len(measured) > 1 else None,
    "engine_error": engine_error,
    "static_of_prompts_first": at_rate["static batches"]["sim_ttft_p99_ms"] / at_rate["prompts first"]["sim_ttft_p99_ms"],
    "static_ttft_p99_ms": at_rate["static batches"]["sim_ttft_p99_ms"],
    "prompts_first_pause_ms": pause_ms,
    "tokens_off": course_run["tokens_off"], "smallest_gap": course_run["smallest_gap"],
    "scheduler_error": "no error" if yours else outcome.text,
    "preemption_error": "no error" if formulas.state == "ran" else formulas.text,
    "yours": {key: your_row.get(key) for key in FIGURES}
    | {key: yours.get(key) for key in ("tokens_off", "real_preempted", "real_again")},
    "pause_of_prompts_first": your_row["sim_longest_pause_ms"] / pause_ms if your_row and is_comparable else None,
    "best_budget": max((row["budget"] for row in yours.get("budgets", []) if row["sim_tpot_p99_ms"] <= 80), default=None),
    "fewest_pages_preempted": yours["pools"][-1]["preempted"] if yours else None,
    "again_up_to": max((row["tokens"] for row in preempt if row["beside_ms"] <= row["swap_ms"]), default=None),
    "swap_from": min((row["tokens"] for row in preempt if row["beside_ms"] > row["swap_ms"]), default=None),
}  # fmt: skip
sheet = f"{args.card} on {args.gpu}, {args.memory_percent} % of its bandwidth, {args.compute_percent} % of its speed"
titles = {"policy": "scheduler", "sim_ttft_p50_ms": "TTFT p50", "sim_ttft_p99_ms": "TTFT p99", "sim_tpot_p99_ms": "TPOT p99"}
titles |= {"sim_longest_pause_ms": "longest pause", "goodput_percent": "goodput %", "preempted": "preempted"}
title = f"By the clock of a data sheet, in ms: {args.requests} requests, {args.per_s:g}/s; {sheet}"
bench.say_table(metrics["policies"], titles, title=title)
if measured:
    columns = {
        "scheduler": "scheduler",
        "budget": "budget",
        "median_pause_ms": "median pause",
        "longest_pause_ms": "longest pause",
    }
    title = f"A long prompt arrives while an answer is being generated ({kind}, device: {device.type}), in ms"
    bench.say_table(measured, columns | {"ttft_long_ms": "TTFT of the long one"}, title=title)
for name, result in zip(PARTS, (outcome, formulas), strict=True):
    if result.state == "open":
        say(f"{name} is not written yet: its rows would say yours. {result.text}")
    elif result.state == "failed":
        say(f"{name}: {result.text}")
text = "\n\n".join("\n".join([f"Steps of {name}, around the fullest", *lines]) for name, lines in steps.items())
(out / "steps.txt").write_text(text + "\n", encoding="utf-8")
bench.keep_files(__file__, *PARTS)
path = bench.write_metrics("scheduler/1", device, world_size=1, seed=0, metrics=metrics)
bench.say_end(path, device)
