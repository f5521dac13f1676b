"""Inference throughput: how many tokens a second an engine generates, by the number of concurrent requests.

You will learn    why a batch is nearly free, and up to what size; what it costs each request; which tokens arrive in time
You will produce  tokens/s, TTFT, TPOT, goodput and memory for each batch size, the best one, and the curve; metrics.json
Run it            python inference_throughput.py --model tiny --batch-sizes 1,2,4,8 --input-len 32 --output-len 24
                  python inference_throughput.py --model gpt2
Your part         `goodput` and `choose_batch` in my_setting.py; then try longer answers and a smaller cache
Reading           modules/04-benchmarking/lesson-2-price.md, "Throughput has a price" and "Limits for users"
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import statistics
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import best_setting
import ceilings
import engines
import own_part
import telemetry
import vllm_bench
from bench import say
from completions import Answer, RefusedByEngine, together
from language_models import MODELS

SEED, MIB = 0, 1 << 20
SLACK = 3  # a limit that is not set is this many times the median of the smallest batch size

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="tokens a second by the number of requests at the same time")
parser.add_argument(
    "--engine", type=str, default="auto", choices=["auto", "vllm", "transformers"], help="the engine that serves the model"
)
parser.add_argument(
    "--model", type=str, default="gpt2", choices=list(MODELS), help="tiny has random weights and is created on the node"
)
parser.add_argument(
    "--batch-sizes", type=str, default="1,2,4,8,16,32,64", help="numbers of requests at the same time, separated by commas"
)
parser.add_argument("--input-len", type=int, default=128, help="tokens in each prompt")
parser.add_argument("--output-len", type=int, default=128, help="tokens in each answer")
parser.add_argument("--repeats", type=int, default=3, help="number of rounds; the median of each batch size counts")
parser.add_argument(
    "--eager",
    action=argparse.BooleanOptionalAction,
    default=True,
    help="run vLLM without CUDA graphs, so that it starts sooner",
)
parser.add_argument(
    "--kv-share", type=float, default=1.0, help="size of the KV cache, as a share of what the largest batch needs"
)
parser.add_argument(
    "--ttft-limit-ms", type=float, default=0.0, help=f"limit of TTFT; 0 is {SLACK} times that of the smallest batch"
)
parser.add_argument("--limit-ms", type=float, default=0.0, help=f"limit of TPOT; 0 is {SLACK} times that of the smallest batch")
parser.add_argument("--good-percent", type=float, default=90.0, help="percent of the requests that have to keep both limits")
parser.add_argument("--cross-check", action=argparse.BooleanOptionalAction, default=False, help="also run vLLM's own benchmark")
args = parser.parse_args()
model = MODELS[args.model]
try:
    batches = sorted({int(size) for size in args.batch_sizes.split(",")})
except ValueError:
    parser.error(f"--batch-sizes {args.batch_sizes}: whole numbers with commas, such as 1,4,16")
if not 1 <= batches[0] <= batches[-1] <= 512 or args.repeats < 1 or not 0.1 <= args.kv_share <= 1:
    parser.error("each of --batch-sizes must be from 1 to 512, --repeats at least 1, and --kv-share from 0.1 to 1")
if min(args.limit_ms, args.ttft_limit_ms) < 0 or not 1 <= args.good_percent <= 100:
    parser.error("--limit-ms and --ttft-limit-ms must be at least 0, and --good-percent from 1 to 100")
if args.input_len < 1 or args.output_len < 2 or args.input_len + args.output_len > model.longest:
    parser.error(f"--output-len must be at least 2, and with --input-len at most {model.longest}, the limit of {args.model}")

# --- set-up ------------------------------------------------------------------------------------------------------------
learner_part = own_part.Process("my_setting.py")
out = Path(os.environ.get("GPUCOURSE_OUT") or ".")
out.mkdir(parents=True, exist_ok=True)
kind, device = engines.choose(args.engine), bench.here()
limits = ceilings.Ceilings(model, device)
chance = random.Random(SEED)
used_prompts: set[tuple[int, ...]] = set()


def prompts(count: int) -> list[list[int]]:
    """Return random tokens. No prompt repeats, so no engine can answer from its cache."""
    new_prompts = [[chance.randrange(3, model.vocabulary) for _ in range(args.input_len)] for _ in range(count)]
    used_prompts.update(map(tuple, new_prompts))
    return new_prompts


def row(batch: int, rounds: list[tuple[list[Answer], float]], watts: list[float], memory: int | None) -> dict:
    """Return the results of one batch size: medians over the rounds, and percentiles over the requests of all rounds."""
    power_w = sum(watts) / len(watts) if watts else None
    answers = [answer for round_answers, _ in rounds for answer in round_answers]
    speeds = [sum(answer.tokens for answer in round_answers) / wall for round_answers, wall in rounds]
    ceiling, speed = limits.find(batch, args.input_len, args.output_len), statistics.median(speeds)
    rate = ceilings.limit_to_possible(speed, ceiling)
    ttft, tpot = [answer.ttft_s * 1e3 for answer in answers], [(answer.tpot_s or 0.0) * 1e3 for answer in answers]
    per_request = args.input_len / args.output_len  # prompt tokens for each generated token
    return {
        "batch": batch, "setting": None, "requests": len(answers), "rounds": len(rounds), "output_tok_per_s": rate,
        "low_tok_per_s": rate and min(speeds), "high_tok_per_s": rate and max(speeds),
        "total_tok_per_s": rate and rate * (1 + per_request), "requests_per_s": rate and rate / args.output_len,
        "ttft_p50_ms": bench.percentile(ttft, 50), "ttft_p99_ms": bench.percentile(ttft, 99),
        "tpot_p50_ms": bench.percentile(tpot, 50), "tpot_p99_ms": bench.percentile(tpot, 99),
        "ceiling_tok_per_s": ceiling.tok_per_s, "ceiling": ceiling.reason, "refused": rate is None,
        "memory_mib": memory / MIB if memory else None, "power_w": power_w,
        "cache_mib": batch * model.kv_bytes(args.input_len + args.output_len, limits.number) / MIB,
    }  # fmt: skip


def list_requests(answers: list[Answer]) -> list[dict]:
    """Return the times and the tokens of each request, as your part gets them."""
    return [
        {"ttft_ms": answer.ttft_s * 1e3, "tpot_ms": answer.tpot_s and answer.tpot_s * 1e3, "tokens": answer.tokens}
        for answer in answers
    ]


def find_limits(answered: list[tuple[list[Answer], float]]) -> dict[str, float]:
    """Return the limits of TTFT and TPOT, and the percentage of requests that have to keep both."""
    requests = [request for answers, _ in answered for request in list_requests(answers)]
    usual = {key: statistics.median(request[key] for request in requests) for key in ("ttft_ms", "tpot_ms")}
    return {
        "ttft_ms": args.ttft_limit_ms or SLACK * usual["ttft_ms"],
        "tpot_ms": args.limit_ms or SLACK * usual["tpot_ms"],
        "percent": args.good_percent,
    }


def find_good_percent(answered: list[tuple[list[Answer], float]]) -> float:
    """Return the percentage of the requests of these rounds that keep both limits."""
    return best_setting.compute_good_percent([request for answers, _ in answered for request in list_requests(answers)], slo)


# --- the experiment: one engine, rounds over all batch sizes, so that a busy moment does not affect only one of them ---
rounds: dict[int, list[tuple[list[Answer], float]]] = {batch: [] for batch in batches}
watts: dict[int, list[float]] = {batch: [] for batch in batches}
memory: dict[int, int | None] = {}
missing = 0
read = telemetry.source() if device.type == "cuda" else None
say(f"{kind} loads {args.model} on {device} ...")
longest = args.input_len + args.output_len
with engines.running(kind, args.model, out, max_num_seqs=batches[-1], max_model_len=longest + 8, eager=args.eager,
                     kv_share=args.kv_share) as engine:  # fmt: skip
    say(f"ready after {engine.load_s:.1f} s\n")
    try:
        together(engine.url, engine.model, prompts(min(4, batches[-1])), args.output_len)  # warm-up
        for batch in batches:
            together(engine.url, engine.model, prompts(batch), 2)  # and warm-up with this batch size
        for number in range(args.repeats):
            for batch in batches:
                with telemetry.Recorder(read, 5.0) if read else contextlib.nullcontext() as recorder:
                    answered, wall = together(engine.url, engine.model, prompts(batch), args.output_len)
                rounds[batch].append((answered, wall))
                memory.setdefault(batch, engine.memory_bytes())
                watts[batch] += [sample["power_w"] for sample in recorder.samples if sample["power_w"]] if recorder else []
                missing += sum(abs(answer.tokens - args.output_len) for answer in answered)
                missing += sum(abs(answer.prompt_tokens - args.input_len) for answer in answered)
            say(f"round {number + 1} of {args.repeats}: {sum(rounds[batch][-1][1] for batch in batches):.1f} s")
        sweep = {batch: [(list_requests(answers), wall) for answers, wall in rounds[batch]] for batch in batches}
        slo = find_limits(rounds[batches[0]])
        outcome = learner_part.run(None, "best_setting:use_part", limit_s=20, sweep=sweep, limits=slo)
        own_answer = outcome.results[0] if outcome.state == "ran" else None
        own_batch = own_answer["batch"] if own_answer else None
        served = [together(engine.url, engine.model, prompts(own_batch), args.output_len)] if own_batch in batches else []
    except RefusedByEngine as error:
        sys.exit(str(error))

# --- the best setting: the smallest batch that reaches nearly the highest throughput ----------------------------------------
rows = [row(batch, rounds[batch], watts[batch], memory[batch]) for batch in batches]
valid = [row for row in rows if row["output_tok_per_s"] is not None]
peak = max((row["output_tok_per_s"] for row in valid), default=None)
best, candidates = best_setting.choose_best(valid), best_setting.list_within_spread(valid)
for case in rows:
    alone = valid[0] if valid and valid[0]["batch"] == 1 else None
    case["gain"] = case["output_tok_per_s"] / alone["output_tok_per_s"] if alone and case["output_tok_per_s"] else None
    case["good_percent"] = find_good_percent(rounds[case["batch"]])
    case["goodput_tok_per_s"] = statistics.median(own_answer["goodput"][str(case["batch"])]) if own_answer else None
    case["ideal_tok_per_s"] = alone["output_tok_per_s"] * case["batch"] if alone else None

# --- your part: its figures, and one more round with the batch size that it chose -------------------------------------------
wrong_figures = None if outcome.state == "open" else 1
if own_answer:
    wrong_figures = best_setting.count_wrong(sweep, own_answer, slo)
    say(f"yours: serve {own_batch or 'no batch size'}, so that {slo['percent']:g}% of the requests keep both limits")
elif outcome.state == "open":
    say("yours: not written yet; the table shows your goodput, and one more round with the batch size that your part chooses")
else:
    say(f"yours: {outcome.text}")
own_rows = [
    row(own_batch, served, [], memory[own_batch])
    | {"setting": "yours", "good_percent": find_good_percent(served), "goodput_tok_per_s": None}
] if served else []  # fmt: skip

# --- vLLM's own benchmark to compare with, if it is requested ------------------------------------------------------------
check, why_not = None, "only with vLLM" if kind != "vllm" else "not requested: --cross-check" if not args.cross_check else None
if best and not why_not:
    bench_file = out / "vllm-bench.json"
    words = vllm_bench.command(
        engine.model, input_len=args.input_len, output_len=args.output_len, at_a_time=best["batch"], prompts=4 * best["batch"],
        out=bench_file, options=engines.vllm_words(eager=args.eager, kv_share=args.kv_share),
    )  # fmt: skip
    check, why_not = vllm_bench.compare(words, bench_file, args.input_len, args.output_len)
say(f"compared with vllm bench throughput: {why_not or check}")

engine_version = engines.version(kind)

# --- the record ----------------------------------------------------------------------------------------------------------
metrics = {
    **vars(args), "engine": kind, "engine_version": engine_version,
    "gpu": limits.gpu.gpu if limits.gpu else None, "rows": rows, "load_s": engine.load_s,
    "shown": [*rows, *own_rows], "wrong_figures": wrong_figures, "part_fault": outcome.text, "own_batch": own_batch,
    "batches_measured": len(rows), "batches_asked": len(batches), "tokens_missing": missing,
    "prompts_sent": min(4, batches[-1]) + sum(batches) * (1 + args.repeats) + (own_batch if served else 0),
    "prompts_distinct": len(used_prompts),
    "refused": sum(row["refused"] for row in rows), "most_tok_per_s": peak,
    "gain_of_largest": rows[-1]["gain"], "best_is_clear": int(len(candidates) == 1), "slo": slo,
    "best_batch": best and best["batch"], "best_tok_per_s": best and best["output_tok_per_s"],
    "best_total_tok_per_s": best and best["total_tok_per_s"], "best_tpot_ms": best and best["tpot_p50_ms"],
    "best_power_w": best and best["power_w"], "one_at_a_time_tok_per_s": valid[0]["output_tok_per_s"] if valid else None,
    "beside_vllm_bench": check, "vllm_bench_not_run": why_not,
    "parameters": model.parameters, "weight_bytes": model.weight_bytes(limits.number),
    "simulated": None if device.type == "cuda" else "transformers on the CPU: curves as on a GPU, but other numbers",
}  # fmt: skip
titles = {"batch": "at a time", "setting": "setting",
          "output_tok_per_s": "tokens/s", "ttft_p50_ms": "TTFT ms", "tpot_p50_ms": "TPOT ms",
          "good_percent": "% in time", "goodput_tok_per_s": "your goodput", "memory_mib": "memory MiB",
          "cache_mib": "cache MiB", "ceiling_tok_per_s": "ceiling"}  # fmt: skip
say(f"limits: TTFT at most {slo['ttft_ms']:.1f} ms, TPOT at most {slo['tpot_ms']:.2f} ms")
bench.say_table([*rows, *own_rows], titles)
for refused_row in (row for row in rows if row["refused"]):
    say(f"refused: {refused_row['batch']} at a time would be above what is possible ({refused_row['ceiling']})")
if best:
    say(f"best setting: {best['batch']} at a time, with {100 * best['output_tok_per_s'] / peak:.0f}% of the highest throughput")
    if len(candidates) > 1:
        listed = ", ".join(map(str, candidates))
        say(f"That is not certain: given the spread of the rounds, it may be any of {listed}. Take more rounds (--repeats).")
path = bench.write_metrics("inference_throughput/2", device, world_size=1, seed=SEED, metrics=metrics)
bench.say_end(path, device, f"{kind} {engine_version}")
