"""Choose the best batch size, and list every size that the measurement cannot rule out. Nothing is measured here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

KNEE = 0.9  # the smallest batch size that reaches this share of the highest throughput is the best setting
Row = Mapping[str, Any]


def choose_best(rows: Sequence[Row]) -> Row | None:
    """Return the row of the smallest batch size that reaches KNEE of the highest throughput, or None if there is no row."""
    top_speed = max((row["output_tok_per_s"] for row in rows), default=0.0)
    return next((row for row in rows if row["output_tok_per_s"] >= KNEE * top_speed), None)


def within_the_spread(rows: Sequence[Row]) -> list[int]:
    """Return the batch sizes that may be the best setting, judging by the slowest and the fastest round of each."""
    if not rows:
        return []
    fastest = max(rows, key=lambda row: row["output_tok_per_s"])
    may = [row["batch"] for row in rows if row["high_tok_per_s"] >= KNEE * fastest["low_tok_per_s"]]
    surely = [row["batch"] for row in rows if row["low_tok_per_s"] >= KNEE * fastest["high_tok_per_s"]]
    return [batch for batch in may if not surely or batch <= surely[0]]
