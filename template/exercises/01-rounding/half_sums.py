"""Sums in half precision: what is left of many small numbers.

You will learn    what rounding does to a long sum, and why the order of the additions matters
You will produce  metrics.json with both sums for several counts, and a picture of them
Run it            python half_sums.py --count 16384
Your part         my_sum.py, a sum that adds in pairs
Reading           modules/01-rounding/lesson.md
"""

from __future__ import annotations

import argparse
import json
import os
import struct
from pathlib import Path

from my_sum import add_in_pairs

# --- knobs ---------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="sums of ones in half precision")
parser.add_argument("--count", type=int, default=16384, help="how many ones the longest sum adds")
count = parser.parse_args().count


# --- the experiment ------------------------------------------------------------------------------------------------
def to_half(value: float) -> float:
    """Return the number of half precision that is nearest to `value`."""
    return struct.unpack("e", struct.pack("e", value))[0]


def add(left: float, right: float) -> float:
    """Return the sum of two numbers, rounded to half precision."""
    return to_half(left + right)


def add_in_order(values: list[float]) -> float:
    """Return the sum from the first to the last, rounded after every addition."""
    total = 0.0
    for value in values:
        total = add(total, value)
    return total


rows = []
for ones in (count >> shift for shift in (5, 4, 3, 2, 1, 0)):
    try:
        in_pairs = add_in_pairs([1.0] * ones, add)
    except NotImplementedError:  # the learner has not written it yet
        in_pairs = None
    rows.append({"ones": ones, "exact": ones, "in_order": add_in_order([1.0] * ones), "in_pairs": in_pairs})
    shown = "nothing" if in_pairs is None else f"{in_pairs:g}"
    print(f"{ones:6} ones: {rows[-1]['in_order']:g} in order, {shown} in pairs", flush=True)

# --- the record ----------------------------------------------------------------------------------------------------
metrics = {
    "schema": "half_sums/1",
    "device": "cpu",
    "cuda": None,
    "sums": rows,
    "largest_in_order": max(row["in_order"] for row in rows),
    "lost_percent": 100 * (1 - rows[-1]["in_order"] / count),
    "error_in_pairs": None if in_pairs is None else max(abs(row["in_pairs"] - row["exact"]) for row in rows),
}
out = Path(os.environ.get("GPUCOURSE_OUT", "."))
(out / "metrics.json").write_text(json.dumps(metrics, indent=1))
