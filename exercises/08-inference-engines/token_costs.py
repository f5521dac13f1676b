"""Count the costs of a token: the operations, the bytes read and the bytes kept of a step, while models compute.

You will learn    what the cache of a model holds, what a batch shares and what it does not, and which resource limits a GPU
You will produce  costs of small models and of published ones, how many sequences fit on a GPU, and your formulas for comparison
Run it            python token_costs.py --card=llama-3.1-8b --gpu=l4
Your part         predict what 8-bit weights change; then my_costs.py
Reading           modules/08-inference-engines/lesson-2-costs.md
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import os
import random
import sys
from functools import cache, partial
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import counters
import engines
import gpus
import own_part
import step_clock
import torch
from bench import say
from cards import CARDS, GPUS, Card
from language_models import MODELS

PUBLISHED = {"deepseek-v3": 70_272, "qwen2.5-72b": 327_680, "llama-3.1-405b": 516_096}  # arXiv 2505.09343, table 1
SIZES = {0.5: "4 bits", 1.0: "8 bits", 2.0: "16 bits", 4.0: "32 bits"}
USABLE = 0.9  # of a GPU's memory; vLLM uses 0.92 by default (--gpu-memory-utilization)
BATCHES = (1, 4, 16, 64, 256, 1024)
DRAWS = 200

# --- knobs --------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="operations and bytes of a step, counted")
choices = [name for name, card in CARDS.items() if not card.latent]
parser.add_argument("--card", type=str, default="llama-3.1-8b", choices=choices, help="the model that is served")
parser.add_argument("--gpu", type=str, default="l4", choices=list(GPUS), help="the GPU that serves it")
parser.add_argument("--context", type=int, default=4096, help="tokens of each sequence")
parser.add_argument(
    "--number-bytes", type=float, default=2.0, choices=list(SIZES), help="bytes of each number in weights and cache"
)
parser.add_argument("--puzzle", type=int, default=1, help="number from which the shapes of the small models are generated")
args = parser.parse_args()
if args.context < 1:
    parser.error("--context must be at least 1 token")

# --- set-up -------------------------------------------------------------------------------------------------------------
learner_part = own_part.Process("my_costs.py")
torch.set_num_threads(1)
device = bench.here()
out = Path(os.environ.get("GPUCOURSE_OUT") or ".").resolve()
out.mkdir(parents=True, exist_ok=True)
card, gpu = CARDS[args.card], gpus.find(GPUS[args.gpu])
sheet_flops, sheet_bytes = gpu.fp16 * 1e12, gpu.gb_per_s * 1e9
ridge = sheet_flops / sheet_bytes


def make_small_models(puzzle: int) -> dict[str, Card]:
    """Return small models that differ in one thing each; their sizes follow from the puzzle's number."""
    chance = random.Random(puzzle)
    width, dim, hidden = 16 * chance.randint(3, 6), 8 * chance.randint(1, 3), 16 * chance.randint(6, 12)
    plain = Card(chance.randint(2, 4), width, 4, 2, dim, hidden, 64 * chance.randint(3, 6), 0, "made up")
    return {
        "4 key heads": dataclasses.replace(plain, kv_heads=4),
        "2 key heads": plain,
        "1 key head": dataclasses.replace(plain, kv_heads=1),
        "window": dataclasses.replace(plain, window=16 * chance.randint(2, 5), windowed_layers=1),
        "experts": dataclasses.replace(plain, experts=8, per_token=2),
    }


# --- what steps cost, counted -------------------------------------------------------------------------------------------
counted: list[dict[str, Any]] = []
steps: list[tuple[dict[str, Any], list[tuple[int, int]], float]] = []


