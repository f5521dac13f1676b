"""Judge my_sheets.py of 4.1 by real data sheets, which are all possible, and by those of invented cards.

invented.json of the exercise has what `make_sheets` returns for each puzzle.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import sheets
from sheets import Judgement

from gpucourse.judge import Case, Part, Way

WAYS = {
    "one-operation": Way(
        "you counted a multiply-add as one operation: it is two, a multiplication and an addition, and every data sheet counts "
        "in this way. So you call real cards impossible, such as {name}",
        ("sheet[\"cores_per_sm\"] * 2 * clocks", "sheet[\"cores_per_sm\"] * clocks"),
    ),
    "one-transfer": Way(
        "you counted one transfer per clock of the memory: it makes two (double data rate). So you call the bandwidth of "
        "{name} impossible",
        ("* 1e6 * 2 * (sheet", "* 1e6 * (sheet"),
    ),
    "sparse-refused": Way(
        "you refused the float16 figure of {name}, which says \"with sparsity\": such a figure may be twice the dense peak",
        ("sparse = 2 if sheet[\"float16_sparse\"] else 1", "sparse = 1"),
    ),
    "sparse-always": Way(
        "you treated every float16 figure as twice the dense peak: the figure of {name} does not say \"with sparsity\"",
        ("sparse = 2 if sheet[\"float16_sparse\"] else 1", "sparse = 2"),
    ),
    "lower-refused": Way(
        "you refused a claim of {name} that is below what the card can do: a vendor may sell it with a lower clock. Such a "
        "claim is false only if a test shows more",
        ("if sheet[figure] > limit * ROUNDING", "if not limit / ROUNDING <= sheet[figure] <= limit * ROUNDING"),
    ),
    "no-rounding": Way(
        "you allowed no rounding: vendors print {claim:g} for {limit:.4g}, as for {name}",
        ("ROUNDING = 1.015", "ROUNDING = 1.0"),
    ),
    "any-size": Way(
        "you did not look at the size of the memory: the {bits} bits of the bus of {name} have room for {chips} or {double} "
        "chips of 1, 2 or 3 GB, which never add up to {memory:g} GB",
        ('return None if sheet["memory"] in sizes else "memory"', "return None"),
    ),
    "one-side": Way(
        "you assumed chips on one side of the board only: {name} has two chips for each 32 bits of its bus, one on each side",
        ("for sides in (1, 2)", "for sides in (1,)"),
    ),
    "tests-ignored": Way(
        "you did not use the tests: no property of {name} contradicts its sheet, but a test shows more {right} than the sheet "
        "claims",
        ("if shown[figure] > sheet[figure] * ROUNDING", "if False"),
    ),
    "cache-counted": Way(
        "you used a copy whose two arrays fit into the cache of {name} ({l2} MB): its bytes came from the cache, so it says "
        "nothing about the memory",
        ('if 2 * test["mb"] < sheet["l2_mb"]', "if False"),
    ),
    "tf32-counted": Way(
        "you took a TF32 product for a float32 one: it ran on the tensor cores of {name}, so it says nothing about the float32 "
        "peak of the cores",
        ('if test["tf32"]', "if False"),
    ),
    "copied-once": Way(
        "you counted the bytes of a copy once: each byte is read and written, so twice as many cross the bus. The copies of "
        "{name} then seem to agree with its sheet",
        ('"bandwidth", 2 * test["mb"]', '"bandwidth", test["mb"]'),
    ),
    "dense-against-sparse": Way(
        "you compared a dense product with a figure \"with sparsity\": a dense product of {name} can reach half of that figure "
        "at most, and a test is above this half",
        ('shown["float16"] *= sparse', 'shown["float16"] *= 1'),
    ),
}  # fmt: skip
JUDGED_PUZZLES = range(1, 61)
FIGURES = ("float32", "float16", "bandwidth", "memory")
CHIP_GB, CHIP_BITS = (1, 2, 3), 32


@dataclass(frozen=True)
class Rules:
    """Hold the rules by which a sheet is judged. The defaults are right; each mistake changes one."""

    operations: tuple[int, int] = (2, 2)
    transfers: int = 2
    sparse_limit: tuple[int, int] = (1, 2)
    sparse_test: tuple[int, int] = (1, 2)
    rounding: float = 1.015
    refuses_lower: bool = False
    sides: tuple[int, ...] = (1, 2)
    uses_tests: bool = True
    counts_cache: bool = False
    counts_tf32: bool = False
    passes_of_copy: int = 2


_RULES: dict[str | tuple[str, str], Rules] = {
    ("one-operation", "cores"): Rules(operations=(1, 2)),
    ("one-operation", "tensor cores"): Rules(operations=(2, 1)),
    ("one-operation", "both"): Rules(operations=(1, 1)),
    "one-transfer": Rules(transfers=1),
    ("sparse-refused", "limit"): Rules(sparse_limit=(1, 1)),
    ("sparse-refused", "both"): Rules(sparse_limit=(1, 1), sparse_test=(1, 1)),
    ("sparse-always", "limit"): Rules(sparse_limit=(2, 2)),
    ("sparse-always", "both"): Rules(sparse_limit=(2, 2), sparse_test=(2, 2)),
    "lower-refused": Rules(refuses_lower=True),
    "no-rounding": Rules(rounding=1.0),
    "any-size": Rules(sides=()),
    "one-side": Rules(sides=(1,)),
    "tests-ignored": Rules(uses_tests=False),
    "cache-counted": Rules(counts_cache=True),
    "tf32-counted": Rules(counts_tf32=True),
    "copied-once": Rules(passes_of_copy=1),
    "dense-against-sparse": Rules(sparse_test=(1, 1)),
}


def judge(part: Part) -> None:
    """Judge real sheets, then five sheets of each puzzle."""
    function = part.function("find_impossible")
    real = sheets.list_real()
    invented = []
    for puzzle in JUDGED_PUZZLES:
        for judgement in make_sheets(puzzle):
            sheet = judgement["sheet"] | {"name": f"{judgement['sheet']['name']} of puzzle {puzzle}"}
            invented.append(judgement | {"sheet": sheet})
    part.compare([_case(part, function, judgement) for judgement in [*real, *invented]])
    part.note(f"right for {len(real)} real cards and {len(invented)} invented ones")


def _case(part: Part, function: Any, judgement: Judgement) -> Case:
    sheet, tests, right = judgement["sheet"], judgement["tests"], judgement["impossible"]
    answer = part.call(function, dict(sheet), [dict(test) for test in tests], case=sheet["name"])
    limits = _read_limits(sheet, Rules())
    figure = answer if isinstance(answer, str) and answer in limits else "float32"
    chips = sheet["bus_bits"] // CHIP_BITS
    values = {"name": sheet["name"], "claim": sheet[figure], "limit": limits[figure], "bits": sheet["bus_bits"], "right": right,
              "chips": chips, "double": 2 * chips, "memory": sheet["memory"], "l2": sheet["l2_mb"]}  # fmt: skip
    ways = {way: _find_false(sheet, tests, rules) for way, rules in _RULES.items()}
    return Case(f"the sheet of {sheet['name']}", answer, right, ways, values)


def _find_false(sheet: dict[str, Any], tests: list[dict[str, Any]], rules: Rules) -> str | None:
    """Return the first figure of a sheet that is false by these rules, or None."""
    shown = _read_tests(sheet, tests, rules) if rules.uses_tests else {}
    for figure, limit in _read_limits(sheet, rules).items():
        is_lower = rules.refuses_lower and sheet[figure] < limit / rules.rounding
        if is_lower or sheet[figure] > limit * rules.rounding or shown.get(figure, 0.0) > sheet[figure] * rules.rounding:
            return figure
    chips = sheet["bus_bits"] // CHIP_BITS
    sizes = {sides * chips * size for size in CHIP_GB for sides in rules.sides}
    return None if not rules.sides or sheet["memory"] in sizes else "memory"


def _read_limits(sheet: dict[str, Any], rules: Rules) -> dict[str, float]:
    """Return the upper limit of each figure of a card, without rounding:

    `float32` and `float16` in TFLOP/s, `bandwidth` in GB/s.
    """
    cores, tensor_cores = rules.operations
    sparse = rules.sparse_limit[sheet["float16_sparse"]]
    return {
        "float32": cores * sheet["sms"] * sheet["cores_per_sm"] * sheet["boost_mhz"] / 1e6,
        "float16": tensor_cores * sheet["sms"] * sheet["tensor_fma_per_clock"] * sheet["boost_mhz"] / 1e6 * sparse,
        "bandwidth": rules.transfers * sheet["memory_mhz"] * sheet["bus_bits"] / 8 / 1e3,
    }


def _read_tests(sheet: dict[str, Any], tests: list[dict[str, Any]], rules: Rules) -> dict[str, float]:
    """Return the minimum that the tests prove for each figure: `float32` and `float16` in TFLOP/s, `bandwidth` in GB/s."""
    shown: dict[str, float] = {}
    for test in tests:
        if test["work"] == "copy" and (rules.counts_cache or 2 * test["mb"] > sheet["l2_mb"]):
            shown["bandwidth"] = max(shown.get("bandwidth", 0.0), rules.passes_of_copy * test["mb"] / test["ms"])
        if test["work"] == "product" and (rules.counts_tf32 or not test["tf32"]):
            factor = rules.sparse_test[sheet["float16_sparse"]] if test["format"] == "float16" else 1
            shown[test["format"]] = max(shown.get(test["format"], 0.0), factor * 2 * test["n"] ** 3 / test["ms"] / 1e9)
    return shown


def make_sheets(puzzle: int) -> list[Judgement]:
    """Return five sheets of invented cards. The puzzle's number decides which one is impossible, and in which figure."""
    chance = random.Random(puzzle)
    number, figure, is_low = chance.randrange(5), chance.choice(FIGURES), chance.random() < 0.6
    return [_make_sheet(chance, f"card {'ABCDE'[card]}", figure if card == number else None, is_low) for card in range(5)]


