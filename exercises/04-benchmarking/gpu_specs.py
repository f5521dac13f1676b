"""GPU specifications: what the device reports, what follows from that, and what the data sheet says.

You will learn    which few numbers decide how fast a GPU can be; how a peak is computed; what to believe and what to check
You will produce  the device compared with its data sheet, two tests of it, T4, L4 and others side by side, and the
                  impossible one of five
Run it            python gpu_specs.py --puzzle 3
Your part         `find_impossible` in my_sheets.py; then run this on a second type of GPU and say what really changes
Reading           modules/04-benchmarking/lesson.md, "Five numbers of a GPU"
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import gpus
import nvidia_smi
import own_part
import sheets
import specs
import torch
from bench import say

SEED, COPY_MB = 0, 256  # the copied array is larger than any cache

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="specifications of the device, its data sheet, and an impossible one")
parser.add_argument("--puzzle", type=int, default=1, help="number from which the five sheets are generated")
args = parser.parse_args()
if not 1 <= args.puzzle <= sheets.PUZZLES:
    parser.error(f"--puzzle must be from 1 to {sheets.PUZZLES}")
part = own_part.Process("my_sheets.py")

# --- the device ----------------------------------------------------------------------------------------------------------
device = bench.here()
sheet, spec_rows = None, []
if device.type == "cuda":
    props = torch.cuda.get_device_properties(device)
    sheet = gpus.find(props.name)
    driver_facts = (nvidia_smi.query(specs.DRIVER_FIELDS) or [{}])[0]
    spec_rows = specs.rows(props, driver_facts, sheet)
    say(f"{props.name}: {'in the table' if sheet else 'not in the table, so it is compared with nothing'}")
else:
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    spec_rows = [
        {"spec": "name", "device": f"{bench.environment(device)['device']}, no GPU", "sheet": None, "unit": ""},
        {"spec": "cores", "device": os.cpu_count(), "sheet": None, "unit": ""},
        {"spec": "memory", "device": pages / 1e9, "sheet": None, "unit": "GB"},
        {"spec": "processors (SM)", "device": None, "sheet": None, "unit": ""},
        {"spec": "float32 peak, derived", "device": None, "sheet": None, "unit": "TFLOP/s"},
        {"spec": "memory bandwidth, derived", "device": None, "sheet": None, "unit": "GB/s"},
    ]  # fmt: skip
    say("No GPU here: the device column shows what the processor reports, and the rest stays empty. (local mode)")

# --- two tests of this device: each shows a speed that it reaches ------------------------------------------------------------
torch.manual_seed(SEED)
side, number_format = (8192, torch.float16) if device.type == "cuda" else (1024, torch.float32)
x, y = (torch.randn(side, side, device=device).to(number_format) for _ in range(2))
product, source = torch.empty_like(x), torch.ones(COPY_MB * 10**6 // 4, device=device)
target = torch.empty_like(source)
product_ms, copy_ms = (
    1e3 * statistics.median(bench.measure(call, device, budget_s=0.3, at_least=5))
    for call in (lambda: torch.mm(x, y, out=product), lambda: target.copy_(source))
)
device_tests = [
    {
        "name": "this device",
        "test": f"product, {str(number_format).removeprefix('torch.')}",
        "size": f"{side}²",
        "ms": product_ms,
    },
    {"name": "this device", "test": f"copy of {COPY_MB} MB", "size": None, "ms": copy_ms},
]
device_ridge = gpus.matmul_tflops(side, product_ms / 1e3) * 1e3 / (2 * COPY_MB / copy_ms)

# --- the table checks itself: a peak follows from processors, units and clock ------------------------------------------------
table = specs.comparison(gpus.table())
common = [row for row, gpu in zip(table, gpus.table(), strict=True) if gpu.drawn]
deviations = [row["formula_off_percent"] for row in table if row["formula_off_percent"] is not None]
guessed = [name for name in specs.similar_names(gpus.table()) if gpus.find(name) is not None]

# --- five sheets of cards that do not exist, and your judgement of them -----------------------------------------------------
invented_sheets, real_sheets = sheets.read_invented(args.puzzle), sheets.list_real()
outcome = part.run(None, "sheets:use_part", limit_s=20, puzzle=args.puzzle)
answers = outcome.results[0] if outcome.state == "ran" else None
wrong_count = answers and sum(
    answer != judgement["impossible"] for judgement, answer in zip([*invented_sheets, *real_sheets], answers, strict=True)
)
sheet_rows = [
    claims
    | {"float16_note": f"{claims['float16']:g}" + (" sparse" if claims["float16_sparse"] else "")}
    | {"yours": str(answers[number] or "possible") if answers else None}
    for number, claims in enumerate(judgement["sheet"] for judgement in invented_sheets)
]
if outcome.state == "open":
    say("yours: not written yet; a column of the five sheets says which one you call impossible")
elif outcome.state == "failed":
    wrong_count = len(invented_sheets) + len(real_sheets)
    say(f"yours: {outcome.text}")

# --- the record ----------------------------------------------------------------------------------------------------------
metrics = {
    **vars(args), "invented": sheet_rows, "tests": [*sheets.list_tests(args.puzzle), *device_tests],
    "wrong_sheets": wrong_count,
    "part_fault": outcome.text, "specs": spec_rows, "table": table,
    "common": common, "device_ridge": device_ridge,
    "ridges": [*common, {"gpu": "this device, by two tests", "ridge_flop_per_byte": device_ridge}],
    "known": sheet is not None if device.type == "cuda" else None,
    "gpu": sheet.gpu if sheet else None, "formulas_checked": len(deviations), "worst_formula_off_percent": max(deviations),
    "names_guessed": len(guessed), "disagreements": sum(row.get("agrees") is False for row in spec_rows),
    "ratio_l4_t4_fp16": next(row["fp16_tflops"] for row in table if row["gpu"] == "L4") / table[0]["fp16_tflops"],
    "ratio_l4_t4_bandwidth": next(row["gb_per_s"] for row in table if row["gpu"] == "L4") / table[0]["gb_per_s"],
    "simulated": None if device.type == "cuda" else "no GPU: the data sheets are real, but the device is this computer",
}  # fmt: skip
bench.say_table(spec_rows, {"spec": "property", "device": "device", "sheet": "data sheet", "unit": "unit"})
titles = {"gpu": "GPU", "capability": "CC", "cores": "cores", "memory_gb": "GB", "gb_per_s": "GB/s", "fp32_tflops": "fp32",
          "fp16_tflops": "fp16", "bf16_tflops": "bf16", "fp8_tflops": "fp8", "tdp_w": "W"}  # fmt: skip
bench.say_table(table, titles, title="Peaks in TFLOP/s, dense:")
columns = {"name": "sheet", "sms": "SM", "cores_per_sm": "cores", "tensor_fma_per_clock": "FMA", "boost_mhz": "MHz",
           "memory_mhz": "memory MHz", "bus_bits": "bits", "float32": "float32", "float16_note": "float16",
           "bandwidth": "GB/s", "memory": "GB", "yours": "yours"}  # fmt: skip
bench.say_table(sheet_rows, columns, title="Five sheets; one of them cannot be true:")
bench.say_table(
    metrics["tests"],
    {"name": "sheet", "test": "test", "size": "size", "ms": "ms"},
    title="What was timed on them, and on this device:",
)
path = bench.write_metrics("gpu_specs/2", device, world_size=1, seed=SEED, metrics=metrics)
bench.say_end(path, device)
