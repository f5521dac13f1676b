"""Amounts of money on the screen."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal


def usd(amount: Decimal) -> str:
    """USD for a person: `$3.07`; below a cent `less than $0.01`, never a zero that is none."""
    if 0 < amount < Decimal("0.01"):
        return "less than $0.01"
    return f"${amount.quantize(Decimal('0.01'), ROUND_HALF_UP):,}"


def hourly(amount: Decimal | None) -> str:
    """USD an hour: `$1.53 an hour`; `not known` for None."""
    return "not known" if amount is None else f"{usd(amount)} an hour"