def count(name: str, shape: Card, rows: list[tuple[int, int]], **settings: Any) -> None:
    """Count one step of a model, and store the counts for the learner's part."""
    decoder = counters.Decoder(shape, seed=args.puzzle, **settings)
    costs = counters.count_step(decoder, rows)
    text = ", ".join(f"{past:,} + {new}" for past, new in rows)
    read = {"weights_bytes": costs.weights_read, "cache_bytes": costs.cache_read}
    counted.append(
        {
            "model": name,
            "rows": text,
            "operations": costs.operations,
            **read,
            "held_bytes": costs.cache_held,
            "difference": None,
        }
    )
    steps.append((dataclasses.asdict(shape), rows, decoder.dtype.itemsize))


for name, shape in make_small_models(args.puzzle).items():
    for rows in [[(0, 32)], [(255, 1)]] if not shape.experts else [[(255, 1)]]:
        count(name, shape, rows)
    if name in ("2 key heads", "window"):
        count(name, shape, [(100, 20), (10, 1), (200, 1)])
count(args.card, card, [(args.context - 1, 1)], device="meta", dtype=torch.bfloat16)
plain = make_small_models(args.puzzle)["2 key heads"]
larger = dataclasses.replace(plain, vocabulary=2 * plain.vocabulary)
operations = [counters.count_step(counters.Decoder(shape), [(0, 32)]).operations for shape in (plain, larger)]
scored_tokens = (operations[1] - operations[0]) / (2 * plain.width * plain.vocabulary)
decode = {row["model"]: row for row in counted if row["rows"] == "255 + 1"}

# --- what published models keep, and how many sequences fit -------------------------------------------------------------
scale = args.number_bytes / 2  # what is counted has two bytes


def measure_cache(shape: Card, tokens: int) -> int:
    """Return the bytes of a sequence's cache in 16 bits, as an engine would allocate it."""
    return counters.Cache(shape, tokens, "meta", torch.bfloat16).bytes()


def count_fits(weight_bytes: float, cache_bytes: float) -> int:
    """Return how many sequences of this size fit next to the weights."""
    return max(0, math.floor((USABLE * gpu.memory_gb * 1e9 - weight_bytes) / cache_bytes))


cards = [
    {
        "card": name, "bytes_per_token": measure_cache(shape, 1), "published_bytes": PUBLISHED.get(name), "yours": None,
        "mib": measure_cache(shape, args.context) * scale / 2**20, "weights_gb": shape.parameters * args.number_bytes / 1e9,
        "fits": count_fits(shape.parameters * args.number_bytes, measure_cache(shape, args.context) * scale),
    }
    for name, shape in CARDS.items()
]  # fmt: skip
contexts = [
    {
        "card": name,
        "context": tokens,
        "gib": measure_cache(shape, tokens) * scale / 2**30,
        "gpu_gib": gpu.memory_gb * 1e9 / 2**30,
    }
    for name, shape in CARDS.items()
    for tokens in (1024 * 4**power for power in range(6))
]
sequence = measure_cache(card, args.context)
fits_16, fits_8 = count_fits(2 * card.parameters, sequence), count_fits(card.parameters, sequence)

# --- what a batch shares ------------------------------------------------------------------------------------------------
one_layer = dataclasses.replace(card, layers=1, windowed_layers=0)
none, one = (dataclasses.replace(one_layer, layers=layers) for layers in (0, 1))


@cache
def products_per_byte(batch: int) -> float:
    """Return the operations per byte of a layer's products with weights, when each of `batch` requests adds one token."""
    decoders = [counters.Decoder(shape, device="meta", dtype=torch.bfloat16) for shape in (none, one)]
    costs = [counters.count_products(decoder, batch) for decoder in decoders]
    read = (costs[1].weights_read - costs[0].weights_read) * scale
    return (costs[1].operations - costs[0].operations) / read


def attention_per_byte(past: int, new: int) -> float:
    """Return the operations per byte of attention: of a step of one request, without the products with weights."""
    decoder = counters.Decoder(one, device="meta", dtype=torch.bfloat16)
    costs, products = counters.count_step(decoder, [(past, new)]), counters.count_products(decoder, new)
    return (costs.operations - products.operations) / (costs.cache_read * scale)


