"""The pictures of the lessons, drawn from geometry, formulas, data sheets and one real trace.

python -m docs.pictures.draw    writes modules/<module>/pictures/<name>.svg
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from docs.pictures import (
    accesses,
    checkpoints,
    crashes,
    devices,
    kernels,
    large_plans,
    limits,
    mesh,
    overlap,
    parallel,
    products,
    pytorch,
    sidecar,
    systems,
    tracer,
    tracing,
    training_memory,
    zero,
)
from docs.pictures.canvas import Canvas

MODULES = Path(__file__).parents[2] / "modules"
PICTURES: dict[str, dict[str, Callable[[], Canvas]]] = {
    "00-local-foundations": {"step": devices.draw_step, "ranks": devices.draw_ranks},
    "01-basic-gpu": {
        "memory": devices.draw_memory,
        "queue": devices.draw_queue,
        "answer": devices.draw_answer,
        "three-answers": devices.draw_three_answers,
    },
    "02-slurm": {"waiting": devices.draw_waiting, "srun": devices.draw_srun},
    "03-parallel-computing": parallel.PICTURES,
    "04-benchmarking": {"roofline": devices.draw_roofline, "batch": devices.draw_batch, "price": devices.draw_price},
    "05-gpu-programming": accesses.PICTURES
    | pytorch.PICTURES
    | limits.PICTURES
    | overlap.PICTURES
    | kernels.PICTURES
    | products.PICTURES,
    "06-training-at-scale": training_memory.PICTURES
    | zero.PICTURES
    | mesh.PICTURES
    | large_plans.PICTURES
    | checkpoints.PICTURES
    | crashes.PICTURES,
    "07-hpc-systems": systems.PICTURES,
    "B-ebpf-tracing": sidecar.PICTURES | tracing.PICTURES | tracer.PICTURES,
}


def draw_all() -> dict[Path, Canvas]:
    """Every picture by the file that it is for."""
    return {
        MODULES / module / "pictures" / f"{name}.svg": draw()
        for module, named in PICTURES.items()
        for name, draw in named.items()
    }


def reference(name: str, picture: Canvas) -> str:
    """How a lesson shows a picture: the words are those of the picture, for who cannot see it and for a terminal."""
    return f"![{picture.alt}](pictures/{name}.svg)"


def main() -> None:
    """Write every picture."""
    for path, picture in draw_all().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(picture.svg(), encoding="utf-8")
    sys.stdout.write(f"{len(draw_all())} pictures written below {MODULES}\n")


if __name__ == "__main__":
    main()
