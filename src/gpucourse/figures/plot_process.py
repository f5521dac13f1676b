"""The process of a PlotWorker: imports what drawing needs, then draws the pictures of each request.

It answers each line of JSON with one line of JSON, and ends when its standard input is closed.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from gpucourse.errors import MissingError, StorageError
from gpucourse.figures.overlay import RecordedPlot
from gpucourse.figures.plots import draw, make_ready

if TYPE_CHECKING:
    from gpucourse.model.manifest import Plot

_MODESTY = 5  # a fourth of its parent's processor time while it gets ready, and enough to draw on a busy machine


def main() -> None:
    """Serve the requests on standard input until its end."""
    os.nice(_MODESTY)
    answers = sys.stdout.buffer
    sys.stdout = sys.stderr  # what a library prints must not come between the answers
    gc.disable()  # imports leave no garbage; looking for some would be a tenth of the time
    make_ready()
    gc.freeze()
    gc.enable()
    for order in sys.stdin.buffer:
        request = json.loads(order)
        answers.write(json.dumps([_answer(plot, request) for plot in request["plots"]]).encode() + b"\n")
        answers.flush()


def _answer(text: str, order: dict[str, Any]) -> dict[str, Any]:
    """Draw one plot; return an empty mapping if it is drawn, otherwise the error."""
    # A namespace has all that drawing reads of a plot: the parent has validated it, and pydantic would be a third of the start.
    plot = cast("Plot", json.loads(text, object_hook=lambda members: SimpleNamespace(**members)))
    members = order["records"].get(plot.file)
    record = RecordedPlot(**members) if members else None
    try:
        draw(plot, order["metrics"], subtitle=order["subtitle"], folder=Path(order["folder"]), record=record)
    except MissingError as error:
        return {"what": error.what, "hint": error.hint, "storage": isinstance(error, StorageError)}
    return {}
