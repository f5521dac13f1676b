"""Another solution of 4.2: it goes backwards from the end, block by block, as long as a block is like those after it."""

from __future__ import annotations


def middle(values: list[float]) -> float:
    """Return the median."""
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def rates(m: int, k: int, n: int, calls: list[tuple[float, float]], peak_tflops: float) -> dict[str, float | None]:
    """Return the TFLOP/s of the first second and of the settled part of the run, when that part begins, and its percentage."""
    origin = calls[0][0]
    length = calls[-1][0] + calls[-1][1] - origin
    tera = (m * k * n + m * k * n) / 1e12
    figures: dict[str, float | None] = dict.fromkeys(("sustained", "percent", "settled_s"))
    figures["burst"] = tera / middle([took for begin, took in calls if begin - origin < 1])
    size = max(10, len(calls) // 40)
    count, levels = 0, []
    while count < len(calls):
        block = [took for _, took in calls[max(0, len(calls) - count - size) : len(calls) - count]]
        level = middle(block)
        if levels and abs(level - middle(levels)) > 0.06 * middle(levels):
            break
        levels.append(level)
        count = min(len(calls), count + size)
    settled_s = calls[len(calls) - count][0] - origin
    if settled_s <= length * 0.66:
        busy = sum(took for _, took in calls[len(calls) - count :])
        figures |= {
            "settled_s": settled_s,
            "sustained": count * tera / busy,
            "percent": count * tera / busy / peak_tflops * 100,
        }
    return figures
