"""Eight bits and four: round numbers as the hardware does, share scales, sum in few bits, and train with all of it.

You will learn    what a format of 8 or 4 bits can hold, what a common scale for many numbers loses, and what needs more bits
You will produce  the errors of formats, scales, sums and updates, and the loss of the same model in each recipe
Run it            python low_precision.py --outlier 30000
Your part         predict what becomes of small updates; then my_step.py and my_blocks.py
Reading           modules/09-frontier-training/lesson-6-formats.md
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import own_part
import precision_trial as trial
import recipes
import torch
from bench import say
from number_formats import FORMATS, count_differences, list_numbers, round_to

RECIPES = ("float32", "bfloat16", "e4m3-unscaled", "e4m3-tensor", "e4m3-blocks", *trial.YOURS)
SIZES = 1024, 2048, 4096, 8192
torch.set_num_threads(1)

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="numbers of 8 and 4 bits")
parser.add_argument("--outlier", type=float, default=30000.0, help="how many times larger one channel of a tensor is")
parser.add_argument("--block", type=int, default=32, choices=[16, 32, 64, 128], help="neighbours that share your scale")
parser.add_argument("--recipes", default="float32,e4m3-unscaled,e4m3-tensor,e4m3-blocks,mxfp8,nvfp4", help="what is trained")
parser.add_argument("--steps", type=int, default=40, help="steps of training, on a CPU")
parser.add_argument("--width", type=int, default=64, help="width of the transformer; a multiple of 32")
parser.add_argument("--layers", type=int, default=2, help="layers of the transformer")
parser.add_argument("--accumulator-bits", type=int, default=13, help="bits of fraction that a sum of products keeps")
parser.add_argument("--promote", type=int, default=128, help="products after which a sum moves to float32; 0: never")
parser.add_argument("--update", type=float, default=0.0001, help="number that is added 200 times to a weight of 1")
args = parser.parse_args()
names = list(dict.fromkeys(args.recipes.split(",")))
if unknown := [name for name in names if name not in RECIPES]:
    parser.error(f"--recipes has {unknown[0]!r}: choose from {', '.join(RECIPES)}")
if "float32" not in names:
    parser.error("--recipes needs float32, with which the others are compared")
if args.width % 32 or args.width < 32 or args.promote % 32:
    parser.error("--width and --promote are multiples of 32: of the numbers that share a scale, and of the products of a step")

parts = {name: own_part.Process(name) for name in ("my_step.py", "my_blocks.py")}

# --- the experiment ------------------------------------------------------------------------------------------------------
blocks = trial.compare_schemes(args.outlier)
sums = trial.list_sums(args.accumulator_bits, args.promote)
updates = trial.list_updates(args.update)
product_off = recipes.measure_products()
trained = trial.train_course(names, args.steps, args.width, args.layers)
say(f"float32 ends with a loss of {trained[names.index('float32')]['loss_last']:.4f} in this training of {args.steps} steps")

# --- your parts ------------------------------------------------------------------------------------------------------------
limit_s = 120 if args.width <= 64 else 1200
shape = {"steps": args.steps, "width": args.width, "layers": args.layers}
step = parts["my_step.py"].run(None, "precision_trial:use_step", limit_s=limit_s, update=args.update, names=names, **shape)
scaled = parts["my_blocks.py"].run(
    None, "precision_trial:use_blocks", limit_s=limit_s, outlier=args.outlier, block=args.block, names=names, **shape
)
keys = ("products_off", "kept_bytes", "sigmas_off", "arrived_percent", "saturated", "rows_off_percent", "others_percent")
yours: dict[str, Any] = dict.fromkeys((*keys, "blocks_gap_percent", "mxfp8_gap_percent"))
if step.state == "ran":
    (result,) = step.results
    updates.append(trial.describe_update("stochastic", "yours", result["mean"], args.update))
    trained += result["trained"]
    yours |= {key: result[key] for key in ("products_off", "kept_bytes", "sigmas_off")}
    yours["arrived_percent"] = updates[-1]["arrived_percent"]
if scaled.state == "ran":
    (result,) = scaled.results
    blocks += result["blocks"]
    trained += result["trained"]
    yours |= {key: result[key] for key in ("saturated", "rows_off_percent")}
    yours["others_percent"] = result["blocks"][0]["others_percent"]
reference = next(row for row in trained if row["recipe"] == "float32")
for row in trained:
    row["loss_gap_percent"] = 100 * (row["loss_last"] / reference["loss_last"] - 1)
by_recipe = {row["recipe"]: row for row in trained}
for key, name in (("blocks_gap_percent", "e4m3-blocks"), ("mxfp8_gap_percent", "mxfp8")):
    if name in by_recipe:
        yours[key] = by_recipe[name]["loss_gap_percent"]


# --- a GPU -----------------------------------------------------------------------------------------------------------------
def time_products(device: torch.device) -> list[dict[str, Any]]:
    """Return a row for each size of a square product: its milliseconds in bfloat16 and, if the GPU has it, in FP8."""
    rows = []
    one = torch.ones((), device=device)
    for size in SIZES if device.type == "cuda" else ():
        a, b = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
        row = {"size": size, "bf16_mm_ms": bench.spread_ms(bench.time_calls(lambda a=a, b=b: a @ b.T, device))["median_ms"]}
        row["scaled_mm_ms"] = None
        if torch.cuda.get_device_capability(device) >= (8, 9):
            a, b = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
            calls = bench.time_calls(
                lambda a=a, b=b: torch._scaled_mm(a, b.T, scale_a=one, scale_b=one, out_dtype=torch.bfloat16),  # noqa: SLF001
                device,
            )
            row["scaled_mm_ms"] = bench.spread_ms(calls)["median_ms"]
        rows.append(row)
    return rows


device = bench.here()
products = time_products(device)
casts_different = None
if device.type == "cuda":
    some = list_numbers(1 << 20).clamp(-448, 448)
    casts_different = count_differences(some.to(device).to(torch.float8_e4m3fn).float().cpu(), round_to(some, "E4M3"))
fastest = next((row for row in products if row["size"] == 4096 and row["scaled_mm_ms"]), None)

# --- the record ----------------------------------------------------------------------------------------------------------
formats = [
    {"format": name, "exponent_bits": form.exponent_bits, "mantissa_bits": form.mantissa_bits, "largest": form.largest,
     "smallest": trial.find_smallest(name), "range": f"{trial.find_smallest(name):.2g} to {form.largest:.3g}",
     "half_step_percent": 100 * 2.0 ** -(form.mantissa_bits + 1)}
    for name, form in FORMATS.items()
]  # fmt: skip
errors = {row["way"]: row["error_percent"] for row in sums}
never, promoted = errors["never promoted"], errors.get(f"promoted every {args.promote}")
outcomes = {"my_step.py": step, "my_blocks.py": scaled}
verdicts = {
    f"{name[3:-3]}_error": "no error" if outcome.state == "ran" else outcome.text if outcome.state == "failed" else None
    for name, outcome in outcomes.items()
}
metrics = {
    **vars(args), **verdicts, "formats": formats, "blocks": blocks, "sums": sums, "updates": updates, "trained": trained,
    "product_off": product_off, "nearest_value": updates[0]["value"], "nearest_arrived_percent": updates[0]["arrived_percent"],
    "master_arrived_percent": updates[1]["arrived_percent"], "accumulator_error_percent": never,
    "promoted_over_never": None if promoted is None or args.accumulator_bits > 16 else promoted / never,
    "unscaled_gap_percent": by_recipe.get("e4m3-unscaled", {}).get("loss_gap_percent"),
    "unscaled_zeros_percent": by_recipe.get("e4m3-unscaled", {}).get("zero_gradients_percent"),
    "tensor_gap_percent": by_recipe.get("e4m3-tensor", {}).get("loss_gap_percent"), "yours": yours,
    "products": products, "casts_different": casts_different,
    "fp8_speedup": fastest and fastest["bf16_mm_ms"] / fastest["scaled_mm_ms"],
}  # fmt: skip
bench.say_table(
    formats,
    {"format": "format", "range": "numbers above 0", "half_step_percent": "half a step %"},
    title="Formats",
)
bench.say_table(
    blocks,
    {"scheme": "scheme", "whose": "whose", "bits_a_number": "bits", "worst_row_percent": "worst row %",
     "others_percent": "others %", "zeros_percent": "zeros %"},
    title=f"Errors with rows of different sizes, and of the columns beside one that is {args.outlier:g} times as large",
)  # fmt: skip
bench.say_table(sums, {"sum": "sum", "way": "way", "error_percent": "error %"}, title="Sums in few bits")
bench.say_table(
    updates,
    {"way": "way", "whose": "whose", "value": "weight", "arrived_percent": "arrived %"},
    title=f"A weight of 1 after 200 updates of {args.update:g}",
)
bench.say_table(
    trained,
    {"recipe": "recipe", "whose": "whose", "loss_first": "first loss", "loss_last": "last losses",
     "loss_gap_percent": "gap %", "zero_gradients_percent": "zeros %", "kept_bytes": "bytes kept"},
    title="The same transformer in each recipe",
)  # fmt: skip
more = {"my_step.py": "rows 'yours' of updates and of training", "my_blocks.py": "rows 'yours' of scales and of training"}
for name, outcome in outcomes.items():
    if outcome.state == "open":
        say(f"{name} is open: once it is written, {more[name]} will be here. {outcome.text}")
    elif outcome.state == "failed":
        say(f"{name}: {outcome.text}")
bench.keep_files(__file__, *parts)
path = bench.write_metrics("low-precision/2", device, world_size=1, seed=0, metrics=metrics)
bench.say_end(path, device)
