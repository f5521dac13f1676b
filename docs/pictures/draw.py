"""Draw the pictures of the lessons that show data sheets, recorded data, or what the code of an exercise computes.

python -m docs.pictures.draw    writes modules/<module>/pictures/<name>.svg

Any other picture, such as boxes and arrows, has no program: edit its SVG file.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from docs.pictures import (
    accesses,
    devices,
    goodput,
    large_plans,
    limits,
    muon,
    overlap,
    parallel,
    pipeline_gaps,
    products,
)
from docs.pictures.canvas import Canvas

MODULES = Path(__file__).parents[2] / "modules"
PICTURES: dict[str, dict[str, Callable[[], Canvas]]] = {
    "01-basic-gpu": {"memory": devices.draw_memory},
    "03-parallel-computing": parallel.PICTURES,
    "04-benchmarking": {"roofline": devices.draw_roofline, "batch": devices.draw_batch},
    "05-gpu-programming": accesses.PICTURES | limits.PICTURES | overlap.PICTURES | products.PICTURES,
    "06-training-at-scale": large_plans.PICTURES,
    "09-frontier-training": pipeline_gaps.PICTURES | muon.PICTURES | goodput.PICTURES,
}


def draw_all() -> dict[Path, Canvas]:
    """Return every picture by its file."""
    return {
        MODULES / module / "pictures" / f"{name}.svg": draw()
        for module, named in PICTURES.items()
        for name, draw in named.items()
    }


def main() -> None:
    """Write every picture."""
    for path, picture in draw_all().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(picture.svg(), encoding="utf-8")
    sys.stdout.write(f"{len(draw_all())} pictures written below {MODULES}\n")


if __name__ == "__main__":
    main()
