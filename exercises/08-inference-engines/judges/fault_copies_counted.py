"""Judge a repaired copy: the cache of a model with few key heads is read once, not once for each query head."""

from __future__ import annotations

from cards import Card

from gpucourse.judge import Part, Way

WAYS = {"still": Way("with {kv_heads} key heads, a step still reads {read:,} bytes of a cache that holds {held:,}")}


def judge(part: Part) -> None:
    """Require that one step reads as many bytes of the cache as the cache holds."""
    for kv_heads in (4, 2, 1):
        card = Card(2, 32, 4, kv_heads, 8, 48, 64, 0, "made up")
        counts = part.call(part.module.count_step, part.call(part.module.Decoder, card), [(40, 1)])
        held = 2 * 2 * kv_heads * 8 * 41 * 4
        if counts.cache_read != held or counts.cache_held != held:
            raise part.wrong("still", kv_heads=kv_heads, read=counts.cache_read, held=held)
    part.note("a step reads what the cache holds, with 4, 2 and 1 key heads")
