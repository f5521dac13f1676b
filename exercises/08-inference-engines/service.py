"""A service within its limits: a queue, routers, one pool or two, and what a plan costs, all on a simulated clock.

You will learn    how long requests wait, why a router looks at caches and loads, when two pools win, what a good token costs
You will produce  formulas of capacity, a router, and a plan for a load, each compared with a simulation; four pictures
Run it            python service.py --requests=500
Your part         predict a wait; then my_capacity.py, my_router.py and my_service.yaml
Reading           modules/08-inference-engines/lesson-9-service.md
"""

from __future__ import annotations

import argparse
import math
import shutil
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import own_part
import yaml
from bench import say
from service_file import PUZZLES, read_service
from service_plans import MINE, Plan, find_forbidden, find_problems, list_offers, list_plans, make_load, price
from service_trial import (
    TOLERATED_USE,
    USES,
    describe_means,
    find_overload_percent,
    find_rate,
    list_fleets,
    list_pools,
    list_routers,
    list_service_s,
    simulate_wait_s,
)

SEED, NO_FAULT, FIRST_REQUESTS = 0, "no fault", 20
PRICED = ("goodput_percent", "usd_per_million", "usd_per_million_of_8_hours", "times_of_cheapest")
HERE = Path(__file__).resolve().parent
CARDS = ("llama-3.1-8b", "llama-3.1-70b")

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="a service within its limits, by the clock of a data sheet")
parser.add_argument(
    "--puzzle", type=int, default=0, help="the number of the load to plan for; 0 means the puzzle in my_service.yaml"
)
parser.add_argument("--card", choices=["planned", *CARDS], default="planned", help="another model for the load")
parser.add_argument("--kind", choices=["planned", "chat", "documents"], default="planned", help="another kind of requests")
parser.add_argument("--per-s", type=float, default=0.0, help="another rate of the load; 0 means the puzzle's")
parser.add_argument("--ttft-ms", type=int, default=0, help="another limit on TTFT; 0 means the puzzle's")
parser.add_argument("--tpot-ms", type=int, default=0, help="another limit on TPOT; 0 means the puzzle's")
parser.add_argument("--good-percent", type=int, default=95, help="percentage of the requests that must meet both limits")
parser.add_argument("--requests", type=int, default=500, help="requests of each trace")
args = parser.parse_args()
if not 0 <= args.puzzle <= PUZZLES or min(args.per_s, args.ttft_ms, args.tpot_ms) < 0 or args.requests < 100:
    parser.error(f"--puzzle must be from 0 to {PUZZLES}, --requests at least 100, and no number below 0")

# --- the load and the plan ---------------------------------------------------------------------------------------------
parts = {name: own_part.Process(f"my_{name}.py") for name in ("capacity", "router")}
try:
    file = read_service(yaml.safe_load((HERE / "my_service.yaml").read_text(encoding="utf-8")))
    fault = file.faults[0] if file.faults else NO_FAULT
except (yaml.YAMLError, UnicodeDecodeError) as error:
    file, fault = read_service({}), " ".join(str(error).split())
load = make_load(args.puzzle or file.values.get("puzzle", 1))
changes: dict[str, Any] = {name: value for name in ("card", "kind") if (value := getattr(args, name)) != "planned"}
changes |= {name: value for name in ("per_s", "ttft_ms", "tpot_ms") if (value := getattr(args, name))}
load = replace(load, good_percent=args.good_percent, **changes)
if args.requests < (least := load.count_least()):
    parser.error(f"--requests ({args.requests}) is too small for this load: it needs {least}, five times as many as are inside")
trace = load.make_trace(args.requests)
plan = file.plan
problems = find_problems(load, plan, trace) | find_forbidden(load, plan) if plan else {}
mine = plan if plan and not problems and plan.router == MINE else None
router = parts["router"].run(None, "service_trial:route_with_yours", limit_s=60, requests=args.requests, load=asdict(load),
                             plan=asdict(mine) if mine else None)  # fmt: skip
if mine and router.state != "ran":
    problems["no-router"] = "the plan uses my_router.py, which did not run"
paper = price(load, plan, trace) if plan and not problems and not mine else None
if mine and router.state == "ran":
    paper = router.results[0]["plan"]
quota = f"the account may rent {load.max_gpus} GPUs of {' or '.join(load.gpus)}, with weights in {' or '.join(load.formats)}"
limits = f"TTFT {load.ttft_ms} ms and TPOT {load.tpot_ms} ms for {load.good_percent} %"
say(f"load: {load.per_s:g} requests a second ({load.kind}) for {load.card}, {limits} of the requests; {quota}")
for sentence in problems.values():
    say(f"my_service.yaml: {sentence}")
if fault != NO_FAULT:
    say(f"my_service.yaml cannot be used: {fault}")
elif plan is None:
    say(f"my_service.yaml still has empty values: {', '.join(file.empty)}")

# --- the simulations ---------------------------------------------------------------------------------------------------
service_s = list_service_s()
queue: list[dict[str, Any]] = [
    {"use_percent": 100 * use, "sim_wait_ms": 1e3 * simulate_wait_s(find_rate(use, service_s), service_s)} for use in USES
]
for row in queue:
    row |= {"by_yours_ms": None, "off_percent": None}
