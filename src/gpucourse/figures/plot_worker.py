"""Draw pictures in a separate process, which is started before they are needed.

Importing matplotlib takes a third of a second. The process imports it before the ranks of a run start, while a processor is
idle. While the ranks run, all processors are busy; after they have ended, the person waits.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from gpucourse.errors import MissingError
from gpucourse.figures.overlay import RecordedPlot
from gpucourse.figures.plots import draw, make_ready

if TYPE_CHECKING:
    from gpucourse.model.manifest import Plot

# The new process has the search path of this one, without the current folder.
_BEGIN = "import sys; sys.path[:] = sys.argv[1:]; from gpucourse.figures.plot_worker import serve; serve()"
_LEAVING_S = 1.0
_MODESTY = 5  # a quarter of its parent's processor time during the start, which is enough to draw on a busy machine

_Errors = list[MissingError | None]
"""The error of each plot, or None if it was drawn."""


class PlotWorker:
    """Draw pictures in a separate process if `set_up` has started one, otherwise in this process.

    The owner must call `close`.
    """

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self._at_work = False

    def set_up(self) -> None:
        """Start the process if there is none, without waiting for it. If it cannot be started, pictures are drawn in this
        process."""
        if self.process is not None:
            return
        with contextlib.suppress(OSError):
            self.process = subprocess.Popen(
                [sys.executable, "-c", _BEGIN, *sys.path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # its threads take time to start, and would have no work
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
        """Draw every plot as `plots.draw` does. `records` maps a plot's file to the record that is drawn with it.

        Return the plots that could not be drawn, each with the error that `plots.draw` raised.
        """
        order = ([_strip(plot) for plot in plots], metrics, subtitle, folder, dict(records))
        errors = self._ask(order) if plots else []
        if errors is None:
            errors = _draw_plots(*order)
        return [(plot, error) for plot, error in zip(plots, errors, strict=True) if error is not None]

    def leave(self) -> None:
        """Kill the process unless it is drawing, so that `close` need not wait for it to end. Call this when nothing more will
        be drawn."""
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
        if at_work:  # interrupted; a process killed in the middle of a picture would leave an unfinished file
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_LEAVING_S)
        process.kill()
        process.wait()
        process.stdout.close()

    def _ask(self, order: tuple[object, ...]) -> _Errors | None:
        """Send the order to the process and return its errors. Return None if there is no process, or if it has ended."""
        process = self.process
        if process is None or process.stdin is None or process.stdout is None:
            return None
        self._at_work = True
        try:
            pickle.dump(order, process.stdin)
            process.stdin.flush()
            errors: _Errors | None = pickle.load(process.stdout)  # noqa: S301  # from a process of this very class
        except (
            OSError,
            ValueError,
            EOFError,
            pickle.UnpicklingError,
        ):  # ValueError: another thread has closed it in the meantime
            errors = None
        self._at_work = False
        if errors is None:
            self.close()
        return errors


def _strip(plot: Plot) -> Plot:
    """Return the values of a plot in plain objects. The process that draws then need not import pydantic, which would take a
    third of its start-up time."""
    return cast("Plot", json.loads(plot.model_dump_json(), object_hook=lambda members: SimpleNamespace(**members)))


def _draw_plots(
    plots: Sequence[Plot], metrics: Mapping[str, Any], subtitle: str, folder: Path, records: Mapping[str, RecordedPlot]
) -> _Errors:
    errors: _Errors = []
    for plot in plots:
        try:
            draw(plot, metrics, subtitle=subtitle, folder=folder, record=records.get(plot.file))
            errors.append(None)
        except MissingError as error:
            errors.append(error)
    return errors


def serve() -> None:
    """Import what drawing needs, then answer each request on standard input until the input ends. This runs in the process that
    draws."""
    os.nice(_MODESTY)
    answers = sys.stdout.buffer
    sys.stdout = sys.stderr  # the output of a library must not come between the answers
    make_ready()
    while True:
        try:
            order = pickle.load(sys.stdin.buffer)  # noqa: S301  # from the process that started this one
        except EOFError:
            return
        pickle.dump(_draw_plots(*order), answers)
        answers.flush()
