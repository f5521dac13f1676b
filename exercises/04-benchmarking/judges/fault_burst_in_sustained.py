"""Judge a repaired copy: it must use only times from after the clock has settled."""

from __future__ import annotations

from types import SimpleNamespace

from gpucourse.judge import Part, Way

WAYS = {"still": Way("times from the first fifth of the run, when the card is cool, still count")}
COLD, HOT, SPAN_S = 1.0, 2.0, 30.0  # seconds per call before and after the end of the first fifth of the run


def judge(part: Part) -> None:
    """Require that no time from the first fifth of a run is kept."""
    now = [0.0]

    def time_each(_call: object, _device: object, count: int) -> list[float]:
        seconds = [COLD if now[0] < SPAN_S / 5 else HOT] * count
        now[0] += 0.1 * count
        return seconds

    run = part.function_alone(
        "time_long_run",
        time=SimpleNamespace(monotonic=lambda: now[0], perf_counter=lambda: now[0], time=lambda: now[0]),
        bench=SimpleNamespace(time_each=time_each),
        telemetry=None,
        read=None,
        device=None,
        Callable=None,
    )
    times, _ = part.call(run, None, SPAN_S)
    if not times or COLD in times:
        raise part.wrong("still")
    part.note("only times after the clock has settled are kept")
