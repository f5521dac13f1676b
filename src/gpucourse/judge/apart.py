"""Judging one part in a separate process: if it does not end, crashes, exits or prints 200 MB, the answer says so.

The process has a session, a folder, and limits on time, memory and output; it is ended together with everything that it
started.
"""

from __future__ import annotations

import ctypes
import faulthandler
import json
import os
import pickle
import resource
import select
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, Protocol

from gpucourse.judge.fresh import FreshRanks, start_part
from gpucourse.judge.inside import judge_here
from gpucourse.judge.ranks import run_ranks
from gpucourse.judge.stacks import end_with_parent, line_of_stack

OUTPUT_LIMIT = 1 << 20  # bytes that a part may print before it is ended
OUTPUT_SHOWN = 8 << 10  # bytes of it that the answer contains
ANSWER_LIMIT = 1 << 20  # bytes of an answer; a normal one has a few hundred
MEMORY_LIMIT = 4 << 30  # bytes of data that a part may hold; torch itself uses less than a tenth
FILE_LIMIT = 256 << 20  # bytes of a file that a part may write

_SET_SUBREAPER = 36  # of Linux' prctl
_LOOK_S = 0.02


class Asker(Protocol):
    """The process that waits for the answer: `pipe` becomes readable when it sends something or goes away."""

    pipe: int

    def have_ended(self) -> bool:
        """Return whether the process that waits has gone away."""


def adopt_orphans() -> None:
    """Make what a part leaves behind a child of this process, which can then end it (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_SUBREAPER, 1)


def judge_apart(request: dict[str, Any], asker: Asker) -> dict[str, Any] | None:
    """Judge one part in a fork, within `limit_s` seconds; return None if the asker goes away meanwhile."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gpucourse-part-", ignore_cleanup_errors=True) as folder:
        output_reader, output_writer = os.pipe()
        answer_reader, answer_writer = os.pipe()
        fresh = request.get("fresh")
        child = start_part(request, Path(folder), output_writer, answer_writer) if fresh else os.fork()
        if child == 0:
            _be_part(request, Path(folder), output_writer, answer_writer)
        os.close(output_writer)
        os.close(answer_writer)
        pipes = _Pipes(output_reader, answer_reader, asker)
        place = ""
        try:
            end = pipes.read(began + request["limit_s"])
            if end == "late":
                place = _ask_for_place(child, Path(folder), Path(request["file"]).name)
        finally:
            code = _end(child, began + request["limit_s"] if pipes.end == "closed" else 0.0)
            os.close(output_reader)
            os.close(answer_reader)
    if end == "gone":
        return None
    seconds = round(time.monotonic() - began, 3)
    return {**_make_answer(request, pipes, place, code), "output": pipes.text.decode(errors="replace"), "seconds": seconds}


def _make_answer(request: dict[str, Any], pipes: _Pipes, place: str, code: int | None) -> dict[str, Any]:
    """Return the answer of the part's process, or why there is none; `code` is None if the process had to be ended."""
    if pipes.printed > OUTPUT_LIMIT:
        return _make_failure("too-much-output", f"it printed more than {OUTPUT_LIMIT >> 20} MB and was ended: print less")
    if pipes.end == "late":
        return _make_failure("endless", f"{place}it did not end within {request['limit_s']:g} s")
    with suppress(ValueError):
        answer = json.loads(pipes.answer_text)
        if isinstance(answer, dict):
            return answer
    if code is None:
        return _make_failure("closed-files", "it closed files that are not its own: close only what you opened")
    if code < 0:
        return _make_failure("crash", f"it crashed: {signal.Signals(-code).name}")
    return _make_failure("exit", f"it ended its process with code {code}: return instead")


def _make_failure(way: str, says: str) -> dict[str, Any]:
    return {"word": "failed", "way": way, "says": says, "case": "", "notes": []}


