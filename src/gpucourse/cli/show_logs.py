"""`logs`: what the ranks said, from the files at home; a run that goes on is followed by whoever is free to attend it."""

from __future__ import annotations

import shutil
import sys
import threading
from pathlib import Path

from gpucourse.cli.outcome import tell
from gpucourse.cli.session import Session
from gpucourse.context import Context
from gpucourse.errors import ExitCode, GpucourseError
from gpucourse.model.event import LogBytes, Stage
from gpucourse.model.record import RunRecord
from gpucourse.runs.logs import Tail, log_files, read, read_timed_lines
from gpucourse.runs.settle import follow_on, settle
from gpucourse.workspace import runs


def show_logs(session: Session, wanted: str | None, *, follow: bool, rank: int | None, fold: bool, times: bool = False) -> int:
    """Show the logs of a run; with `follow` go on until it has ended, and then show its result.

    A run that was collected while nobody looked has no captured screen yet: it is followed as if it had just ended.
    """
    context = session.context
    record = runs.find(context.paths, wanted)
    unseen = record.state == "succeeded" and not runs.files_of(context.paths, record).screen.exists()
    if follow and (unseen or not record.collected):
        return _follow(session, record, rank)
    try:
        record = settle(context, record)
    except GpucourseError as error:  # the nodes do not answer: what is at home can be read all the same
        session.console.warn(f"this may be incomplete: {error.what}")
    if times:
        _times(session, record, rank)
    elif rank is not None:
        for path in log_files(context, record, rank).values():
            _raw(session, path)
    elif fold:
        _fold(session, record)
    else:
        _print(session, record)
    return ExitCode.DONE


def _follow(session: Session, record: RunRecord, rank: int | None) -> int:
    """Everything from the first line on: from disk, whoever writes it there."""
    context = session.context
    session.console.mode(record.mode)
    ended = threading.Event()
    with session.console.watch() as live:
        context.watch = lambda event: None if isinstance(event, LogBytes | Stage) else live(event)
        shown = Context(workspace=context.workspace, folders=context.folders, environ=context.environ, watch=live)
        tail = threading.Thread(target=Tail(shown, record, rank).until, args=(ended.is_set, context.stop), daemon=True)
        tail.start()
        try:
            attended = follow_on(context, record)
        finally:
            ended.set()
            tail.join()
    return tell(session, attended, live, json=False)


def _print(session: Session, record: RunRecord) -> None:
    """All ranks, one after the other, every line with its prefix."""
    from gpucourse.ui.logpipe import LogPipe

    pipe = LogPipe(session.console.out, colour=session.console.colour(session.console.out))
    for (node, rank), path in log_files(session.context, record, None).items():
        for piece in read(path):
            pipe.feed(LogBytes(node=node, rank=rank, data=piece))
        pipe.close()


def _times(session: Session, record: RunRecord, rank: int | None) -> None:
    """All ranks' lines in the order in which they came, each with the seconds since the run began."""
    from gpucourse.ui.loglines import Source, visible

    for seconds, node, number, line in read_timed_lines(session.context, record, rank):
        if session.console.out.closed:
            return
        text = visible(line.rstrip(b"\r\n"))
        session.console.out.write(f"{seconds:9.3f} s  {Source(node, number).prefix} {text}\n")


def _fold(session: Session, record: RunRecord) -> None:
    """Lines that all ranks share once, under the ranks that said them."""
    from gpucourse.ui.fold import fold

    files = log_files(session.context, record, None)
    for line in fold({rank: read(path) for (_, rank), path in files.items() if rank is not None}):
        if session.console.out.closed:
            return
        session.console.out.write(line + "\n")


def _raw(session: Session, path: Path) -> None:
    """The bytes as they are, for `logs --rank R > file`; a terminal gets them made harmless, line by line."""
    if session.console.out.terminal:
        from gpucourse.ui.loglines import visible

        with path.open("rb") as file:
            for line in file:
                session.console.out.write(visible(line.rstrip(b"\r\n")) + "\n")
        return
    sys.stdout.flush()
    with path.open("rb") as file:
        shutil.copyfileobj(file, sys.stdout.buffer)
