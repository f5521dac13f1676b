"""The command `logs`: shows the logs of a run, live or afterwards, of one rank or of all."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from gpucourse.cli import complete
from gpucourse.cli.flags import RunArgument, RunFlag, choose_run, parse_seconds
from gpucourse.cli.outcome import present_run
from gpucourse.cli.session import Session
from gpucourse.errors import ExitCode, GpucourseError, UsageError
from gpucourse.model.event import LogBytes, SilentRanks, Stage
from gpucourse.model.record import RunRecord
from gpucourse.runs.connect import Connections
from gpucourse.runs.logs import LogPart, StoredLog, Tail, merge_by_time, select_logs
from gpucourse.runs.resolve import find_run
from gpucourse.runs.settle import collect_later, follow_on, settle
from gpucourse.storage import storage_error
from gpucourse.ui.views.slurm import describe_later
from gpucourse.units import parse_moment
from gpucourse.workspace import runs

_BLOCKS_AT_ONCE = 50
_MAX_DELAY_S = 5  # between the end of a run that is followed, and the arrival of its last line


def logs(
    session: Session,
    run: RunArgument = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow the run until it has ended.")] = False,
    rank: Annotated[int | None, typer.Option("--rank", help="Only this rank, raw.", autocompletion=complete.ranks)] = None,
    fold: Annotated[bool, typer.Option("--fold", help="Fold lines that several ranks share into one.")] = False,
    times: Annotated[
        bool,
        typer.Option("--times", help="In order of arrival, with times; a line collected later has the time of its collection."),
    ] = False,
    tail: Annotated[
        int | None, typer.Option("--tail", "-n", min=0, help="Only the last N lines of each rank.", metavar="N")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="Only what arrived in the run's last 30s, 5m or 1h.", metavar="TIME")
    ] = None,
    grep: Annotated[
        str | None, typer.Option("--grep", help="Only lines that match a regular expression.", metavar="PATTERN")
    ] = None,
    run_option: RunFlag = None,
) -> int:
    """Show the logs of a run: live, by rank, or folded."""
    if follow and fold:
        raise UsageError("--follow and --fold cannot be combined", hint="gpucourse logs --fold after the run has ended")
    if times and (follow or fold):
        raise UsageError("--times can be combined only with --rank", hint="gpucourse logs --times after the run has ended")
    if follow and grep is not None:
        raise UsageError("--follow and --grep cannot be combined", hint="gpucourse logs --grep PATTERN after the run has ended")
    seconds = parse_seconds(since, "gpucourse logs --since 5m", flag="--since")
    part = LogPart(tail=tail, since=seconds, grep=_parse_pattern(grep))
    return show_logs(session, choose_run(run, run_option), follow=follow, rank=rank, fold=fold, times=times, part=part)


def _parse_pattern(pattern: str | None) -> re.Pattern[bytes] | None:
    """Compile the pattern of --grep. Raises UsageError if it is not a regular expression."""
    try:
        return None if pattern is None else re.compile(pattern.encode(errors="surrogateescape"))
    except re.error as error:
        raise UsageError(f"--grep '{pattern}': {error}", hint=f"gpucourse logs --grep '{re.escape(pattern or '')}'") from error


def show_logs(
    session: Session, run_id: str | None, *, follow: bool, rank: int | None, fold: bool, times: bool, part: LogPart
) -> int:
    """Show the logs of a run, or a part of them. With `follow`, continue until the run has ended, then show its result.

    A run that was collected without being followed has no captured screen yet, so it is followed as if it had just ended.
    """
    context = session.look()
    record = find_run(context, run_id)
    unseen = record.state == "succeeded" and not runs.files_of(context.paths, record).screen.exists()
    if follow and (unseen or not record.collected):
        return _follow(session, record, rank, part)
    try:
        with Connections(context) as connections:
            record = collect_later(context, settle(context, record, connections), connections)
    except GpucourseError as error:  # the nodes do not answer: the copied part can still be read
        session.console.warn(f"this may be incomplete: {error.what}")
    if text := describe_later(record):
        session.console.warn(f"{text}; the same command collects their output")
    logs = select_logs(context.paths, record, rank, part)
    try:
        if times:
            _print_by_time(session, record, logs)
        elif rank is not None:
            _print_raw(session, logs)
        elif fold:
            _print_folded(session, logs)
        else:
            _print(session, logs)
    except OSError as error:
        if error.filename is None and (screen_error := storage_error(error, Path("/dev/stdout"))) is not None:
            raise screen_error from error  # an error of the screen, not of a log
        raise
    if not session.console.out.written_at:
        session.console.note(_explain_nothing(record, logs, part))
    return ExitCode.DONE


def _explain_nothing(record: RunRecord, logs: list[StoredLog], part: LogPart) -> str:
    """Return why no line is shown."""
    if not logs:
        return f"run {record.id} has no logs{'' if record.has_ended else ' yet'}: {record.error or record.state}"
    if part.grep is not None:
        return f"no line of run {record.id} matches '{part.grep.pattern.decode(errors='replace')}'"
    return f"run {record.id} has no {'such lines' if part.tail is not None or part.since else 'lines'} in its logs"


def _follow(session: Session, record: RunRecord, rank: int | None, part: LogPart) -> int:
    """Show the logs as they arrive on disk, even if another process writes them. Begin with the first selected line."""
    context = session.look()
    session.console.mode(record.mode)
    end = threading.Event()
    with session.console.watch() as live:
        ignored = LogBytes | Stage if rank is None else LogBytes | Stage | SilentRanks
        filtered_context = context.watched_by(lambda event: None if isinstance(event, ignored) else live(event))
        tail = Tail(context.paths, live, record, rank, part)
        thread = threading.Thread(target=tail.follow_until, args=(end.is_set, context.stop), daemon=True)
        thread.start()
        try:
            with Connections(filtered_context) as connections:
                result = follow_on(filtered_context, record, connections)
        finally:
            end.set()
            thread.join()
    return present_run(session, result, live)


def _print(session: Session, logs: list[StoredLog]) -> None:
    """Print the logs of all ranks, one rank after another, with a prefix before every line."""
    from gpucourse.ui.loglines import MAX_LINE
    from gpucourse.ui.logpipe import LogPipe

    out = session.console.out
    pipe = LogPipe(out, colour=session.console.colour(out), limit=MAX_LINE if out.terminal else None)
    for log in logs:
        for piece in log.read():
            if out.closed:
                return
            pipe.feed(LogBytes(node=log.node, rank=log.rank, data=piece))
        pipe.close()


def _print_by_time(session: Session, record: RunRecord, logs: list[StoredLog]) -> None:
    """Print the lines of all ranks in the order of their arrival, each with the seconds since the run began."""
    from gpucourse.ui.loglines import Source, visible

    cut, prefixes = _make_cut(session), {log.path: Source(log.node, log.rank).prefix for log in logs}
    last_s = 0.0

    def list_lines() -> Iterator[str]:
        nonlocal last_s
        for last_s, log, piece in merge_by_time(record, logs):
            if block := cut(log, piece):
                start = f"\n{last_s:9.3f} s  {prefixes[log.path]} "
                yield (start + visible(block.removesuffix(b"\n")).replace("\n", start))[1:] + "\n"

    _write(session, list_lines())
    end_s = (parse_moment(record.ended) - parse_moment(record.created)).total_seconds() if record.ended else last_s
    if last_s > end_s + _MAX_DELAY_S:
        session.console.note(
            f"the run was not followed to its end, at {end_s:.1f} s: lines with a later time show when they were collected"
        )


def _print_folded(session: Session, logs: list[StoredLog]) -> None:
    """Print each line once, even if several ranks wrote it, with the numbers of those ranks before it."""
    from gpucourse.ui.fold import fold

    cut = _make_cut(session)
    _write(session, fold({log.rank: map(partial(cut, log), log.read()) for log in logs if log.rank is not None}))


def _make_cut(session: Session) -> Callable[[StoredLog, bytes], bytes]:
    """Return a function that shortens the long lines in a piece of a log for a terminal. If the output is not a terminal, it
    returns pieces unchanged."""
    from gpucourse.ui.loglines import LineLimit

    limits: dict[Path, LineLimit] = {}

    def cut(log: StoredLog, piece: bytes) -> bytes:
        if not session.console.out.terminal:
            return piece
        return limits.setdefault(log.path, LineLimit("the run's logs/")).cut(piece)

    return cut


def _write(session: Session, blocks: Iterator[str]) -> None:
    """Write whole lines, many at a time, until there are no more or the reader has left."""
    from gpucourse.ui.loglines import wrap_lines

    out = session.console.out
    while not out.closed and (batch := list(islice(blocks, _BLOCKS_AT_ONCE))):
        out.write(wrap_lines("".join(batch), session.console.width(out)))


def _print_raw(session: Session, logs: list[StoredLog]) -> None:
    """Print the bytes unchanged, for `logs --rank R > file`. On a terminal, escape unprintable characters, line by line."""
    from gpucourse.ui.loglines import visible, wrap_lines

    out, cut = session.console.out, _make_cut(session)
    for log in logs:
        for piece in log.read():
            if out.closed:
                return
            if not out.terminal:
                out.write_bytes(piece)
            elif block := cut(log, piece):
                out.write(wrap_lines(visible(block.removesuffix(b"\n")), session.console.width(out)) + "\n")
