"""Fewer bits: a model in integers and small floating-point formats, its weights, its activations and its cache.

You will learn    what 4-bit groups, FP8 and FP4 cost in bytes and in predictions, and how a scale repairs what outliers break
You will produce  how far many formats, yours included, move a model's predictions, and the time of a step with each
Run it            python quantised.py --bits 4 --group 32
Your part         predict what outliers do; then my_groups.py, my_e4m3.py and my_scales.py
Reading           modules/08-inference-engines/lesson-7-fewer-bits.md
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import formats
import own_part
import rounding_trial as trial
import torch
import trained
from bench import say
from cards import CARDS
from rounded_model import SHAPE, Ruler, plant_outliers, watch_inputs
from step_clock import GPUS, Clock

SEED, CONTEXT, BATCHES = 0, 100, (1, 16, 512)
ENOUGH = 10  # scales are judged by their gain only if outliers are at least that many times larger
AFFECTED = (
    "int4 groups of 32", "int4 a matrix", "FP8 E4M3 a matrix", "NVFP4", "int8 × int8, a scale a tensor",
    "int8 × int8, a scale a token", "FP8 × FP8, a scale a token",
)  # fmt: skip
DENSE = [name for name, card in CARDS.items() if not (card.latent or card.window or card.experts)]
torch.set_num_threads(1)

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="a model in fewer bits")
parser.add_argument("--bits", type=int, default=4, choices=[2, 3, 4, 8], help="bits of an integer code of a weight")
parser.add_argument("--group", type=int, default=32, help="neighbouring weights of a row that share a scale and a zero")
parser.add_argument("--outlier", type=float, default=40.0, help="how many times larger three channels become")
parser.add_argument("--alpha", type=float, default=0.5, help="share of SmoothQuant's scale that comes from the activations")
parser.add_argument(
    "--card", type=str, default="llama-3.1-8b", choices=DENSE, help="the model whose steps are computed from the data sheet"
)
parser.add_argument(
    "--gpu", type=str, default="l4", choices=list(GPUS), help="the GPU from whose data sheet the times are computed"
)
args = parser.parse_args()
if args.group < 2 or SHAPE["width"] % args.group or args.outlier < 1 or not 0 <= args.alpha <= 1:
    parser.error(f"--group must divide the width of the model, {SHAPE['width']}; --outlier is at least 1, --alpha from 0 to 1")

names = ("my_groups.py", "my_e4m3.py", "my_scales.py")
groups_part, e4m3_part, scales_part = (own_part.Process(name) for name in names)

# --- a model that has learned something, and the same function with outliers -------------------------------------------------
text = trained.read_text()
plain = trained.train(text, steps=200, **SHAPE)
outliers = plant_outliers(plain, args.outlier)
ruler, outlier_ruler = Ruler.of(plain, text), Ruler.of(outliers, text)
full, same = ruler.measure(plain), ruler.measure(outliers)
say(f"the model learned Python: its perplexity is {full['perplexity']:.2f}, with the outliers {same['perplexity']:.2f}")
calibration = text[slice(*trial.CALIBRATION)]
largest = watch_inputs(outliers, calibration)[(1, "gate")].abs().amax(0)

# --- the experiment ------------------------------------------------------------------------------------------------------
ways = [row | {"model": "plain"} for row in trial.compare_formats(plain, ruler, args.bits, args.group)]
setting = f"int{args.bits} groups of {args.group}"
hurt = {setting, *AFFECTED}  # the other formats are not affected by outliers, or are similar to these
with_outliers = [
    row | {"model": "outliers"}
    for row in trial.compare_formats(outliers, outlier_ruler, args.bits, args.group)
    if row["way"] in hurt
]

# --- your parts ------------------------------------------------------------------------------------------------------------
with tempfile.TemporaryDirectory(prefix="gpucourse-models-") as folder:
    path = str(Path(folder) / "models.pt")
    trial.save(path, plain, outliers, text)
    groups = groups_part.run(None, "rounding_trial:use_groups", limit_s=60, path=path, bits=args.bits, group=args.group)
    e4m3 = e4m3_part.run(None, "rounding_trial:use_e4m3", limit_s=60, path=path)
    scales = scales_part.run(
        None, "rounding_trial:use_scales", limit_s=120, path=path, bits=args.bits, group=args.group, alpha=args.alpha
    )


def find(rows: list[dict[str, Any]], way: str) -> float:
    """Return the distance of a rounded model from the full model, in thousandths of a nat."""
    return next(row["kl_millinats"] for row in rows if row["way"] == way)


keys = ("bits_per_weight", "kl_off_percent", "largest_error", "e4m3_off", "search_gain", "smooth_gain", "function_off")
yours: dict[str, Any] = dict.fromkeys(keys)
channels: list[float] | None = None
if groups.state == "ran":
    (result,) = groups.results
    bits = 8 * result["bytes"] / result["weights"]
    yours |= {"bits_per_weight": bits, "largest_error": result["largest_error"]}
    yours["kl_off_percent"] = 100 * abs(result["kl_millinats"] / find(ways, setting) - 1)
    row = {"way": setting, "rounded": "weights", "bits_per_weight": bits, "whose": "yours", "model": "plain"}
    ways.append(row | {key: result[key] for key in ("kl_millinats", "perplexity")})
if e4m3.state == "ran":
    (result,) = e4m3.results
    yours["e4m3_off"] = result.pop("off")
    row = {"way": "FP8 E4M3 a matrix", "rounded": "weights", "bits_per_weight": 8, "whose": "yours", "model": "plain"}
    ways.append(row | result)
if scales.state == "ran":
    (result,) = scales.results
    channels = result["channels"]
    yours["function_off"] = result["unrounded"]["kl_millinats"]
    for key, way, before, bits_per_weight in (
        ("searched", f"{setting}, searched scales", setting, args.bits + 24 / args.group),
        ("smooth_tensor", "int8 × int8, a scale a tensor, smoothed", "int8 × int8, a scale a tensor", 8),
        ("smooth_token", "int8 × int8, a scale a token, smoothed", "int8 × int8, a scale a token", 8),
    ):
        rounded = "weights" if key == "searched" else "weights and activations"
        row = {"way": way, "rounded": rounded, "bits_per_weight": bits_per_weight, "whose": "yours", "model": "outliers"}
        with_outliers.append(row | result[key])
        gain = find(with_outliers, before) / max(result[key]["kl_millinats"], 1e-9)
        if key != "smooth_token" and args.outlier >= ENOUGH:
            yours["search_gain" if key == "searched" else "smooth_gain"] = gain

# --- what it saves, by the clock of a data sheet -----------------------------------------------------------------------------
clock = Clock(card=args.card, gpu=args.gpu)
choices = {
    "16 bits": (16.0, False),
    "FP8, products in 16 bits": (8.0, False),
    "FP8, products in FP8": (8.0, True),
    setting: (args.bits + 24 / args.group, False),
    "NVFP4, products in 16 bits": (4.5, False),
}
decode = formats.list_step_times(clock, choices, BATCHES, CONTEXT)
own_row = next(row for row in decode if row["format"] == setting)

# --- the record ----------------------------------------------------------------------------------------------------------
both = "int8 × int8, a scale a tensor"
ordered = [find(ways, way) for way in ("int4 a matrix", "int4 groups of 64", "int4 groups of 16", "int8 groups of 64")]
outcomes = dict(zip(names, (groups, e4m3, scales), strict=True))
errors = {
    f"{name[3:-3]}_error": "no error" if outcome.state == "ran" else outcome.text if outcome.state == "failed" else None
    for name, outcome in outcomes.items()
}
metrics = {
    **vars(args), **errors, "perplexity": full["perplexity"], "ways": ways, "with_outliers": with_outliers,
    "function_off": same["kl_millinats"], "not_in_order": sum(worse <= better for worse, better in itertools.pairwise(ordered)),
    "outlier_ratio": find(with_outliers, both) / find(ways, both), "setting_kl": find(ways, setting),
    "setting_bits": args.bits + 24 / args.group,
    "stored_bits": (4 if args.bits == 4 else 8) + 24 / args.group,
    "outlier_over_median": float(largest.max() / largest.median()),
    "token_kl": find(with_outliers, "int8 × int8, a scale a token"),
    "fp8_kl": find(with_outliers, "FP8 × FP8, a scale a token"), "yours": yours, "decode": decode,
    "sim_decode_ms": own_row["sim_ms_batch_1"], "sim_gain_batch_1": decode[0]["sim_ms_batch_1"] / own_row["sim_ms_batch_1"],
    "sim_gain_batch_512": decode[0]["sim_ms_batch_512"] / own_row["sim_ms_batch_512"],
    "weight_formats": [row for row in ways if row["rounded"] == "weights" and row["whose"] == "course"],
    "channels": [
        {"channel": number, "before": float(value), "after": None if channels is None else channels[number]}
        for number, value in enumerate(largest)
    ],
    "simulated": f"times of a step are by the clock of the data sheet of {GPUS[args.gpu]}; distances are measured",
}  # fmt: skip
titles = {"way": "way", "whose": "whose", "rounded": "rounded", "bits_per_weight": "bits a weight", "kl_millinats": "KL mnat"}
titles |= {"perplexity": "perplexity"}
bench.say_table(ways, titles, title="Distance of the rounded model from the full one (KL, thousandths of a nat)")
title = f"The same function with outliers: three channels of each norm are {args.outlier:g} times as large"
bench.say_table(with_outliers, titles, title=title)
step_titles = {"format": "format", "bits": "bits a weight", "weights_gb": "weights GB"}
step_titles |= {f"sim_ms_batch_{batch}": f"batch {batch}" for batch in BATCHES}
title = f"Milliseconds of a decode step of {args.card}, by the clock of the data sheet of {GPUS[args.gpu]}"
bench.say_table(decode, step_titles, title=title)
rows_of = {
    "my_groups.py": "a row 'yours' of weights",
    "my_e4m3.py": "a row 'yours' of FP8",
    "my_scales.py": "three rows 'yours'",
}
for name, outcome in outcomes.items():
    if outcome.state == "open":
        say(f"{name} is open: once it is written, {rows_of[name]} will be here. {outcome.text}")
    elif outcome.state == "failed":
        say(f"{name}: {outcome.text}")
bench.keep_files(__file__, *names)
path = bench.write_metrics("quantised/1", torch.device("cpu"), world_size=1, seed=SEED, metrics=metrics)
bench.say_end(path, torch.device("cpu"))
