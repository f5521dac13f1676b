"""Judge a repaired copy: it must refuse an impossible rate."""

from __future__ import annotations

from types import SimpleNamespace

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way("a rate of twice the ceiling is still accepted"),
    "too-strict": Way("a rate of half the ceiling is refused"),
}


def judge(part: Part) -> None:
    """Require that a rate of twice the ceiling is refused, and that one of half the ceiling is not."""
    speed = part.function_alone(
        "speed",
        gpu=None,
        bench=SimpleNamespace(percentile=lambda seconds, _: seconds[0], spread_ms=lambda _: {}),
        gpus=SimpleNamespace(matmul_tflops=lambda _, seconds: 1 / seconds, format_flops=str),
        limit=lambda _: 1.0,
    )
    fast_speeds, slow_speeds = (part.call(speed, "float32", 1000, [seconds]) for seconds in (0.5, 2.0))
    if fast_speeds["tflops"] is not None or not fast_speeds["refused"]:
        raise part.wrong("still")
    if slow_speeds["tflops"] != 0.5 or slow_speeds["refused"]:
        raise part.wrong("too-strict")
    part.note("twice the ceiling is refused, and half of it is accepted")
