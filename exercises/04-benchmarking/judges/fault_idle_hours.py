"""Judge a repaired copy: it must count idle hours as hours that are paid for."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("at a fifth of the load a token costs {times:.3g} times as much; it should cost five times as much")}


def judge(part: Part) -> None:
    """Require that a token costs five times as much if the utilisation is a fifth."""
    price = part.function("usd_per_million")
    full, fifth = part.call(price, 1.0, 100.0), part.call(price, 1.0, 100.0, 20.0)
    if abs(full - 1e6 / 360_000) > 1e-9 or abs(fifth / full - 5) > 1e-9:
        raise part.wrong("still", times=fifth / full)
    part.note("at a fifth of the load a token costs five times as much")