class _Pipes:
    """Reads what comes from the part's process: its bounded output, and its answer, which ends with a newline.

    `end` says how reading ended: an answer, too much, the pipe closed without an answer, too late, or the asker gone.
    """

    def __init__(self, output: int, answer: int, asker: Asker) -> None:
        self.output, self.answer, self.asker = output, answer, asker
        self.text = self.answer_text = b""
        self.printed = 0
        self.end = ""
        self._open = {output, answer}

    def read(self, deadline: float) -> str:
        """Read until one of these ends, and return it."""
        while not self.end:
            wanted = [*self._open, self.asker.pipe]
            ready = select.select(wanted, [], [], max(0.0, deadline - time.monotonic()))[0]
            if not ready:
                self.end = "late"
            elif self.asker.pipe in ready and self.asker.have_ended():
                self.end = "gone"
            self._take(ready)
        while self.end == "answer" and (ready := select.select(self._open & {self.output}, [], [], 0)[0]):
            self._take(ready)  # the last output
        return self.end

    def _take(self, ready: list[int]) -> None:
        for pipe in self._open & set(ready):
            data = os.read(pipe, 1 << 16)
            if not data:
                self._open.discard(pipe)
            elif pipe == self.answer:
                self.answer_text += data
            else:
                self.printed += len(data)
                self.text += data[: max(0, OUTPUT_SHOWN - len(self.text))]
        if self.printed > OUTPUT_LIMIT or len(self.answer_text) > ANSWER_LIMIT:
            self.end = "too much"
        elif self.answer_text.endswith(b"\n"):
            self.end = "answer"
        elif self.answer not in self._open:
            self.end = self.end or "closed"


def _ask_for_place(child: int, folder: Path, name: str) -> str:
    """Return `my_ring.py:14: `, the line of the learner's file that its process executes; empty if the process does not report
    it."""
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGUSR1)
    deadline = time.monotonic() + 0.5
    while time.monotonic() < deadline:
        if line := line_of_stack(folder / "stack", name):
            return f"{line}: "
        time.sleep(_LOOK_S)
    return ""


def _end(child: int, patience: float) -> int | None:
    """End the process, after giving it until `patience` to end by itself, and everything that it left.

    Return its exit code, negative for a signal; None if it had to be ended.
    """
    while (done := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < patience:
        time.sleep(_LOOK_S)
    for kill in (os.killpg, os.kill):  # it may not lead a process group yet
        with suppress(ProcessLookupError, PermissionError):
            kill(child, signal.SIGKILL)
    if done[0] == 0:
        os.waitpid(child, 0)
    _end_orphans()
    return os.waitstatus_to_exitcode(done[1]) if done[0] else None


def _end_orphans() -> None:
    """End what a part started in another session: `adopt_orphans` made it a child of this process."""
    deadline = time.monotonic() + 2.0
    while sys.platform == "linux" and time.monotonic() < deadline and (orphans := list(_list_children())):
        for orphan in orphans:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(orphan, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(orphan, 0)


def _list_children() -> list[int]:
    own = str(os.getpid())
    children = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        with suppress(OSError):
            fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
            if fields[1].decode() == own:
                children.append(int(entry.name))
    return children


def _be_part(request: dict[str, Any], folder: Path, output: int, answer: int) -> NoReturn:
    """Judge the part in this process, write the answer, and end the process. Never returns."""
    code = 1
    try:
        with suppress(PermissionError):  # it already leads a session
            os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        end_with_parent(request["limit_s"])
        for stream, target in ((output, 1), (output, 2), (os.open(os.devnull, os.O_RDONLY), 0)):
            os.dup2(stream, target)
        _close_all_but(answer)
        page = sys.stdout = sys.stderr = open(1, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
        os.chdir(folder)
        os.environ["TMPDIR"] = tempfile.tempdir = str(folder)  # removed with all that it holds
        with (folder / "stack").open("w") as file:
            faulthandler.register(signal.SIGUSR1, file=file, all_threads=False)
            _set_limits()
            start_ranks = FreshRanks(request) if request.get("fresh") else run_ranks
            own = os.getpid()
            data = json.dumps(judge_here(request, start_ranks)).encode() + b"\n"
            if os.getpid() != own:  # a fork that the part made also returned from it
                os._exit(0)
            with suppress(OSError, ValueError):
                page.flush()
            with suppress(OSError, ValueError):
                sys.stdout.flush()
            while data:
                data = data[os.write(answer, data) :]
        code = 0
    finally:
        os._exit(code)


def be_fresh_part(order: str, folder: str, answer: str) -> NoReturn:
    """Do the same in a new process that is not a fork and whose output is already redirected."""
    request: dict[str, Any] = pickle.loads(Path(order).read_bytes())  # noqa: S301  # from the process that started this one
    _be_part(request, Path(folder), 1, int(answer))


def _close_all_but(kept: int) -> None:
    os.closerange(3, kept)
    os.closerange(kept + 1, 1 << 16)


def _set_limits() -> None:
    """Set the limits on what a part may use. Limits that are already lower stay."""
    limits = [(resource.RLIMIT_FSIZE, FILE_LIMIT), (resource.RLIMIT_CORE, 0)]
    if sys.platform == "linux":
        limits.append((resource.RLIMIT_DATA, MEMORY_LIMIT))
    for kind, wanted in limits:
        _, most = resource.getrlimit(kind)
        limit = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
        resource.setrlimit(kind, (limit, limit))