attention = attention_per_byte(args.context - 1, 1)
intensity = [
    {"batch": batch, "products": products_per_byte(batch), "attention": attention, "ridge": ridge,
     "median_us": None, "tokens_per_s": None}
    for batch in BATCHES
]  # fmt: skip
batch_64_of_1 = clock_fit = None
if device.type == "cuda" and not card.experts:  # the only figures here that are measured, not counted
    points = []
    for shape in (dataclasses.replace(one_layer, layers=3), one):
        decoder = counters.Decoder(shape, device="cuda", dtype=torch.bfloat16)
        for row in intensity:
            rows = [(0, 1)] * row["batch"]
            costs = counters.count_step(counters.Decoder(shape, device="meta", dtype=torch.bfloat16), rows)
            step = partial(decoder.step, rows, lambda _layer, query, _key, _value: query)
            seconds = bench.measure(step, device)
            row |= {"median_us": bench.spread_ms(seconds)["median_ms"] * 1e3}
            row["tokens_per_s"] = row["batch"] / row["median_us"] * 1e6
            points.append((costs.weights_read, costs.operations, row["median_us"] / 1e6))
    if measured_gpu := gpus.find(torch.cuda.get_device_name()):
        clock_fit = step_clock.fit_shares(points, measured_gpu)
    times = {row["batch"]: row["median_us"] for row in intensity}
    batch_64_of_1 = times[64] / times[1]
announced = None
if device.type == "cuda" and engines.choose("auto") == "vllm":
    with engines.running("vllm", "tiny", out, max_num_seqs=8, max_model_len=MODELS["tiny"].longest):
        announced = engines.read_cache_size((out / "engine.log").read_text(encoding="utf-8", errors="replace"))
engine_cache = None
if announced:
    gib, tokens = announced
    token_bytes = MODELS["tiny"].kv_bytes(1, 2)
    engine_cache = {"gib": gib, "tokens": tokens, "by_formula": gib * 2**30 / token_bytes}
    engine_cache["off_percent"] = 100 * abs(tokens - engine_cache["by_formula"]) / tokens
low, high = 0, 1
while products_per_byte(high) < ridge:
    low, high = high, 2 * high
while high - low > 1:
    middle = (low + high) // 2
    low, high = (middle, high) if products_per_byte(middle) < ridge else (low, middle)

# --- latent attention in two forms, and experts -------------------------------------------------------------------------
small = {"heads": 4, "dim": 16, "rope_dim": 8, "latent": 24}
forms = {form: counters.attend_latent(form, length=100, **small) for form in ("expanded", "absorbed")}
large = CARDS["deepseek-v3"]
latent = []
for form, (_, costs) in forms.items():
    full = {"heads": large.heads, "dim": large.head_dim, "rope_dim": large.rope_dim, "latent": large.latent, "device": "meta"}
    of_token = [counters.attend_latent(form, length=length, **full)[1] for length in (4096, 4097)]
    operations = of_token[1].operations - of_token[0].operations
    per_byte = operations / (2 * (large.latent + large.rope_dim))  # in 16 bits
    latent.append({"form": form, "operations": costs.operations, "deepseek_operations": operations, "per_byte": per_byte})
latent_off = float((forms["expanded"][0] - forms["absorbed"][0]).abs().max())
source = torch.Generator().manual_seed(args.puzzle)
experts: list[dict[str, Any]] = []
for batch in (1, 8, 64, 256):
    chosen = torch.rand(DRAWS, batch, large.experts, generator=source).topk(large.per_token, -1).indices.flatten(1)
    touched = torch.tensor([len(row.unique()) for row in chosen], dtype=torch.float64)
    experts.append(
        {"batch": batch, "touched": float(touched.mean()), "error": float(touched.std()) / DRAWS**0.5, "yours": None}
    )

