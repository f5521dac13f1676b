"""`run` of an exercise that is a terminal on a node: connects the learner's terminal to it, and afterwards checks that the GPU
is free."""

from __future__ import annotations

import re
from contextlib import ExitStack

from gpucourse.cli import terminal
from gpucourse.cli.outcome import tell
from gpucourse.cli.session import Session
from gpucourse.errors import Interrupted, UsageError
from gpucourse.runs.prepare import ResolvedRun
from gpucourse.ui.text import clean
from gpucourse.workspace import runs

# A movement of the cursor, any other escape sequence, or a character.
_TOKEN = re.compile(
    r"\x1b\[(?P<count>\d*)(?P<move>[A-Za-z@])|\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b.|.|\n", re.DOTALL
)


def run_session(session: Session, run: ResolvedRun, *, detach: bool, json: bool) -> int:
    """Open the session in this terminal; return the exit code of its result."""
    from gpucourse.runs import slurm_session as act

    context = session.context
    if detach:
        raise UsageError(
            f"{run.exercise.id} opens a session in your own terminal, so it cannot run detached",
            hint=f"gpucourse run {run.exercise.id}, without --detach",
        )
    client = terminal.find_ssh(run.exercise.id)
    with ExitStack() as stack:
        with session.console.watch() as live:
            opened_session = stack.enter_context(act.open_session(context.watched_by(live), run))
        session.console.note("exit, or Ctrl-D, ends the session and gives the GPU back. What is typed for you:")
        session.console.note(f"$ {opened_session.shown}")
        given = terminal.give(client, opened_session.argv)
        transcript = f"$ {opened_session.shown}\n{readable(given.shown)}"
        if given.closed:  # nothing can be shown any more, but the session counts
            act.close_session(context, opened_session, transcript)
            raise Interrupted(
                f"the terminal of run {opened_session.record.id} was closed; its session has ended, and its record is complete",
                hint=f"gpucourse runs; the transcript: {runs.files_of(context.paths, opened_session.record).transcript}",
            )
        with session.console.watch() as live:
            attended = act.close_session(context.watched_by(live), opened_session, transcript)
    return tell(session, attended, live, json=json)


def readable(shown: bytes) -> str:
    """Return what a terminal showed, as text: the final form of each line, after typing, deleting and overwriting."""
    done: list[str] = []
    line: list[str] = []
    at = 0
    for token in _TOKEN.finditer(shown.decode("utf-8", "replace").replace("\r\n", "\n")):
        word, count = token[0], int(token["count"] or 1)
        if word == "\n":
            done.append("".join(line))
            line, at = [], 0
        elif word == "\r":
            at = 0
        elif word == "\b" or token["move"] == "D":
            at = max(0, at - count)
        elif token["move"] == "C":
            at += count
        elif token["move"] == "K":
            del line[at:]
        elif token["move"] == "P":
            del line[at : at + count]
        elif token["move"] == "@":
            line[at:at] = " " * count
        elif len(word) == 1 and word != "\a":
            line += " " * (at - len(line))
            line[at : at + 1] = word
            at += 1
    return clean("\n".join([*done, "".join(line)]))
