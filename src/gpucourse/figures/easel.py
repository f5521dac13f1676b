"""An easel: pictures drawn by a process of their own, which gets ready while the ranks of a run work.

Importing matplotlib takes a third of a second of a processor, and the ranks keep every processor busy; a process of the
lowest priority imports it in the moments that they leave.
"""

from __future__ import annotations

import contextlib
import json
import select
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpucourse.errors import MissingError, StorageError
from gpucourse.figures.painter import READY
from gpucourse.model.manifest import Plot

# The search path of this process, and not the folder that the person happens to be in.
_BEGIN = "import sys; sys.path[:] = sys.argv[1:]; from gpucourse.figures.painter import main; main()"
_LEAVING_S = 1.0


class Easel:
    """Draws pictures: by a process of its own (`painter`) if `set_up` began one and it is ready, in this one otherwise.

    Whoever has it closes it.
    """

    def __init__(self) -> None:
        self.painter: subprocess.Popen[bytes] | None = None
        self._ready = False

    def set_up(self) -> None:
        """Begin the process; returns at once. Where none can be begun, pictures are drawn here."""
        with contextlib.suppress(OSError):
            self.painter = subprocess.Popen(
                [sys.executable, "-c", _BEGIN, *sys.path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # a Ctrl-C is meant for whoever asks, not for who draws
            )

    def draw(self, plot: Plot, metrics: Mapping[str, Any], *, subtitle: str, folder: Path) -> list[Path]:
        """What `plots.draw` does, with the same files, result and errors."""
        order = {"plot": plot.model_dump(mode="json"), "metrics": metrics, "subtitle": subtitle, "folder": str(folder)}
        answer = self._asked(order) if self._is_ready() else None
        if answer is None:
            from gpucourse.figures.plots import draw

            return draw(plot, metrics, subtitle=subtitle, folder=folder)
        if "drawn" in answer:
            return [Path(path) for path in answer["drawn"]]
        raise (StorageError if answer["storage"] else MissingError)(answer["what"], hint=answer["hint"])

    def close(self) -> None:
        """End the process. May be called again."""
        painter, self.painter = self.painter, None
        ready, self._ready = self._ready, False
        if painter is None or painter.stdin is None or painter.stdout is None:
            return
        with contextlib.suppress(OSError):
            painter.stdin.close()
        try:
            if not ready:
                painter.kill()
            painter.wait(_LEAVING_S)
        except subprocess.TimeoutExpired:
            painter.kill()
            painter.wait()
        painter.stdout.close()

    def _is_ready(self) -> bool:
        """Whether the process has imported everything. One that has not will not soon: the processors were always busy."""
        if not self._ready and self.painter is not None and self.painter.stdout is not None:
            said, _, _ = select.select([self.painter.stdout], [], [], 0)
            self._ready = bool(said) and self.painter.stdout.readline() == READY
            if not self._ready:
                self.close()
        return self._ready

    def _asked(self, order: Mapping[str, Any]) -> dict[str, Any] | None:
        """The answer of the process, None where it is not there any more."""
        if self.painter is None or self.painter.stdin is None or self.painter.stdout is None:
            return None
        try:
            self.painter.stdin.write(json.dumps(order).encode() + b"\n")
            self.painter.stdin.flush()
            line = self.painter.stdout.readline()
        except OSError:
            line = b""
        if not line.endswith(b"\n"):
            self.close()
            return None
        answer: dict[str, Any] = json.loads(line)
        return answer
