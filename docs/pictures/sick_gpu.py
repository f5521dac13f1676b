"""The pictures of module 9's lesson on hangs, slow jobs, corruption and accounts."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

from docs.pictures.canvas import Canvas

ACCOUNTS = Path(__file__).parents[2] / "exercises" / "09-frontier-training" / "accounts.json"


def draw_ripples() -> Canvas:
    """Draw the ranks of three copies; in the copy of the sick one, coloured by the kind of group that they wait in.

    What the other copies do is the prediction of 9.8.
    """
    picture = Canvas(
        "One rank stops: two ripples in its copy",
        "Three copies of four stages of four slices. In copy 1, one rank of stage 1 stops. The three other "
        "slices of its stage wait in tp, the other stages of its copy in pp. What the other copies do is left open.",
        190,
    )
    for copy, left in enumerate((20, 270, 520)):
        picture.heading(left, 20, f"copy {copy}")
        for stage in range(4):
            for part in range(4):
                kind = "empty"
                if copy == 1:
                    kind = "a" if stage != 1 else ("d" if part == 2 else "e")
                picture.box(left + 54 * stage, 34 + 28 * part, 46, 22, kind)
            picture.note(left + 23 + 54 * stage, 162, f"stage {stage}", anchor="middle")
    picture.legend(
        170, (20, "d", "stopped"), (130, "e", "waits in tp"), (270, "a", "waits in pp"), (410, "empty", "to predict")
    )
    return picture


def draw_graph() -> Canvas:
    """Draw who waits for whom, down to the rank that waits for nobody."""
    picture = Canvas(
        "Follow the waiting",
        "Ranks that wait point to ranks that wait as well, these to further ranks that wait, and those to one "
        "rank that points to nobody.",
        230,
    )
    columns = ((20, "b", "these wait", 5), (250, "a", "for these, which wait", 4), (480, "e", "for these, which wait", 3))
    centres: list[list[tuple[float, float]]] = []
    for left, kind, title, count in columns:
        picture.note(left, 18, title)
        gap = 190 / count
        centres.append([(left + 35, 26 + gap * (row + 0.5)) for row in range(count)])
        for x, y in centres[-1]:
            picture.box(x - 35, y - 10, 70, 20, kind, "waits")
    picture.box(670, 110, 80, 24, "d", "stopped")
    for row, (x, y) in enumerate(centres[0]):
        target = centres[1][row * 4 // 5]
        picture.line(x + 36, y, target[0] - 38, target[1], arrow=True)
    for row, (x, y) in enumerate(centres[1]):
        target = centres[2][row * 3 // 4]
        picture.line(x + 36, y, target[0] - 38, target[1], arrow=True)
    for x, y in centres[2]:
        picture.line(x + 36, y, 668, 122, arrow=True)
    return picture


def draw_slow_ranks() -> Canvas:
    """Draw the computing of four ranks over twelve steps: schematic, without a scale."""
    picture = Canvas(
        "Seconds of computing, by step (schematic)",
        "Two ranks of the first stage are high in every step. Of two ranks of another stage, one is low with "
        "a single peak, a pause, "
        "and one is a little higher in every step: it is sick.",
        230,
    )
    left, bottom, step = 60, 190, 42
    picture.line(left, bottom, left + 11 * step + 10, bottom)
    rows = (
        ("first stage", "sa", 150.0, 0.0, -1), ("first stage", "sa", 153.0, 2.0, -1),
        ("healthy, one pause", "sc", 60.0, 1.0, 7), ("sick", "sd", 82.0, 3.0, -1),
    )  # fmt: skip
    for name, kind, level, phase, pause in rows:
        heights = [level + 3 * math.sin(2.3 * number + phase) + (95 if number == pause else 0) for number in range(12)]
        picture.curve([(left + step * number, bottom - height) for number, height in enumerate(heights)], kind)
        if phase != 2.0:
            picture.label(left + 11 * step + 12, bottom - heights[-1] + 4, name)
    picture.note(left + 5.5 * step, 212, "steps", anchor="middle")
    picture.note(left, 16, "seconds of computing")
    return picture


def draw_flipped_bit() -> Canvas:
    """Draw four ranks before and after the sum, with one wrong gradient."""
    picture = Canvas(
        "A bit flips before the sum",
        "Before the sum, the gradient of rank 2 is wrong. After it, all four ranks have the same wrong sum, "
        "and equal checksums. Rank 3 "
        "computes rank 2's gradient again, and gets another one.",
        200,
    )
    for rank in range(4):
        y = 30 + 34 * rank
        picture.label(10, y + 17, f"rank {rank}")
        picture.box(70, y, 110, 24, "d" if rank == 2 else "c", "gradient")
        picture.line(182, y + 12, 250, 92, arrow=True)
        picture.box(320, y, 110, 24, "d", "sum, wrong")
        picture.line(292, 92, 318, y + 12, arrow=True)
    picture.box(252, 80, 40, 24, "empty", "sum")
    picture.note(375, 184, "four equal checksums", anchor="middle")
    picture.box(500, 98, 240, 24, "c", "rank 2's gradient, computed by rank 3")
    picture.note(620, 90, "differs from the one that rank 2 sent", anchor="middle")
    return picture


def draw_goodput() -> Canvas:
    """Draw a made-up day with eight interruptions as a bar."""
    day = json.loads(ACCOUNTS.read_text(encoding="utf-8"))["day"]
    lost, down = (sum(one[key] for one in day) for key in ("lost_hours", "down_hours"))
    kept = 24 - lost - down
    picture = Canvas(
        "A day with eight interruptions",
        f"Of 24 hours, {kept:.1f} count, {lost:.1f} were trained and lost, and in {down:.1f} nothing ran.",
        130,
    )
    picture.heading(20, 20, f"a made-up day with {len(day)} interruptions: a goodput of {100 * kept / 24:.0f} %")
    x = 20.0
    for hours, kind in ((kept, "c"), (lost, "b"), (down, "d")):
        picture.box(x, 36, hours * 30, 34, kind)
        x += hours * 30
    picture.legend(
        90,
        (20, "c", f"counts: {kept:.1f} h"),
        (220, "b", f"trained, then lost: {lost:.1f} h"),
        (460, "d", f"nothing ran: {down:.1f} h"),
    )
    return picture


PICTURES: dict[str, Callable[[], Canvas]] = {
    "ripples": draw_ripples,
    "waiting-graph": draw_graph,
    "slow-ranks": draw_slow_ranks,
    "flipped-bit": draw_flipped_bit,
    "goodput": draw_goodput,
}
