"""The process behind an easel: imports at leisure what drawing needs, then draws each picture it is asked for.

It says `ready`, then answers one line of JSON to each line of JSON, and ends when nobody can ask any more.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

READY = b"ready\n"
_LEISURE = 19  # the nicest there is: only what no rank of the run wants


def main() -> None:
    """Serve standard input until its end."""
    answers = sys.stdout.buffer
    sys.stdout = sys.stderr  # a library's word must not come between the answers
    preparing = threading.Thread(target=_prepare, name="preparing")
    preparing.start()
    preparing.join()
    answers.write(READY)
    answers.flush()
    for order in sys.stdin.buffer:
        answers.write(json.dumps(_answer(json.loads(order))).encode() + b"\n")
        answers.flush()
    os._exit(0)  # nothing is open, and taking Python apart takes longer than a picture


def _prepare() -> None:
    """Import in a thread, for a thread's priority can be lowered alone, and no process may raise its own again."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LEISURE)
    from gpucourse.figures.plots import make_ready

    make_ready()


def _answer(order: dict[str, Any]) -> dict[str, Any]:
    from gpucourse.errors import MissingError, StorageError
    from gpucourse.figures.plots import draw
    from gpucourse.model.manifest import Plot

    try:
        plot = Plot.model_validate(order["plot"])
        drawn = draw(plot, order["metrics"], subtitle=order["subtitle"], folder=Path(order["folder"]))
    except MissingError as error:
        return {"what": error.what, "hint": error.hint, "storage": isinstance(error, StorageError)}
    return {"drawn": [str(path) for path in drawn]}
