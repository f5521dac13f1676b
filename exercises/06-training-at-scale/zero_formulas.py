"""Compare the learner's formulas of 6.2 with the counts of bytes held and sent at each stage, and with the ZeRO paper."""

from __future__ import annotations

import sys
import traceback
from typing import Any

PARTS = ("weights", "gradients", "moments")
NUMBER = 4  # bytes of a float32
PAPER_MODEL = (7_500_000_000, 64, 2, 2, 12)  # parameters, ranks, bytes of weights, gradients and optimizer for each
PAPER_GB = {0: 120.0, 1: 31.4, 2: 16.6, 3: 1.9}  # Rajbhandari et al., 2020, figure 1


def compare(rows: list[dict[str, Any]], parameters: int, ranks: int) -> tuple[float | None, str]:
    """Add to the row of each stage the results of my_zero.py, and their differences in bytes from the counts.

    Return the largest difference from the paper's figures in GB, and "no error". If the formulas do not run, nothing is added
    to the rows, the difference is None, and the error replaces "no error".
    """
    try:
        import my_zero

        additions = [_compare_stage(my_zero, row, parameters, ranks) for row in rows]
        paper = [sum(my_zero.bytes_per_rank(stage, *PAPER_MODEL)) / 1e9 - size for stage, size in PAPER_GB.items()]
    except Exception as error:  # noqa: BLE001  # the learner's code may fail in any way; the error is shown
        if not isinstance(error, NotImplementedError):
            traceback.print_exc(file=sys.stdout)
        return None, describe(error)
    for row, added_bytes in zip(rows, additions, strict=True):
        row.update(added_bytes)
    return max(map(abs, paper)), "no error"


def _compare_stage(formulas: Any, row: dict[str, Any], parameters: int, ranks: int) -> dict[str, float]:
    """Compare for float32 with AdamW: 4, 4 and 8 bytes.

    The formulas include neither torch's padding, nor the bytes that torch sends beyond the paper.
    """
    by_formula = formulas.bytes_per_rank(row["stage"], parameters, ranks, NUMBER, NUMBER, 2 * NUMBER)
    sent_bytes = NUMBER * formulas.traffic(row["stage"], parameters, ranks)
    off = sum(abs(row[f"{part}_bytes"] - size) for part, size in zip(PARTS, by_formula, strict=True))
    return {
        "by_formula_bytes": sum(by_formula),
        "off_bytes": round(off, 3),
        "sent_by_formula_bytes": sent_bytes,
        "sent_off_bytes": round(abs(row["sent_bytes"] - row["sent_explained_bytes"] - sent_bytes), 3),
    }


def describe(error: Exception) -> str:
    """Return an error in one line: its class and the first line of its message."""
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}"
