"""A guard around code that only shows, draws or explains something: if that code fails, the command continues."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from gpucourse.errors import GpucourseError, Interrupted

Guard = Callable[[str], AbstractContextManager[None]]
"""A function that makes a guard for the named part of the work."""


@contextmanager
def guard(
    part: str, log: Callable[[], Path] | None, warn: Callable[[str], None], *, except_for: tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """Run a block. If it fails, add one line to the file that `log` returns, call `warn` with one sentence, and continue.

    `part` completes the sentence "could not ...". Interrupted, a closed pipe and the errors in `except_for` are not caught.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, (Interrupted, BrokenPipeError, *except_for)):
            raise
        file = _write_line(part, error, log) if log is not None else None
        if isinstance(error, GpucourseError):
            reason = "; ".join(filter(None, (error.what, error.hint)))
        else:
            reason = f"{type(error).__name__}: {error}; nothing else is affected"
        warn(f"could not {part}: {reason}{f'. Details: {file}' if file is not None else ''}")


def _write_line(part: str, error: Exception, log: Callable[[], Path]) -> Path | None:
    """Append the error and its traceback to the log, in one line. Return the log, or None if it cannot be written."""
    import traceback

    from gpucourse.outside.names import printable
    from gpucourse.units import now_utc

    frames = traceback.extract_tb(error.__traceback__)[1:]  # the first frame is the guard's
    places = " > ".join(f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames)
    line = f"{now_utc()} {' '.join(sys.argv)}: could not {part}: {type(error).__name__}: {error} ({places})"
    try:
        file = log()
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(printable(line, 8192) + "\n")
    except (OSError, GpucourseError):
        return None
    return file