# --- yours --------------------------------------------------------------------------------------------------------------
outcome = learner_part.run(
    None, "cost_trial:compute_yours", limit_s=20, steps=steps,
    caches=[(dataclasses.asdict(shape), 1, 2) for shape in CARDS.values()],
    experts=[(large.experts, large.per_token, row["batch"]) for row in experts],
)  # fmt: skip
yours = outcome.results[0] if outcome.state == "ran" else None
if yours:
    for row, result in zip(counted, yours["steps"], strict=True):
        row |= {"operations_yours": result["operations"], "read_yours": result["read"], "held_yours": result["held"]}
        pairs = ((row["operations"], result["operations"]), (row["weights_bytes"] + row["cache_bytes"], result["read"]))
        row["difference"] = max(abs(round(answer) - right) for right, answer in (*pairs, (row["held_bytes"], result["held"])))
    for row, answer in zip(cards, yours["caches"], strict=True):
        row["yours"] = answer
    for row, answer in zip(experts, yours["experts"], strict=True):
        gap = abs(answer - row["touched"])
        row |= {"yours": answer, "errors_off": 0.0 if gap < 1e-6 else gap / max(row["error"], 1e-9)}

# --- the record ---------------------------------------------------------------------------------------------------------
published = [row for row in cards if row["published_bytes"]]
metrics = {
    **vars(args), "counted": counted, "cards": cards, "contexts": contexts, "latent": latent, "experts": experts,
    "intensity": intensity, "ridge": ridge, "ridge_batch": high, "attention_per_byte": attention,
    "bytes_per_token": measure_cache(card, 1), "fits": count_fits(card.parameters * args.number_bytes, sequence * scale),
    "fits_of_8_bit_weights": fits_8 / fits_16 if fits_16 else None, "latent_off": latent_off,
    "published_off": max(abs(row["bytes_per_token"] - row["published_bytes"]) for row in published),
    "grouped_of_plain": decode["2 key heads"]["cache_bytes"] / decode["4 key heads"]["cache_bytes"],
    "scored_tokens": scored_tokens, "batch_64_of_1": batch_64_of_1,
    "clock_fit": clock_fit, "engine_cache": engine_cache,
    "yours_error": "no error" if yours else outcome.text,
    "yours_off": max(row["difference"] for row in counted) if yours else None,
    "yours_published_off": max(abs(row["yours"] - row["published_bytes"]) for row in published) if yours else None,
    "yours_experts_off": max(row["errors_off"] for row in experts) if yours else None,
}  # fmt: skip
say(f"\nCosts of a step, counted (past + new tokens of each request; {args.card} in 16 bits, the others in 32)")
bench.say_table(counted, {"model": "model", "rows": "rows", "operations": "operations", "weights_bytes": "weights read",
                          "cache_bytes": "cache read", "held_bytes": "cache held", "difference": "yours off by"})  # fmt: skip
say(f"In {SIZES[args.number_bytes]}, {metrics['fits']:,} sequences of {args.context:,} tokens fit on one {gpu.gpu}.")
say(f"Its products reach the ridge of {ridge:.0f} operations per byte with {high:,} requests; attention has {attention:g}.")
if outcome.state == "open":
    say(f"my_costs.py is not written yet: here it would say how far off your formulas are. {outcome.text}")
elif outcome.state == "failed":
    say(f"my_costs.py: {outcome.text}")
if engine_cache:
    say(f"vLLM announces {engine_cache['tokens']:,} tokens in {engine_cache['gib']} GiB; by the formula "
        f"{engine_cache['by_formula']:,.0f} tokens fit.")  # fmt: skip
if clock_fit:
    say(f"The clock of 8.3 fits these times with {clock_fit['memory_percent']} % of the sheet's bandwidth, "
        f"{clock_fit['compute_percent']} % of its speed and {clock_fit['overhead_us']:.0f} us a step; off by at most "
        f"{clock_fit['off_percent']:.0f} %.")  # fmt: skip
bench.keep_files(__file__, "my_costs.py")
path = bench.write_metrics("token_costs/1", device, world_size=1, seed=args.puzzle, metrics=metrics)
bench.say_end(path, device)
