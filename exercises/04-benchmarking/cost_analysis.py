"""Cost analysis: what a million tokens cost at the throughput that you measured, and what a service costs in a day.

You will learn    how price and throughput set the cost; how much faster a more expensive GPU must be; what idle hours cost
You will produce  dollars per million tokens for each GPU that you measured; break-even ratios; your plan for a day
Run it            python cost_analysis.py --tok-per-s 200          (what if; or next to earlier-4.3-*.json from runs)
Your part         `plan` in my_fleet.py; then recommend a GPU for a service of your choice
Reading           modules/04-benchmarking/lesson-2-price.md, "What a million tokens cost"
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import costs
import fleets
import gpus
import own_part
from bench import say
from language_models import MODELS

SEED = 0
listed, sources = costs.prices()

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="dollars per million tokens")
parser.add_argument(
    "--tok-per-s", type=float, default=0.0, help="output tokens a second; 0 takes the throughput of earlier runs of 4.3"
)
parser.add_argument("--model", type=str, default="newest", choices=["newest", *MODELS], help="the model whose runs are used")
parser.add_argument(
    "--instance",
    type=str,
    default="g4dn.xlarge",
    choices=[p.instance for p in listed if p.gpus == 1],
    help="the instance that the others are compared with",
)
parser.add_argument(
    "--price-per-hour",
    type=float,
    default=0.0,
    help="your own price for that instance, in dollars; 0 uses the price in gpus.json",
)
parser.add_argument("--utilisation", type=float, default=40.0, help="percent of the hours in which there is work")
parser.add_argument("--puzzle", type=int, default=1, help="number from which the service of the day is generated")
args = parser.parse_args()
if args.tok_per_s < 0 or args.price_per_hour < 0 or not 0 < args.utilisation <= 100:
    parser.error("--tok-per-s and --price-per-hour must be at least 0, and --utilisation above 0 and at most 100")
if not 1 <= args.puzzle <= fleets.PUZZLES:
    parser.error(f"--puzzle must be from 1 to {fleets.PUZZLES}")

part = own_part.Process("my_fleet.py")

# --- a day of the puzzle's service: the speeds of its cards are made up -------------------------------------------------------
service = fleets.make_service(args.puzzle)
day, min_usd = fleets.read_day(args.puzzle)
outcome = part.run(None, "fleets:use_plan", limit_s=20, puzzle=args.puzzle)
yours = outcome.results[0] if outcome.state == "ran" else {"fault": outcome.text}
if not yours["fault"]:
    day.append({"plan": "yours"} | {key: value for key, value in yours.items() if key not in {"fault", "hours"}})
demand = [{"line": "demand", "hour": hour, "tok_per_s": tokens} for hour, tokens in enumerate(service.demand)]
own_usd = yours.get("usd_per_day")


def say_day() -> None:
    """Print what a day costs with each plan, and what is wrong with yours."""
    say(f"\nA day of the puzzle's service: up to {max(service.demand):,.0f} tokens/s, TPOT at most {service.limit_ms:g} ms, "
        f"up to {service.spot_share:.0%} on spot. The speeds of its cards are made up.")  # fmt: skip
    bench.say_table(day, {"plan": "plan", "usd_per_day": "$ a day", "usd_per_million": "$/1M", "gpu": "GPU", "batch": "batch",
                          "on_demand_hours": "hours on demand", "spot_hours": "on spot"})  # fmt: skip
    if outcome.state == "open":
        say("yours: not written yet; a row shows what a day costs with your plan")
    elif yours["fault"]:
        say(f"yours: {yours['fault']}")


# --- what was measured ---------------------------------------------------------------------------------------------------
measured: list[dict] = []
for file in sorted(Path(__file__).resolve().parent.glob("earlier-4.3-*.json"), reverse=True):
    run = json.loads(file.read_text(encoding="utf-8"))
    gpu = gpus.find(str(run.get("device")))
    if run.get("best_tok_per_s"):
        measured.append({
            "run": file.stem.removeprefix("earlier-4.3-"), "device": run["device"], "gpu": gpu.gpu if gpu else None,
            "model": run["model"], "engine": run["engine"], "batch": run["best_batch"], "tok_per_s": run["best_tok_per_s"],
            "total_tok_per_s": run["best_total_tok_per_s"], "power_w": run.get("best_power_w"), "written": run.get("written"),
        })  # fmt: skip
if not measured and not args.tok_per_s:
    say_day()
    sys.exit("no throughput to compute with: run 4.3 first (gpucourse run 4.3), or give one (--set tok_per_s=200)")
for case in measured:
    say(f"measured: {case['tok_per_s']:,.1f} tokens/s of {case['model']} on {case['device']} (run {case['run']})")

model = measured[0]["model"] if measured and args.model == "newest" else args.model
of_model = [run for run in measured if run["model"] == model]  # GPUs are only compared with the same model
if args.model != "newest" and not of_model and not args.tok_per_s:
    sys.exit(f"{args.model} has not been measured yet: gpucourse run 4.3 --set model={args.model}")

reference = next(price for price in listed if price.instance == args.instance)
base = args.price_per_hour or reference.usd_per_hour


def throughput(gpu: str) -> dict | None:
    """Return the newest measurement on that GPU, or None. Measurements on other GPUs do not count."""
    return next((run for run in of_model if run["gpu"] == gpu), None)


# --- one row per instance --------------------------------------------------------------------------------------------------
what_if = args.tok_per_s or (of_model[0]["tok_per_s"] if of_model and not throughput(reference.gpu) else None)
rows = []
for price in listed:
    hour = base if price.instance == args.instance else price.usd_per_hour
    run = throughput(price.gpu)
    assumed = run is None or bool(args.tok_per_s)
    speed = what_if if price.instance == args.instance and assumed else run["tok_per_s"] if run else None
    total = run["total_tok_per_s"] if run and not args.tok_per_s else None
    rows.append({
        "instance": price.instance, "gpu": price.gpu,
        "share": "whole" if price.gpus == 1 else f"1 of {price.gpus}",
        "label": f"{price.gpu} {price.instance.split('.')[1]}{' (what if)' if speed and assumed else ''}",
        "usd_per_hour": hour,
        "spot_usd_per_hour": price.spot and price.spot[0], "tok_per_s": speed,
        "from": None if speed is None else "what if" if assumed else f"run {run['run']}",
        "usd_per_million": speed and costs.usd_per_million(hour, speed),
        "usd_per_million_total": total and costs.usd_per_million(hour, total),
        "usd_per_million_utilised": speed and costs.usd_per_million(hour, speed, args.utilisation),
        "spot_usd_per_million": speed and price.spot and costs.usd_per_million(price.spot[0], speed),
        "break_even": costs.break_even(hour, base),
        "kwh_per_million": costs.kwh_per_million(run["power_w"], run["tok_per_s"]) if run and run["power_w"] else None,
    })  # fmt: skip
priced_rows = [row for row in rows if row["usd_per_million"] is not None]
really = [row for row in priced_rows if row["from"] != "what if"]
cheapest = min(really, key=lambda row: row["usd_per_million"], default=None)

# --- the record ------------------------------------------------------------------------------------------------------------
of_reference = next(row for row in rows if row["instance"] == args.instance)
l4 = next(price for price in listed if price.instance == "g6.xlarge")
t4 = next(price for price in listed if price.instance == "g4dn.xlarge")
metrics = {
    **vars(args), "day": day, "hours": [*demand, *yours.get("hours", [])],
    "peak_of_hourly": day[0]["usd_per_day"] / day[1]["usd_per_day"],
    "broken_plans": None if outcome.state == "open" else int(yours["fault"] is not None), "plan_fault": yours["fault"],
    "usd_over_best": None if own_usd is None else round(own_usd - min_usd, 6),
    "model": model, "rows": rows, "known": priced_rows, "measured": measured,
    "prices": sources,
    "prices_date": sources["on_demand"]["date"], "prices_source": sources["on_demand"]["source"],
    "reference_usd_per_million": of_reference["usd_per_million"],
    "reference_usd_at_six_hours": of_reference["usd_per_million"] and 4 * of_reference["usd_per_million"],
    "cheapest_measured": cheapest and cheapest["instance"],
    "rows_with_cost": len(priced_rows), "measured_in_rows": len(really), "golden_usd": costs.usd_per_million(0.526, 200),
    "break_even_l4_t4": costs.break_even(l4.usd_per_hour, t4.usd_per_hour),
    "costs_of_what_was_not_measured": sum(row["usd_per_million"] is not None and row["instance"] != args.instance
                                          and throughput(row["gpu"]) is None for row in rows),
    "simulated": None if really else "no GPU was measured: the costs are what-if, with real prices",
}  # fmt: skip
titles = {"instance": "instance", "share": "its GPUs", "gpu": "GPU", "usd_per_hour": "$/h",
          "spot_usd_per_hour": "spot $/h", "tok_per_s": "tokens/s", "usd_per_million": "$/1M",
          "spot_usd_per_million": "spot $/1M",
          "usd_per_million_utilised": f"at {args.utilisation:g}%",
          "break_even": "must be x as fast", "from": "from"}  # fmt: skip
bench.say_table(rows, titles)
say(f"on demand: {sources['on_demand']['source']}, {sources['on_demand']['date']}"
    + (f" ({args.instance}: as you gave it)" if args.price_per_hour else ""))  # fmt: skip
if any(price.gpus > 1 for price in listed):
    say("If an instance has several GPUs, the row is for one of them; you have to rent the whole instance.")
say(f"spot, lowest zone of {sources['spot']['region']}: {sources['spot']['source']}; it changes by the hour")
if not really:
    say(f"No GPU was measured: the row of {args.instance} says what a million tokens would cost if it were as fast. (what if)")
say_day()
path = bench.write_metrics("cost_analysis/2", bench.here(), world_size=1, seed=SEED, metrics=metrics)
bench.say_end(path, bench.here())
