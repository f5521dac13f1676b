"""Speculative decoding: a small model guesses, the large one checks several guesses in one step, and the text remains the large
model's.

You will learn    what guesses gain, why the text stays the same, what a statistical test can miss, when guesses pay
You will produce  the tokens of a step for four drafts, a test of your rule with 20,000 texts, the best number of guesses
Run it            python speculative.py --gamma 4 --alpha 0.8
Your part         predict what twice as many guesses gain; then my_accept.py and my_speedup.py
Reading           modules/08-inference-engines/lesson-6-speculation.md
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import chi_square
import own_part
import speculation_trial as trial
import torch
import trained
from bench import say
from small_llm import answer_alone
from step_clock import GPUS, Clock

CARD, TESTS = "llama-3.1-8b", 20
torch.set_num_threads(1)

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="guesses that a large model checks")
parser.add_argument("--gamma", type=int, default=4, help="guesses in a step")
parser.add_argument(
    "--alpha", type=float, default=0.8, help="probability that a guess is accepted, for the coins and the clock"
)
parser.add_argument("--samples", type=int, default=20_000, help="short texts with which your rule is tested")
parser.add_argument("--tokens", type=int, default=25, help="tokens that are written with each draft after each of six prompts")
parser.add_argument(
    "--gpu", type=str, default="l4", choices=list(GPUS), help="the GPU from whose data sheet the times are computed"
)
parser.add_argument(
    "--context", type=int, default=1000, help="tokens in the cache of each request, in addition to 100 and 8,000"
)
parser.add_argument("--draft-percent", type=int, default=15, help="time of a guess, in percent of the large model's step")
args = parser.parse_args()
if not 1 <= args.gamma <= trial.LARGEST_GAMMA or not 0.5 <= args.alpha <= 1 or not 1 <= args.draft_percent <= 100:
    parser.error("--gamma must be from 1 to 16, --alpha from 0.5 to 1, and --draft-percent from 1 to 100")
if args.samples < 100 or args.tokens < 5 or args.context < 1:
    parser.error("--samples must be at least 100, --tokens at least 5, and --context at least 1")

accept_part, speedup_part = own_part.Process("my_accept.py"), own_part.Process("my_speedup.py")

# --- two models that have learned something ------------------------------------------------------------------------------
text = trained.read_text()
large = trained.train(text, steps=200, **trial.LARGE_SHAPE)
small = trained.train(text, steps=200, seed=1, **trial.SMALL_SHAPE)
models = large, small, text[: -trained.HELD_OUT]
prompts = trial.cut_prompts(text)
perplexities = [trained.perplexity(model, text) for model in (large, small)]
say(f"two models learned Python; the large one has the perplexity {perplexities[0]:.1f}, the small one {perplexities[1]:.1f}")

# --- temperature 0: four drafts help to write the same text ----------------------------------------------------------------
answers = [answer_alone(large, prompt, args.tokens) for prompt in prompts]
alone, gap = [token for answer, _ in answers for token in answer], min(gap for _, gap in answers)
drafts = trial.write_texts(models, prompts, args.tokens, args.gamma)
greedy_off = sum(mine != other for row in drafts for mine, other in zip(row.pop("text"), alone, strict=True))
for row in drafts:
    row |= {"temperature": 0, "whose": "course"}

# --- coins: the tokens of a step for each number of guesses ----------------------------------------------------------------
source = torch.Generator().manual_seed(trial.SEED)
coins: list[dict[str, Any]] = []
for gamma in sorted({*range(1, trial.LARGEST_GAMMA + 1), args.gamma, 2 * args.gamma}):
    mean, error = trial.toss(args.alpha, gamma, source)
    coins.append({"gamma": gamma, "tokens_per_step": mean, "standard_error": error, "if_all": gamma + 1, "yours": None})
by_gamma = {row["gamma"]: row for row in coins}

# --- a test of texts: how large must it be to see a small error? --------------------------------------------------------------
power = []
for samples in sorted({1000, 5000, args.samples}):
    row: dict[str, Any] = {"samples": samples}
    for percent in (0, 5, 10, 20, 100):
        rows = chi_square.mix(percent)
        results = [chi_square.measure(chi_square.draw(rows, samples, source)) for _ in range(TESTS)]
        row[f"rejected_{percent}"] = sum(statistic > critical for statistic, critical in results)
    power.append(row)

# --- when it pays, by the clock of a data sheet ------------------------------------------------------------------------------
clock = Clock(card=CARD, gpu=args.gpu)
tokens_of = [1.0, *(by_gamma[gamma]["tokens_per_step"] for gamma in range(1, trial.LARGEST_GAMMA + 1))]
pays = [
    row
    for context in sorted({100, args.context, 8000})
    for row in trial.time_batches(clock, context, args.draft_percent, tokens_of)
]

# --- on a GPU: does a step with guesses take longer? ----------------------------------------------------------------------
device = bench.here()
products = trial.time_products(device, sorted({1, args.gamma + 1, 64, 512})) if device.type == "cuda" else []
product_ms = {row["tokens"]: row["median_ms"] for row in products}

# --- your parts ------------------------------------------------------------------------------------------------------------
with tempfile.TemporaryDirectory(prefix="gpucourse-models-") as folder:
    path = str(Path(folder) / "models.pt")
    trial.save(path, models)
    rule = accept_part.run(
        None, "speculation_trial:use_verify", limit_s=120, path=path, prompts=prompts, tokens=args.tokens, gamma=args.gamma,
        alpha=args.alpha, samples=args.samples,
    )  # fmt: skip
formulas = speedup_part.run(
    None, "speculation_trial:use_formulas", limit_s=30, alpha=args.alpha, batches=pays, largest=trial.LARGEST_GAMMA
)
for row in pays:
    speedups = row.pop("sim_speedups")
    row |= {"sim_speedup_fixed": speedups[args.gamma], "sim_speedup_best": max(speedups)}
    row |= {"best_gamma": speedups.index(max(speedups)), "sim_speedup_yours": None, "fits": "yes" if row["fits"] else "no"}
    row["speedups"] = speedups
yours: dict[str, Any] = dict.fromkeys(("chi_square", "critical", "chi_of_critical", "greedy_off", "tokens_per_step", "sigmas"))
if rule.state == "ran":
    (result,) = rule.results
    statistic, critical = chi_square.measure(torch.tensor(result["counts"], dtype=torch.float64))
    yours |= {"chi_square": statistic, "critical": critical, "chi_of_critical": statistic / critical}
    yours["greedy_off"] = sum(mine != other for row in result["greedy"] for mine, other in zip(row["text"], alone, strict=True))
    coin, error = by_gamma[args.gamma]["tokens_per_step"], by_gamma[args.gamma]["standard_error"]
    yours["tokens_per_step"] = result["tokens_per_step"]
    yours["sigmas"] = abs(result["tokens_per_step"] - coin) / max((error**2 + result["standard_error"] ** 2) ** 0.5, 1e-9)
    for row in result["sampled"]:
        row.pop("text")
        drafts.append({**row, "temperature": 1, "whose": "yours"})
formula: dict[str, Any] = dict.fromkeys(("sigmas", "slower_percent"))
if formulas.state == "ran":
    (result,) = formulas.results
    for row in coins:
        row["yours"] = result["expected"][row["gamma"]] if row["gamma"] < len(result["expected"]) else None
    formula["sigmas"] = max(
        abs(row["yours"] - row["tokens_per_step"]) / max(row["standard_error"], 1e-9)
        for row in coins
        if row["yours"] is not None
    )
    for row, best in zip(pays, result["best"], strict=True):
        row["sim_speedup_yours"] = row["speedups"][best] if 0 <= best < len(row["speedups"]) else 0.0
    formula["slower_percent"] = max(100 * (1 - row["sim_speedup_yours"] / row["sim_speedup_best"]) for row in pays)
for row in pays:
    del row["speedups"], row["step_ns"], row["draft_ns"]

# --- the record ----------------------------------------------------------------------------------------------------------
first = pays[0]["context"]
pays_until = max((row["batch"] for row in pays if row["context"] == first and row["best_gamma"] > 0), default=0)
helped = {row["draft"]: row for row in drafts if row["whose"] == "course"}
small_row, rough_row = helped["small model"], helped[f"itself in {trial.ROUGH_BITS} bits"]
(control,) = (row for row in power if row["samples"] == args.samples)
metrics = {
    **vars(args), "perplexity": perplexities[0], "small_perplexity": perplexities[1], "gap": gap, "drafts": drafts,
    "greedy_off": greedy_off, "small_tokens_per_step": small_row["tokens_per_step"],
    "rough_acceptance": rough_row["acceptance"], "coins": coins, "tokens_per_step": by_gamma[args.gamma]["tokens_per_step"],
    "tokens_ratio": by_gamma[2 * args.gamma]["tokens_per_step"] / by_gamma[args.gamma]["tokens_per_step"],
    "power": power, "false_alarms": sum(row["rejected_0"] for row in power), "small_text_rejected": control["rejected_100"],
    "rejected_of_1000": next(row["rejected_5"] for row in power if row["samples"] == 1000),
    "products": products, "products_ratio": product_ms[args.gamma + 1] / product_ms[1] if products else None,
    "pays": pays, "pays_until": pays_until, "yours": yours, "formulas": formula,
    "accept_error": "no error" if rule.state == "ran" else rule.text if rule.state == "failed" else None,
    "speedup_error": "no error" if formulas.state == "ran" else formulas.text if formulas.state == "failed" else None,
    "simulated": f"speed-ups are by the clock of the data sheet of {GPUS[args.gpu]}; tokens are measured",
}  # fmt: skip
say(f"at temperature 0, {greedy_off} tokens differ from the large model's own text")
titles = {"draft": "draft", "temperature": "temp.", "whose": "rule", "guesses": "guesses", "accepted": "accepted"}
bench.say_table(drafts, titles | {"steps": "steps", "tokens_per_step": "tokens a step"}, title="Text with guesses")
shares = {f"rejected_{percent}": f"{percent} %" for percent in (0, 5, 10, 20, 100)}
title = f"Texts of the large model with some of the small one's tokens: how many of {TESTS} tests reject them"
bench.say_table(power, {"samples": "texts", **shares}, title=title)
title = f"Times as fast as without guesses, {CARD} by the clock of the data sheet of {GPUS[args.gpu]}"
titles = {"context": "context", "batch": "batch", "fits": "fits", "sim_speedup_fixed": f"{args.gamma} guesses"}
titles |= {"best_gamma": "best number", "sim_speedup_best": "with it", "sim_speedup_yours": "with yours"}
bench.say_table(pays, titles, title=title)
if products:
    titles = {"tokens": "tokens", "median_ms": "median ms", "p20_ms": "p20 ms", "p80_ms": "p80 ms"}
    bench.say_table(products, titles, title=f"Products of one layer of {CARD} on this GPU")
else:
    say("Whether a step with several tokens takes longer on a GPU: not measured, there is none here")
for outcome, name, rows_of_part in (
    (rule, "my_accept.py", "four rows 'yours', and a test of its texts"),
    (formulas, "my_speedup.py", "your formula compared with the coins, and your number of guesses for each batch"),
):
    if outcome.state == "open":
        say(f"{name} is open: once it is written, {rows_of_part} appear here. {outcome.text}")
    elif outcome.state == "failed":
        say(f"{name}: {outcome.text}")
bench.keep_files(__file__, "my_accept.py", "my_speedup.py")
path = bench.write_metrics("speculative/1", device, world_size=1, seed=trial.SEED, metrics=metrics)
bench.say_end(path, device)
