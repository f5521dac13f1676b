"""Pictures drawn in a separate process, which gets ready at a time when the person does not wait for it.

The import of matplotlib lasts a third of a second. Before the ranks of a run start, a second processor is idle; from then on
the ranks keep every processor busy, and after their end the person waits.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from gpucourse.errors import MissingError, StorageError
from gpucourse.figures.overlay import RecordedPlot
from gpucourse.figures.plots import draw, make_ready

if TYPE_CHECKING:
    from gpucourse.model.manifest import Plot

# The search path is that of this process, without the current folder.
_BEGIN = "import sys; sys.path[:] = sys.argv[1:]; from gpucourse.figures.plot_worker import serve; serve()"
_LEAVING_S = 1.0
_MODESTY = 5  # a fourth of its parent's processor time while it gets ready, and enough to draw on a busy machine


class PlotWorker:
    """Draws pictures: in a separate process (`process`) if `set_up` started one, otherwise in this one.

    Its owner closes it.
    """

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self._at_work = False
        self._drawn = b""  # the last request that was served without an error

    def set_up(self) -> None:
        """Start the process, if there is none; return at once. If it cannot be started, pictures are drawn in this process."""
        if self.process is not None:
            return
        with contextlib.suppress(OSError):
            self.process = subprocess.Popen(
                [sys.executable, "-c", _BEGIN, *sys.path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={
                    **os.environ,
                    "OPENBLAS_NUM_THREADS": "1",
                },  # its threads need time to start, and have no work
                start_new_session=True,  # a Ctrl-C is meant for this process, not for the one that draws
            )

    def draw(
        self,
        plots: Sequence[Plot],
        metrics: Mapping[str, Any],
        *,
        subtitle: str,
        folder: Path,
        records: Mapping[str, RecordedPlot] = MappingProxyType({}),
    ) -> list[tuple[Plot, MissingError]]:
        """Draw every plot as `plots.draw` does, with the record that `records` has under its file.

        Return the plots that could not be drawn, each with the error that `plots.draw` raises."""
        if not plots:
            return []
        order = {
            "plots": [plot.model_dump_json() for plot in plots],
            "metrics": metrics,
            "subtitle": subtitle,
            "folder": str(folder),
            "records": {file: asdict(record) for file, record in records.items()},
        }
        line = json.dumps(order).encode() + b"\n"
        if line == self._drawn:  # it was drawn early, while torchrun was closing down
            return []
        answers = self._ask(line)
        self._drawn = line if answers is not None and not any(answers) else b""
        if answers is None:
            errors = [_draw_here(plot, metrics, subtitle, folder, records.get(plot.file)) for plot in plots]
        else:
            errors = [_error(answer) for answer in answers]
        return [(plot, error) for plot, error in zip(plots, errors, strict=True) if error is not None]

    def leave(self) -> None:
        """Kill the process, unless it is drawing: nothing more is to be drawn, and `close` then need not wait for its end."""
        if self.process is not None and not self._at_work:
            self.process.kill()

    def close(self) -> None:
        """End the process. A second call does nothing."""
        process, self.process = self.process, None
        at_work, self._at_work = self._at_work, False
        if process is None or process.stdin is None or process.stdout is None:
            return
        with contextlib.suppress(OSError):
            process.stdin.close()
        if at_work:  # interrupted: if it were killed in the middle of a picture, an unfinished file would stay
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_LEAVING_S)
        process.kill()
        process.wait()
        process.stdout.close()

    def _ask(self, line: bytes) -> list[dict[str, Any]] | None:
        """Send a request; return the answers of the process, one for each plot, or None if the process has ended."""
        process = self.process
        if process is None or process.stdin is None or process.stdout is None:
            return None
        self._at_work = True
        try:
            process.stdin.write(line)
            process.stdin.flush()
            answer = process.stdout.readline()
        except (OSError, ValueError):  # ValueError: another thread has closed it meanwhile
            answer = b""
        self._at_work = False
        if not answer.endswith(b"\n"):
            self.close()
            return None
        answers: list[dict[str, Any]] = json.loads(answer)
        return answers


def _draw_here(
    plot: Plot, metrics: Mapping[str, Any], subtitle: str, folder: Path, record: RecordedPlot | None
) -> MissingError | None:
    try:
        draw(plot, metrics, subtitle=subtitle, folder=folder, record=record)
    except MissingError as error:
        return error
    return None


def _error(answer: Mapping[str, Any]) -> MissingError | None:
    if not answer:
        return None
    return (StorageError if answer["storage"] else MissingError)(answer["what"], hint=answer["hint"])


def serve() -> None:
    """Import what drawing needs, then answer each line of JSON on standard input with one, until its end. The process that
    draws calls this."""
    os.nice(_MODESTY)
    answers = sys.stdout.buffer
    sys.stdout = sys.stderr  # what a library prints must not come between the answers
    make_ready()
    for order in sys.stdin.buffer:
        request = json.loads(order)
        answers.write(json.dumps([_draw_order(plot, request) for plot in request["plots"]]).encode() + b"\n")
        answers.flush()


def _draw_order(text: str, order: dict[str, Any]) -> dict[str, Any]:
    """Draw one plot of a request; return an empty mapping if it is drawn, otherwise the error."""
    # A namespace has all that drawing reads of a plot: the parent has validated it, and pydantic would be a third of the start.
    plot = cast("Plot", json.loads(text, object_hook=lambda members: SimpleNamespace(**members)))
    members = order["records"].get(plot.file)
    record = RecordedPlot(**members) if members else None
    try:
        draw(plot, order["metrics"], subtitle=order["subtitle"], folder=Path(order["folder"]), record=record)
    except MissingError as error:
        return {"what": error.what, "hint": error.hint, "storage": isinstance(error, StorageError)}
    return {}
