"""A solution of 4.1: the card limits a claim from above, and the tests limit it from below; the memory is a sum of chips."""

from __future__ import annotations

ROUNDING = 1.015


def find_impossible(sheet: dict, tests: list[dict]) -> str | None:
    """Return the first figure that is above the limit of the card or below what the tests show, or None."""
    clocks = sheet["boost_mhz"] * 1e6
    sparse = 2 if sheet["float16_sparse"] else 1
    limits = {
        "float32": sheet["sms"] * sheet["cores_per_sm"] * 2 * clocks / 1e12,
        "float16": sheet["sms"] * sheet["tensor_fma_per_clock"] * 2 * clocks / 1e12 * sparse,
        "bandwidth": sheet["memory_mhz"] * 1e6 * 2 * (sheet["bus_bits"] / 8) / 1e9,
    }
    shown = show(sheet, tests)
    shown["float16"] *= sparse
    for figure, limit in limits.items():
        if sheet[figure] > limit * ROUNDING:
            return figure
        if shown[figure] > sheet[figure] * ROUNDING:
            return figure
    chips = sheet["bus_bits"] // 32
    sizes = [chips * gb * sides for gb in (1, 2, 3) for sides in (1, 2)]
    return None if sheet["memory"] in sizes else "memory"


def show(sheet: dict, tests: list[dict]) -> dict[str, float]:
    """Return the highest rate of each kind that the tests prove:

    `float32` and `float16` (dense) in TFLOP/s, `bandwidth` of the memory in GB/s.
    """
    shown = {"float32": 0.0, "float16": 0.0, "bandwidth": 0.0}
    for test in tests:
        if test["work"] == "copy":
            if 2 * test["mb"] < sheet["l2_mb"]:
                continue
            figure, rate = "bandwidth", 2 * test["mb"] / test["ms"]
        else:
            if test["tf32"]:
                continue
            figure, rate = test["format"], 2 * test["n"] ** 3 / test["ms"] / 1e9
        shown[figure] = max(shown[figure], rate)
    return shown
