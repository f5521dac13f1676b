"""Judge a repaired copy: at some of its sizes, a block must be partly empty."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("{uneven} of the sizes {sizes} leave threads of a block of {block} without an element: at least 2 should")}
RUNS = {
    "right": {"sizes": [1, 31, 257, 1000, 4096], "elements": 4096, "block": 256},
    "wrong": {"sizes": [256, 512, 1024, 2048, 4096], "elements": 4096, "block": 256},
}


def judge(part: Part) -> None:
    """Require that at least two sizes, besides the run's number of elements, are not multiples of the block."""
    metrics = part.metrics
    sizes = [size for size in metrics["sizes"] if size != metrics["elements"]]
    uneven = [size for size in sizes if size % metrics["block"]]
    if len(uneven) < 2:
        raise part.wrong("still", sizes=", ".join(map(str, sizes)), uneven=len(uneven), block=metrics["block"])
    part.note(f"{', '.join(map(str, uneven))} leave threads without an element")
