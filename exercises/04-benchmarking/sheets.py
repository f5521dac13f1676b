"""Data sheets and measurements of the cards: some are real; of the five invented ones of a puzzle, one cannot be true.

invented.json has the sheets and the tests of each puzzle.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gpus

PUZZLES = 20

Judgement = dict[str, Any]
"""A `sheet`, the `tests` of the card, and the figure that is `impossible`, or None."""


def read_invented(puzzle: int) -> list[Judgement]:
    """Return the five sheets of a puzzle. Exactly one of them cannot be true."""
    return json.loads(Path(__file__).with_name("invented.json").read_text(encoding="utf-8"))[str(puzzle)]


def list_real() -> list[Judgement]:
    """Return the sheets of the real cards with GDDR memory whose properties are all known. The test is the fastest published
    matrix product."""
    return [
        {
            "sheet": {
                "name": gpu.gpu,
                "sms": gpu.sms,
                "cores_per_sm": gpu.cores_per_sm,
                "tensor_fma_per_clock": gpu.tensor_fma_per_clock,
                "boost_mhz": gpu.boost_ghz * 1000,
                "memory_mhz": float(gpu.memory_mhz),
                "bus_bits": gpu.bus_bits,
                "l2_mb": gpu.l2_mb,
                "float16_sparse": False,
                "memory": gpu.memory_gb,
                "float32": gpu.fp32,
                "float16": gpu.fp16,
                "bandwidth": gpu.gb_per_s,
            },
            "tests": [
                {"work": "product", "format": "float16", "tf32": False, "n": 8192, "ms": 2 * 8192**3 / tflops / 1e9}
                for tflops in (gpu.measured_fp16 or [])[1:]
            ],
            "impossible": None,
        }
        for gpu in gpus.table()
        if gpu.memory.startswith("GDDR") and gpu.tensor_fma_per_clock and gpu.memory_mhz and gpu.boost_ghz and gpu.l2_mb
    ]


def list_tests(puzzle: int) -> list[dict[str, Any]]:
    """Return a row for each test of the puzzle's cards."""
    rows = []
    for judgement in read_invented(puzzle):
        for test in judgement["tests"]:
            is_copy = test["work"] == "copy"
            kind = f"copy of {test['mb']:g} MB" if is_copy else f"product, {test['format']}{' as TF32' if test['tf32'] else ''}"
            size = f"L2 {judgement['sheet']['l2_mb']} MB" if is_copy else f"{test['n']}²"
            rows.append({"name": judgement["sheet"]["name"], "test": kind, "size": size, "ms": test["ms"]})
    return rows


def use_part(_world: object, puzzle: int) -> list[str | None]:
    """Return the learner's answer for each of the puzzle's sheets, then for each real one."""
    import my_sheets

    judgements = [*read_invented(puzzle), *list_real()]
    return [my_sheets.find_impossible(judgement["sheet"], judgement["tests"]) for judgement in judgements]
