"""The pictures of modules 1 and 4: the memories of a GPU, rooflines, batches."""

from __future__ import annotations

import math

from docs.pictures.canvas import Canvas
from docs.pictures.sources import EXERCISES, read_data

SHEETS = read_data(EXERCISES / "shared" / "gpus.json")
GPUS = {row["gpu"]: row for row in SHEETS["gpus"]}


def draw_memory() -> Canvas:
    """Draw the memories of a T4 by size and bandwidth, from the registers to the host's memory."""
    gpu = GPUS["T4"]
    sms, ghz = gpu["sms"], gpu["boost_ghz"]
    registers, shared = sms * 256 / 1024, sms * 64 / 1024  # MB: 256 KB of registers and 64 KB of shared memory per SM
    shared_gb_per_s = sms * SHEETS["shared_bytes_per_clock"][gpu["capability"]] * ghz
    rows = [
        ("registers", registers, None, "a"),
        ("shared memory", shared, shared_gb_per_s, "e"),
        ("L2 cache", gpu["l2_mb"], None, "c"),
        (f"GPU memory ({gpu['memory']})", gpu["memory_gb"] * 1024, gpu["gb_per_s"], "b"),
        ("host, over PCIe 3 x16", 16 * 1024, 15.75, "d"),
    ]
    picture = Canvas(
        "The memories of a T4",
        "Five bars on a logarithmic axis, from the smallest and nearest memory to the largest and farthest: registers "
        f"{registers:.0f} MB, shared memory {shared:.1f} MB at {shared_gb_per_s / 1000:.1f} TB/s, L2 cache "
        f"{gpu['l2_mb']} MB, GPU memory {gpu['memory_gb']} GB at {gpu['gb_per_s']} GB/s, the host's memory at 15.75 GB/s.",
        232,
    )
    left, scale = 176, 380 / math.log10(16 * 1024)
    for row, (name, mb, gb_per_s, kind) in enumerate(rows):
        y = 20 + row * 36
        size = f"{mb:.1f} MB" if mb < 1024 else f"{mb / 1024:.0f} GB"
        picture.label(8, y + 18, name)
        picture.box(left, y, max(30.0, math.log10(mb) * scale), 26, kind)
        words = (
            size
            if gb_per_s is None
            else f"{size}, {gb_per_s / 1000:.1f} TB/s"
            if gb_per_s >= 1000
            else f"{size}, {gb_per_s:g} GB/s"
        )
        picture.label(left + max(30.0, math.log10(mb) * scale) + 8, y + 18, words)
    picture.note(
        8, 222, "Size on a logarithmic axis. Peaks from the data sheet and the clock, none measured. Host: g4dn.xlarge."
    )
    return picture


def draw_roofline() -> Canvas:
    """Draw the highest speed of a kernel over its operations per byte, on two GPUs."""
    picture = Canvas(
        "Rooflines of two GPUs",
        "Both axes are logarithmic: operations per byte, from a quarter to 4,096, and TFLOP/s. For each GPU, a slope "
        "shows its memory bandwidth, and a flat roof shows its peak for half precision: 65 TFLOP/s for a T4, 312 TFLOP/s for "
        "an A100. Adding vectors is far down the slope; a product of large matrices is under the flat roof.",
        330,
    )
    left, top, wide, high = 70, 20, 650, 250
    low_x, high_x, low_y, high_y = -2, 12, -2, 3  # powers of 2 for intensity, powers of 10 for TFLOP/s

    def at(intensity: float, tflops: float) -> tuple[float, float]:
        x = left + (math.log2(intensity) - low_x) / (high_x - low_x) * wide
        return x, top + high - (math.log10(tflops) - low_y) / (high_y - low_y) * high

    for power in range(low_y, high_y + 1):
        _, y = at(1, 10**power)
        picture.line(left, y, left + wide, y, "grid")
        picture.note(left - 8, y + 4, f"{10**power:g}", anchor="end")
    for power in range(low_x, high_x + 1, 2):
        x, _ = at(2**power, 1)
        picture.note(x, top + high + 18, f"{2**power:g}", anchor="middle")
    for kind, gpu in (("a", GPUS["T4"]), ("c", next(row for name, row in GPUS.items() if name.startswith("A100")))):
        peak, slope = gpu["fp16"], gpu["gb_per_s"] / 1000
        points = [at(2**low_x, slope * 2**low_x), at(peak / slope, peak), at(2**high_x, peak)]
        picture.curve(points, f"s{kind}")
        x, y = points[2]
        picture.label(x - 4, y - 6, f"{gpu['gpu']}: {peak:g} TFLOP/s", anchor="end")
    for words, intensity, tflops in (
        ("adding vectors", 1 / 3, 0.32 / 3),
        ("decoding, batch 1", 1, 0.32),
        ("product of 1024²", 341, 65),
    ):
        x, y = at(intensity, tflops)
        picture.dot(x, y, "d")
        picture.label(x + 8, y + 16, words)
    picture.note(left + wide / 2, 308, "operations per byte moved", anchor="middle")
    picture.note(8, 324, "TFLOP/s at most, half precision; peaks from the data sheets, dots by arithmetic for a T4.")
    return picture


def draw_batch() -> Canvas:
    """Draw the speed of the server and the time per token of a request over the batch size, from the two ceilings of opt-1.3b
    on a T4.
    """
    weights_gb, parameters, sustained_tflops = 2.63, 1.3e9, 24  # sustained: what a warm T4 reaches in float16
    reading_ms = weights_gb / GPUS["T4"]["gb_per_s"] * 1e3
    computing_ms = 2 * parameters / (sustained_tflops * 1e12) * 1e3  # for each request of the batch
    turn = reading_ms / computing_ms
    picture = Canvas(
        "What a larger batch gives and costs",
        "Two curves over the batch size, from 1 to 256, for opt-1.3b on a T4. The tokens per second of all requests "
        f"rise in proportion to the batch size up to about {turn:.0f}, and then stay the same. The time per token of one "
        "request stays the same up to this batch size, and then rises in proportion.",
        280,
    )
    top, high, wide = 40, 180, 280
    sizes = [2 ** (step / 4) for step in range(33)]
    step_ms = [max(reading_ms, size * computing_ms) for size in sizes]
    rates = [size / ms * 1e3 for size, ms in zip(sizes, step_ms, strict=True)]

    def draw_panel(left: float, title: str, heights: list[float], ticks: list[tuple[float, str]], kind: str) -> None:
        picture.heading(left, 24, title)
        for height, words in ticks:
            picture.line(left, top + high * (1 - height), left + wide, top + high * (1 - height), "grid")
            picture.note(left - 6, top + high * (1 - height) + 4, words, anchor="end")
        for power in range(0, 9, 2):
            picture.note(left + power / 8 * wide, top + high + 18, f"{2**power}", anchor="middle")
        points = [(left + math.log2(size) / 8 * wide, top + high * (1 - y)) for size, y in zip(sizes, heights, strict=True)]
        picture.curve(points, kind)

    draw_panel(
        60,
        "tokens a second, all requests",
        [(math.log10(rate) - 2) / 2 for rate in rates],
        [(0, "100"), (0.5, "1,000"), (1, "10,000")],
        "sa",
    )
    draw_panel(
        440, "ms per token, one request", [ms / 30 for ms in step_ms], [(0, "0"), (1 / 3, "10"), (2 / 3, "20"), (1, "30")], "sd"
    )
    picture.note(380, 256, "batch size", anchor="middle")
    picture.note(8, 274, "By formula: the longer of reading 2.63 GB at 320 GB/s and computing at 24 TFLOP/s. None measured.")
    return picture