routers, in_turns = list_routers(args.requests)
pools, little_off = list_pools(args.requests)
example = Plan("l40s", 1, 2)
means = describe_means(load, example.run(load, trace) if not find_problems(load, example, trace) else in_turns)
means |= {"inside_by_yours": None, "tokens_held_by_yours": None}
plans = list_plans(load, trace)
shown = [{"whose": "yours", "label": f"yours: {paper['plan']}", **paper}] if paper else []
shown += [{"whose": "the course's", "label": row["plan"], **row} for row in plans[:8]] if paper and paper["within"] else []
settings: dict[str, Any] = {"means": means, "load": vars(load), "fleets": list_fleets(load, trace, shown)}
capacity = parts["capacity"].run(None, "service_trial:compute_with_yours", limit_s=20, service_s=service_s, **settings)
outcomes = {"capacity": capacity, "router": router}
yours: dict[str, Any] = dict.fromkeys(("wait_off_percent", "inside_off_percent", "goodput_percent"))
if capacity.state == "ran":
    answers = capacity.results[0]
    for row, wait_ms in zip(queue, answers["waits_ms"], strict=True):
        row |= {"by_yours_ms": wait_ms, "off_percent": 100 * (wait_ms / row["sim_wait_ms"] - 1)}
    tolerated = [abs(row["off_percent"]) for row in queue if row["use_percent"] <= 100 * TOLERATED_USE]
    yours["wait_off_percent"] = max(tolerated) if all(map(math.isfinite, tolerated)) else math.inf
    yours["inside_off_percent"] = 100 * abs(answers["inside"] / means["inside"] - 1)
    means |= {"inside_by_yours": answers["inside"], "tokens_held_by_yours": answers["tokens_held"]}
    for row, engines in zip(shown, answers["engines"], strict=True):
        row["engines_by_yours"] = engines
simple_percent = max(row["goodput_percent"] for row in routers)
if router.state == "ran":
    routers.append(router.results[0]["row"])
    yours["goodput_percent"] = routers[-1]["goodput_percent"]

# --- the record --------------------------------------------------------------------------------------------------------
cheapest = plans[0] if plans else None
is_shown = bool(paper and paper["within"])
if paper and paper["usd_per_million"] and cheapest:
    paper["times_of_cheapest"] = paper["usd_per_million"] / cheapest["usd_per_million"]
if paper and paper["usd_per_million"]:
    paper["usd_per_million_of_8_hours"] = 24 / 8 * paper["usd_per_million"]
wait_ms = {row["use_percent"]: row["sim_wait_ms"] for row in queue}
best_pools = {row["tpot_ms"]: {} for row in pools}
for row in pools:
    best_pools[row["tpot_ms"]][row["pools"]] = row["sim_per_s_per_gpu"]
two_win = [tpot_ms for tpot_ms, rates in best_pools.items() if rates["one pool"] < max(rates.values())]
metrics = {
    **vars(args), "load": vars(load), "queue": queue, "wait_ratio": wait_ms[80] / wait_ms[40], "routers": routers,
    "simple_percent": simple_percent, "found_first_percent": in_turns.found_percent(FIRST_REQUESTS), "pools": pools,
    "two_pools_up_to_ms": max(two_win, default=None),
    "one_pool_from_ms": min((tpot_ms for tpot_ms in best_pools if tpot_ms not in two_win), default=None),
    "little_off": little_off, "overload_percent": find_overload_percent(args.requests), "means": [means],
    "handed_mb_per_s": load.per_s * means["prompt"] * example.offer.clock(load.card, "bf16").cache_bytes / 1e6,
    "plan": paper or dict.fromkeys(PRICED), "plan_fault": fault,
    "problem_count": len(problems) if plan else None, "plans": shown,
    "cheapest_usd": cheapest["usd_per_million"] if cheapest and is_shown else None,
    "reasons_words": len(file.words) if "reasons" in file.values else None,
    "offers": [vars(offer) for offer in list_offers()],
    "errors": {name: "no error" if outcome.state == "ran" else outcome.text for name, outcome in outcomes.items()},
    "yours": yours, "simulated": "all times come from the clock of a data sheet",
}  # fmt: skip
say("\nA queue in front of one L4 that computes prompts of chats (simulated)")
bench.say_table(queue, {"use_percent": "use %", "sim_wait_ms": "wait ms", "by_yours_ms": "by yours ms", "off_percent": "off %"})
say("\nRouters in front of four L4s, with hot documents (simulated)")
bench.say_table(routers, {"router": "router", "found_percent": "found %", "sim_ttft_p99_ms": "TTFT p99 ms",
                          "most_percent": "busiest engine %", "goodput_percent": "goodput %"})  # fmt: skip
for name, outcome in outcomes.items():
    if outcome.state == "open":
        say(f"my_{name}.py is not written yet: your figures would appear above. {outcome.text}")
    elif outcome.state == "failed":
        say(f"my_{name}.py: {outcome.text}")
if paper:
    say(f"your plan: {paper['goodput_percent']:.1f} % of the requests meet both limits, ${paper['usd_per_hour']:.2f} an hour")
path = bench.write_metrics("service/1", bench.here(), world_size=1, seed=SEED, metrics=metrics)
if path.parent.resolve() != HERE:
    shutil.copyfile(HERE / "my_service.yaml", path.parent / "my_service.yaml")  # the judged file, kept with the figures
bench.say_end(path, bench.here())
