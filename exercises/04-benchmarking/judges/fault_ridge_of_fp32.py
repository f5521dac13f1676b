"""Judge a repaired copy: the ridge of float16 products belongs to the peak of the tensor cores in float16."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way(
        "a {gpu} computes {peak:g} TFLOP/s in float16 and reads {bandwidth:g} GB/s: its ridge is {right:.0f} operations per "
        "byte, not {given:.0f}"
    )
}


def judge(part: Part) -> None:
    """Divide the dense float16 peak of each GPU in the table by its bandwidth."""
    rows = part.call(part.function("table"))
    for gpu in rows:
        right = gpu.fp16 * 1e12 / (gpu.gb_per_s * 1e9)
        given = part.call(lambda gpu=gpu: gpu.ridge_flop_per_byte)
        if abs(given / right - 1) > 1e-6:
            raise part.wrong("still", gpu=gpu.gpu, peak=gpu.fp16, bandwidth=gpu.gb_per_s, right=right, given=given)
    part.note(f"{len(rows)} ridges are those of the dense float16 peak")
