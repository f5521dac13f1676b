"""Judge a repaired copy: the driver's figure must contain what the allocator does not know."""

from __future__ import annotations

from types import SimpleNamespace

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way(
        "the allocator has reserved {reserved} MiB and the driver counts {right} MiB, but the timeline says {given} MiB for "
        "the driver"
    )
}
MIB = 1 << 20
RESERVED, USED, CAPACITY = 100, 340, 1000  # MiB


def judge(part: Part) -> None:
    """Check the driver's figure on a device of which CUDA itself and other programs use 240 MiB."""
    timeline: list[dict[str, float]] = []
    memory = SimpleNamespace(
        allocated=lambda: 60 * MIB, reserved=lambda: RESERVED * MIB, used=lambda: USED * MIB, capacity=lambda: CAPACITY * MIB
    )
    names = {"timeline": timeline, "memory": memory, "MIB": MIB, "say": lambda _text: None}
    part.call(part.function_alone("note", **names), "a step")
    row = timeline[-1]
    if (row["driver_mib"], row["driver_free_mib"]) != (USED, CAPACITY - USED):
        raise part.wrong("still", reserved=RESERVED, right=USED, given=f"{row['driver_mib']:g}")
    part.note("the driver's figure contains CUDA's own memory and that of other programs")
