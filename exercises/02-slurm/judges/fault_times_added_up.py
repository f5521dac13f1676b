"""Judge a repaired copy: processes work at the same time, so the slowest one decides how long a call takes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from gpucourse.judge import Part, Way

WAYS = {"still": Way("two processes take {times} s for a call at the same time, and the result is {given} s, not {right} s")}
TIMES = (2.0, 5.0)


def judge(part: Part) -> None:
    """Time a call of two processes, of which this one is the faster."""
    reductions = SimpleNamespace(SUM="sum", MAX="max")
    world = SimpleNamespace(
        device="cpu", slowest=lambda _times: [TIMES[1]],
        reduce=lambda _times, operation: SimpleNamespace(tolist=lambda: [sum(TIMES) if operation == "sum" else max(TIMES)]),
    )  # fmt: skip
    bench = SimpleNamespace(time_calls=lambda _call, _device, **_options: [TIMES[0]], spread_ms=lambda times: times[0])
    names: dict[str, Any] = {"world": world, "bench": bench, "dist": SimpleNamespace(ReduceOp=reductions)}
    given = part.call(part.function_alone("time_slowest", Callable=Any, **names), lambda: None)
    if given != TIMES[1]:
        raise part.wrong("still", times=" and ".join(f"{seconds:g}" for seconds in TIMES), given=given, right=TIMES[1])
    part.note("a call has ended when the slowest process has ended")
