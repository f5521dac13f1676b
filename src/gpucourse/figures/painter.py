"""The process behind an easel: imports what drawing needs, then draws the pictures that it is asked for, side by side.

It answers one line of JSON to each line of JSON, and ends when nobody can ask any more.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from gpucourse.errors import MissingError, StorageError
from gpucourse.figures.plots import draw, make_ready

if TYPE_CHECKING:
    from gpucourse.model.manifest import Plot

_MODESTY = 5  # a fourth of what whoever asks gets while it gets ready, and enough to draw on a busy machine


def main() -> None:
    """Serve standard input until its end."""
    os.nice(_MODESTY)
    answers = sys.stdout.buffer
    sys.stdout = sys.stderr  # a library's word must not come between the answers
    make_ready()
    for order in sys.stdin.buffer:
        answers.write(json.dumps(_answers(json.loads(order))).encode() + b"\n")
        answers.flush()
    os._exit(0)  # nothing is open, and taking Python apart takes longer than a picture


def _answers(order: dict[str, Any]) -> list[dict[str, Any] | None]:
    """What came of each plot of the order: nothing if it is drawn, else the error; None where its process died."""
    first, *others = order.pop("plots")
    beside = [_beside(plot, order) for plot in others]
    return [_answer(first, order), *(_awaited(*one) for one in beside)]


def _beside(plot: str, order: dict[str, Any]) -> tuple[int, int]:
    """Draw it in a copy of this process, which has everything imported: its number, and where its answer comes."""
    listen, say = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(say, json.dumps(_answer(plot, order)).encode())
        finally:
            os._exit(0)
    os.close(say)
    return pid, listen


def _awaited(pid: int, listen: int) -> dict[str, Any] | None:
    with os.fdopen(listen, "rb") as answer:
        said = answer.read()
    os.waitpid(pid, 0)
    found: dict[str, Any] | None = json.loads(said or "null")
    return found


def _answer(text: str, order: dict[str, Any]) -> dict[str, Any]:
    # What drawing reads of a plot, without pydantic's third of the time to get ready: whoever asks has validated it.
    plot = cast("Plot", json.loads(text, object_hook=lambda members: SimpleNamespace(**members)))
    try:
        draw(plot, order["metrics"], subtitle=order["subtitle"], folder=Path(order["folder"]))
    except MissingError as error:
        return {"what": error.what, "hint": error.hint, "storage": isinstance(error, StorageError)}
    return {}
