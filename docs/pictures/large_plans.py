"""Pictures of module 6 about plans: ways to divide one training, and the faster half of the valid plans of another.

Both follow the formulas of 6.6.
"""

from __future__ import annotations

from collections.abc import Callable

from docs.pictures.canvas import Canvas
from docs.pictures.sources import load

PARTS = (("weights", "a"), ("gradients", "b"), ("optimizer", "e"), ("activations", "c"))
SLICES = {1: "a", 2: "b", 4: "c", 8: "e"}


plans, targets = (load("06-training-at-scale", name) for name in ("plans", "targets"))


def draw_ways() -> Canvas:
    """Draw the memory on a GPU and the minimum time of a step, for six plans of a 7B model on eight A100s."""
    work = targets.work_of("7b", "8xa100-80", 1)
    ways = {
        "8 copies": plans.Plan(8, 1, 1, 0, "none", 32, "bf16"),
        "8 copies, ZeRO 1": plans.Plan(8, 1, 1, 1, "none", 32, "bf16"),
        "8 copies, ZeRO 3": plans.Plan(8, 1, 1, 3, "none", 32, "bf16"),
        "8 stages": plans.Plan(1, 8, 1, 0, "none", 256, "bf16"),
        "8 slices": plans.Plan(1, 1, 8, 0, "none", 256, "bf16"),
        "ZeRO 1, all again": plans.Plan(8, 1, 1, 1, "all", 4, "bf16"),
    }
    totals = {name: plans.memory(work, plan)["total"] / 1e9 for name, plan in ways.items()}
    seconds = {name: plans.step_seconds(work, plan)["step"] for name, plan in ways.items()}
    usable = work.cluster.usable_bytes / 1e9
    words = "; ".join(f"{name} {totals[name]:.0f} GB and {seconds[name]:.1f} s" for name in ways)
    picture = Canvas(
        "Six ways to divide the training of a 7B model over eight A100s",
        "Bars of the memory of the fullest GPU, each made up of weights, gradients, optimizer and activations. A line marks "
        f"the {usable:.0f} GB that may be filled. Memory and least time of a step: {words}. Only the plain copies do not fit. "
        "The plan of the last bar has eight sequences in a micro-batch, the other plans have one.",
        282,
    )
    left, unit = 138.0, 3.6
    for row, (name, plan) in enumerate(ways.items()):
        y, x = 16.0 + row * 36, left
        picture.label(left - 8, y + 16, name, anchor="end")
        for part, kind in PARTS:
            width = plans.memory(work, plan)[part] / 1e9 * unit
            picture.box(x, y, width, 24, kind)
            x += width
        words = (
            f"{totals[name]:.0f} GB, {seconds[name]:.1f} s" if totals[name] <= usable else f"{totals[name]:.0f} GB do not fit"
        )
        picture.label(max(x, left + usable * unit) + 8, y + 16, words)
    limit = left + usable * unit
    picture.line(limit, 8, limit, 232, "line")
    picture.note(limit, 246, f"{usable:.0f} GB usable", anchor="middle")
    for column, (part, kind) in enumerate(PARTS):
        picture.box(138 + column * 110, 258, 14, 14, kind)
        picture.label(158 + column * 110, 270, part)
    return picture


def draw_all_plans() -> Canvas:
    """Draw the faster half of the valid plans of a 70B model on 64 H100s, by their memory and the minimum time of a step.

    The other half is left out, because 6.6 asks how slow a valid plan can be.
    """
    work = targets.work_of("70b", "64xh100", 1)
    valid = plans.list_valid_plans(work)
    fastest, best = valid[0]
    usable = work.cluster.usable_bytes / 1e9
    faster = valid[: len(valid) // 2]
    half = faster[-1][0]
    sizes = [plans.memory(work, plan)["total"] / 1e9 for _, plan in faster]
    picture = Canvas(
        "The faster half of the valid plans for a 70B model on 64 H100s",
        f"{len(faster)} points, the faster half of {len(valid)} valid plans. The horizontal axis shows the GB on the fullest "
        f"GPU of a plan, the vertical axis the least time of its step, from {fastest:.1f} to {half:.1f} s. The fastest plan is "
        f"{best.dp} x {best.pp} x {best.tp} with ZeRO {best.zero}. The plans take {min(sizes):.0f} to {max(sizes):.0f} GB, and "
        "have 1 to 8 slices.",
        360,
    )
    left, top, wide, high, first, last = 64.0, 20.0, 660.0, 270.0, 7.0, 14.0

    def at(gigabytes: float, seconds: float) -> tuple[float, float]:
        return left + wide * gigabytes / 80, top + high * (1 - (seconds - first) / (last - first))

    for mark in (8, 10, 12, 14):
        y = at(0, mark)[1]
        picture.line(left, y, left + wide, y, "grid")
        picture.note(left - 8, y + 4, f"{mark} s", anchor="end")
    for mark in range(0, 81, 20):
        picture.note(at(mark, first)[0], top + high + 18, f"{mark} GB", anchor="middle")
    x = at(usable, first)[0]
    picture.line(x, top, x, top + high, "line")
    for size, (seconds, plan) in reversed([*zip(sizes, faster, strict=True)]):
        picture.dot(*at(size, seconds), SLICES[plan.tp])
    for column, (tp, kind) in enumerate(SLICES.items()):
        picture.dot(left + 8 + column * 120, 334, kind)
        picture.label(left + 20 + column * 120, 338, f"{tp} slice{'s' if tp > 1 else ''}")
    picture.note(left, 354, "By formula: every GPU at its peak, every link at its full speed.")
    return picture


PICTURES: dict[str, Callable[[], Canvas]] = {"ways-to-divide": draw_ways, "all-plans": draw_all_plans}
