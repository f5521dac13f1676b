"""The picture of two rooflines in module 5."""

from __future__ import annotations

import math

from docs.pictures.canvas import Canvas
from docs.pictures.devices import GPUS

KERNELS = [("sparse", 1 / 7), ("saxpy", 1 / 6), ("stencil", 0.75), ("layer norm", 1.0), ("GEMM 16", 16 / 6)]
KERNELS += [("FFT", 3.75), ("GEMM 512", 512 / 6), ("forces", 20 * 1024 / 28)]
CORE = (10.0, 168.0)  # GB/s and GFLOP/s of one core of a server with AVX-512, as 5.7 measured them


def draw_two_roofs() -> Canvas:
    """Draw the roofs of a T4 and of one core, with the kernels of 5.7 at their intensities."""
    picture = Canvas(
        "Two rooflines and eight kernels",
        "Both axes are logarithmic: operations per byte, from an eighth to 2,048, and GFLOP/s. Two roofs: a T4 in float32 with "
        "320 GB/s and 8,100 GFLOP/s, its ridge at 25 operations per byte; and one core of a server with 10 GB/s and 168 "
        "GFLOP/s, as measured, its ridge at 17. Dots show programs. On the slopes, with their operations per byte: sparse "
        "product (0.14), saxpy (0.17), stencil (0.75), layer norm (1), GEMM of 16 (2.7), FFT (3.75). Under the flat parts: "
        "GEMM of 512 (85), forces (731).",
        366,
    )
    left, top, wide, high = 70, 20, 660, 280
    low_x, high_x, low_y, high_y = -3, 11, -1, 4  # powers of 2 for intensity, powers of 10 for GFLOP/s

    def at(intensity: float, gflops: float) -> tuple[float, float]:
        x = left + (math.log2(intensity) - low_x) / (high_x - low_x) * wide
        return x, top + high - (math.log10(gflops) - low_y) / (high_y - low_y) * high

    for power in range(low_y, high_y + 1):
        y = at(1, 10.0**power)[1]
        picture.line(left, y, left + wide, y, "grid")
        picture.note(left - 8, y + 4, f"{10.0**power:,g}", anchor="end")
    for power in range(low_x, high_x + 1, 2):
        x = at(2.0**power, 1)[0]
        picture.note(x, top + high + 18, f"{2.0**power:g}", anchor="middle")
    t4 = GPUS["T4"]
    for kind, name, bandwidth, peak in (("a", "T4, float32", t4["gb_per_s"], 1000 * t4["fp32"]), ("b", "one core", *CORE)):
        ridge = peak / bandwidth
        points = [at(2.0**low_x, bandwidth * 2.0**low_x), at(ridge, peak), at(2.0**high_x, peak)]
        picture.curve(points, f"s{kind}")
        picture.label(points[2][0], points[2][1] - 8, f"{name}: {peak:,.0f} GFLOP/s", anchor="end")
        x, y = points[1]
        picture.label(x - 8, y - 6, f"ridge {ridge:.0f}", anchor="end")
        for _, intensity in KERNELS:
            picture.dot(*at(intensity, min(peak, intensity * bandwidth)), kind)
    for place, (name, intensity) in enumerate(KERNELS):
        x, y = at(intensity, min(CORE[1], intensity * CORE[0]))
        picture.label(x + 6, y + (18 if place % 2 else 32), name)
    picture.note(left + wide / 2, 338, "operations per byte, at least", anchor="middle")
    picture.note(8, 358, "GFLOP/s at most. T4: data sheet. Core: measured by 5.7 on a server. Dots: by counting.")
    return picture


PICTURES = {"two-roofs": draw_two_roofs}