def _make_sheet(chance: random.Random, name: str, impossible: str | None, is_low: bool) -> Judgement:
    """Return a sheet with tests. A possible claim is what the card reaches, or less (a lower clock, a limit by the vendor)."""
    chips, size, sides = chance.choice([4, 6, 8, 10, 12, 16]), chance.choice(CHIP_GB), chance.choice([1, 2])
    sheet: dict[str, Any] = {
        "name": name,
        "sms": chance.randrange(20, 150, 2),
        "cores_per_sm": chance.choice([64, 128]),
        "tensor_fma_per_clock": chance.choice([256, 512, 1024]),
        "boost_mhz": float(chance.randrange(1200, 2700, 15)),
        "memory_mhz": float(chance.randrange(5000, 12000, 50)),
        "bus_bits": chips * CHIP_BITS,
        "l2_mb": chance.choice([4, 6, 32, 48, 64, 96]),
        "float16_sparse": chance.random() < 0.5,
        "memory": sides * chips * size,
    }
    rates = {}  # what the card reaches: TFLOP/s, TFLOP/s of dense matrices, GB/s
    for figure, limit in _read_limits(sheet, Rules()).items():
        reached = limit * chance.choice([1.0, 1.0, 0.9, 0.75, 0.4])
        claim = reached
        if figure == impossible:
            reached, claim = limit, limit * (chance.uniform(0.45, 0.75) if is_low else chance.choice([1.08, 1.25, 2.0]))
        sheet[figure] = _round(claim, 3)
        rates[figure] = reached / (2 if figure == "float16" and sheet["float16_sparse"] else 1)
    if impossible == "memory":
        possible_sizes = {sides * chips * size for size in CHIP_GB for sides in (1, 2)}
        sheet["memory"] = chance.choice([gb for gb in range(chips, 6 * chips, 2) if gb not in possible_sizes])
    return {"sheet": sheet, "tests": _make_tests(chance, sheet, rates), "impossible": impossible}


