"""Judge the repaired versions.py of 5.3: FLOP per byte must follow from the bytes that a kernel requests."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way(
        "a kernel that asks for {asked:,} bytes at n = {n} performs {right:g} FLOP per byte, but the function says {given}"
    ),
}
ROWS = ((64, 2_097_152, 0.25), (64, 131_072, 4.0), (96, 221_184, 8.0))  # n, bytes, 2 n³ / bytes


def judge(part: Part) -> None:
    """Judge flop_per_byte for three kernels that request very different numbers of bytes."""
    flop_per_byte = part.function("flop_per_byte")
    for n, byte_count, reference in ROWS:
        answer = part.call(flop_per_byte, n, byte_count)
        if not isinstance(answer, (int, float)) or abs(answer - reference) > 1e-6 * reference:
            raise part.wrong("still", n=n, asked=byte_count, right=reference, given=answer)
    part.note("2 n³ over the bytes that each kernel asks for")
