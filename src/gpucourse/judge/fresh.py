"""Processes that are not forks, because a process that has imported torch must not fork on macOS: a part's, and its ranks'.

The judge's function cannot be passed to a rank, so the rank executes the whole judge: it gets the results of earlier calls of
`on_ranks`, and at the call for which it was started it becomes the rank. A judge is deterministic, so it arrives there.
"""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path
from typing import Any, NoReturn

from gpucourse.judge.inside import judge_here
from gpucourse.judge.ranks import Body, Call, be_rank, run_ranks

START_S = 60.0  # seconds that new processes may need to import torch on a busy computer
_BEGIN = "import sys; sys.path[:] = sys.argv[4:]; from gpucourse.judge.{} import {}; {}(*sys.argv[1:4])"


def start_part(request: dict[str, Any], folder: Path, output: int, answer: int) -> int:
    """Start the process of a part and return its number."""
    return _spawn(_BEGIN.format("apart", "be_fresh_part", "be_fresh_part"), request, folder, output, answer)


def start_rank(what: object, folder: Path, writer: int) -> int:
    """Start the process of a rank and return its number."""
    return _spawn(_BEGIN.format("fresh", "be_fresh_rank", "be_fresh_rank"), what, folder, 1, writer)


def _spawn(program: str, what: object, folder: Path, output: int, pipe: int) -> int:
    order = folder / f"order-{pipe}"
    order.write_bytes(pickle.dumps(what))
    os.set_inheritable(pipe, True)
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, output, 1),
        (os.POSIX_SPAWN_DUP2, output, 2),
    ]
    words = [sys.executable, "-c", program, str(order), str(folder), str(pipe), *sys.path]
    return os.posix_spawn(sys.executable, words, os.environ, file_actions=actions)


class FreshRanks:
    """Starts each rank as a new process. Replaces `run_ranks` in a part that is not a fork itself."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.request = request
        self._earlier: list[list[Any]] = []

    def __call__(self, call: Call, size: int, body: Body, limit_s: float, file_name: str) -> list[Any]:
        """Return what `run_ranks` returns."""

        def start(number: int, folder: Path, writer: int) -> int:
            return start_rank((self.request, self._earlier, number, limit_s + START_S), folder, writer)

        answers = run_ranks(call, size, body, limit_s + START_S, file_name, start=start)
        self._earlier.append(answers)
        return answers


class _OneRank:
    """Returns the results of earlier calls; at the next call, this process becomes a rank."""

    def __init__(self, earlier: list[list[Any]], number: int, folder: Path, writer: int, limit_s: float) -> None:
        self._earlier, self._number, self._folder, self._writer = iter(earlier), number, folder, writer
        self._limit_s = limit_s

    def __call__(self, call: Call, size: int, body: Body, _limit_s: float, _file_name: str) -> list[Any]:
        answers = next(self._earlier, None)
        if answers is None:
            be_rank(call, self._number, size, body, self._folder, self._writer, self._limit_s)
        return answers


def be_fresh_rank(order: str, folder: str, writer: str) -> NoReturn:
    """Run a rank in this process. Never returns."""
    request, earlier, number, limit_s = pickle.loads(Path(order).read_bytes())  # noqa: S301  # from the part's own judge
    judge_here(request, start_ranks=_OneRank(earlier, number, Path(folder), int(writer), limit_s))
    os._exit(1)
