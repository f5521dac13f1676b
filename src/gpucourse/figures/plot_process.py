"""The process of a PlotWorker: imports what drawing needs, then draws the pictures that it is asked for.

It answers one line of JSON to each line of JSON, and ends when nobody can ask any more.
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

_MODESTY = 5  # a fourth of what whoever asks gets while it gets ready, and enough to draw on a busy machine


def main() -> None:
    """Serve standard input until its end."""
    os.nice(_MODESTY)
    answers = sys.stdout.buffer
    sys.stdout = sys.stderr  # a library's word must not come between the answers
    gc.disable()  # while nothing is thrown away: a tenth of the time
    make_ready()
    gc.freeze()
    gc.enable()
    for order in sys.stdin.buffer:
        request = json.loads(order)
        answers.write(json.dumps([_answer(plot, request) for plot in request["plots"]]).encode() + b"\n")
        answers.flush()


def _answer(text: str, order: dict[str, Any]) -> dict[str, Any]:
    """What came of one plot: nothing if it is drawn, else the error."""
    # What drawing reads of a plot, without pydantic's third of the time to get ready: whoever asks has validated it.
    plot = cast("Plot", json.loads(text, object_hook=lambda members: SimpleNamespace(**members)))
    members = order["records"].get(plot.file)
    record = RecordedPlot(**members) if members else None
    try:
        draw(plot, order["metrics"], subtitle=order["subtitle"], folder=Path(order["folder"]), record=record)
    except MissingError as error:
        return {"what": error.what, "hint": error.hint, "storage": isinstance(error, StorageError)}
    return {}