def _make_tests(chance: random.Random, sheet: dict[str, Any], rates: dict[str, float]) -> list[dict[str, Any]]:
    """Return six tests of a card that reaches these rates. A TF32 product and a copy in the cache are faster than the rest."""
    tests: list[dict[str, Any]] = []
    for number_format, tf32, rate in (
        ("float32", False, rates["float32"]), ("float32", True, rates["float16"] / 2), ("float16", False, rates["float16"]),
    ):  # fmt: skip
        n = chance.choice([4096, 6144, 8192])
        ms = 2 * n**3 / (rate * chance.uniform(0.85, 0.97)) / 1e9
        tests.append({"work": "product", "format": number_format, "tf32": tf32, "n": n, "ms": _round(ms, 4)})
    small = chance.choice(["float32", "float16"])
    ms = 2 * 1024**3 / (rates[small] * chance.uniform(0.2, 0.4)) / 1e9  # too small to keep the card busy
    tests.append({"work": "product", "format": small, "tf32": False, "n": 1024, "ms": _round(ms, 4)})
    for mb, rate in (
        (sheet["l2_mb"] * chance.choice([8, 16, 24]), rates["bandwidth"] * chance.uniform(0.85, 0.95)),
        (sheet["l2_mb"] / chance.choice([4, 8]), rates["bandwidth"] * chance.uniform(1.5, 4.0)),
    ):
        tests.append({"work": "copy", "mb": mb, "ms": _round(2 * mb / rate, 4)})
    chance.shuffle(tests)
    return tests


def _round(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")
