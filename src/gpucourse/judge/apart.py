"""Judge one part in a separate process. If the part crashes, exits, prints 200 MB or never ends, the answer says so.

The process has its own session and folder, and limits on time, memory and output. At the end, it is stopped together with
everything that it started. It is a fork of a process that has imported torch. On macOS, such a process must not fork, so the
part and each of its ranks are `fresh` processes there.
"""

from __future__ import annotations

import ctypes
import faulthandler
import importlib.util
import json
import multiprocessing
import os
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NoReturn

from gpucourse.judge.part import Part
from gpucourse.judge.ranks import Body, Call, StartRanks, end_with_parent, line_of_stack, run_rank, run_ranks, start_process
from gpucourse.judge.verdict import Verdict

OUTPUT_LIMIT = 1 << 20  # bytes that a part may print before it is ended
OUTPUT_SHOWN = 8 << 10  # bytes of this output that the answer contains
ANSWER_LIMIT = 1 << 20  # bytes of an answer; a normal answer has a few hundred
MEMORY_LIMIT = 4 << 30  # bytes of memory that a part may use for data; torch itself uses less than a tenth of it
FILE_LIMIT = 256 << 20  # bytes of a file that a part may write
MAX_SENTENCE, MAX_CASE, MAX_NOTES = 2000, 500, 20
START_S = 60.0  # seconds that new processes may need to import torch on a busy computer

_SET_SUBREAPER = 36  # for Linux's prctl
_LOOK_S = 0.02


class Requests:
    """Read requests, one on each line, from the pipe of the client, the process that waits for the answers."""

    def __init__(self, pipe: int) -> None:
        self.pipe = pipe
        self._text = b""

    def read(self) -> dict[str, Any] | None:
        """Return the next request, or None if the client has exited."""
        while b"\n" not in self._text:
            if not self._take():
                return None
        line, _, self._text = self._text.partition(b"\n")
        return json.loads(line)  # type: ignore[no-any-return]

    def have_ended(self) -> bool:
        """Return, without waiting, whether the pipe has reached its end."""
        return not select.select([self.pipe], [], [], 0)[0] or not self._take()

    def _take(self) -> bool:
        data = os.read(self.pipe, 1 << 16)
        self._text += data
        return bool(data)


def adopt_orphans() -> None:
    """Make this process the parent of all processes that a part leaves behind, so that it can end them (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_SUBREAPER, 1)


def judge_apart(request: dict[str, Any], client: Requests) -> dict[str, Any] | None:
    """Judge one part in a fork, within `limit_s` seconds. Return None if the client exits in the meantime."""
    start_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gpucourse-part-", ignore_cleanup_errors=True) as folder:
        output, output_writer = multiprocessing.Pipe(duplex=False)
        answer, answer_writer = multiprocessing.Pipe(duplex=False)
        fresh = bool(request.get("fresh"))
        child = start_process(_run_part, request, Path(folder), output_writer, answer_writer, fresh=fresh)
        output_writer.close()
        answer_writer.close()
        pipes = _Pipes(output.fileno(), answer.fileno(), client)
        place = ""
        try:
            end = pipes.read(start_s + request["limit_s"])
            if end == "late":
                place = _ask_for_place(child, Path(folder), Path(request["file"]).name)
        finally:
            code = _end(child, start_s + request["limit_s"] if pipes.end == "closed" else 0.0)
            output.close()
            answer.close()
    if end == "gone":
        return None
    seconds = round(time.monotonic() - start_s, 3)
    return {**_make_answer(request, pipes, place, code), "output": pipes.text.decode(errors="replace"), "seconds": seconds}


def _make_answer(request: dict[str, Any], pipes: _Pipes, place: str, code: int | None) -> dict[str, Any]:
    """Return the answer of the part's process, or an answer that explains why it sent none. `code` is the exit code of the
    part's process, or None if the process had to be ended."""
    if pipes.printed > OUTPUT_LIMIT:
        return _make_failure("too-much-output", f"it printed more than {OUTPUT_LIMIT >> 20} MB and was ended: print less")
    if pipes.end == "late":
        return _make_failure("endless", f"{place}it did not end within {request['limit_s']:g} s")
    with suppress(ValueError):
        answer = json.loads(pipes.answer_text)
        if isinstance(answer, dict):
            return answer
    if code is None:
        return _make_failure("closed-files", "it closed files that it did not open: close only what you opened")
    if code < 0:
        return _make_failure("crash", f"it crashed: {signal.Signals(-code).name}")
    return _make_failure("exit", f"it ended its process with code {code}: return instead")


def _make_failure(way: str, message: str) -> dict[str, Any]:
    return {"word": "failed", "way": way, "says": message, "case": "", "notes": []}


class _Pipes:
    """Read the output of the part's process, up to a limit, and its answer, which ends with a newline.

    `end`: why reading ended: an answer arrived, there was too much output, the pipe closed without an answer, time ran out, or
    the client exited.
    """

    def __init__(self, output: int, answer: int, client: Requests) -> None:
        self.output, self.answer, self.client = output, answer, client
        self.text = self.answer_text = b""
        self.printed = 0
        self.end = ""
        self._open = {output, answer}

    def read(self, deadline: float) -> str:
        """Read until there is a reason to end (see `end`), and return that reason."""
        while not self.end:
            pipes = [*self._open, self.client.pipe]
            ready = select.select(pipes, [], [], max(0.0, deadline - time.monotonic()))[0]
            if not ready:
                self.end = "late"
            elif self.client.pipe in ready and self.client.have_ended():
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


def _ask_for_place(child: BaseProcess, folder: Path, name: str) -> str:
    """Return `my_ring.py:14: `, the line of the learner's file that the process is executing, or an empty string if it is not
    known."""
    with suppress(ProcessLookupError):
        os.kill(child.pid or 0, signal.SIGUSR1)
    deadline = time.monotonic() + 0.5
    while time.monotonic() < deadline:
        if line := line_of_stack(folder / "stack", name):
            return f"{line}: "
        time.sleep(_LOOK_S)
    return ""


def _end(child: BaseProcess, patience: float) -> int | None:
    """Wait for the process until the time `patience`. If it still runs, end it. Then end everything that it started.

    Return its exit code, which is negative for a signal, or None if it had to be ended.
    """
    while (code := child.exitcode) is None and time.monotonic() < patience:
        time.sleep(_LOOK_S)
    with suppress(ProcessLookupError, PermissionError):  # it may not yet lead a process group
        os.killpg(child.pid or 0, signal.SIGKILL)
    child.kill()
    child.join()
    _end_orphans()
    return code


def _end_orphans() -> None:
    """End the processes that a part started in another session. `adopt_orphans` has made them children of this process."""
    deadline = time.monotonic() + 2.0
    while sys.platform == "linux" and time.monotonic() < deadline and (orphans := list(_list_children())):
        for orphan in orphans:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(orphan, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(orphan, 0)


def _list_children() -> list[int]:
    pid = str(os.getpid())
    children = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        with suppress(OSError):
            fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
            if fields[1].decode() == pid:
                children.append(int(entry.name))
    return children


def _run_part(request: dict[str, Any], folder: Path, output: Connection, answers: Connection) -> NoReturn:
    """Judge the part in this process, write the answer, and end the process."""
    code, answer, fresh = 1, answers.fileno(), request.get("fresh")
    try:
        with suppress(PermissionError):  # it already leads a session
            os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        end_with_parent(request["limit_s"])
        for stream, target in ((output.fileno(), 1), (output.fileno(), 2), (os.open(os.devnull, os.O_RDONLY), 0)):
            os.dup2(stream, target)
        if not fresh:  # a part must not use what the fork inherited
            os.closerange(3, answer)
            os.closerange(answer + 1, 1 << 16)
        sys.stdin = open(0, encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
        page = sys.stdout = sys.stderr = open(1, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
        os.chdir(folder)
        os.environ["TMPDIR"] = tempfile.tempdir = str(folder)  # removed with everything in it
        with (folder / "stack").open("w") as file:
            faulthandler.register(signal.SIGUSR1, file=file, all_threads=False)
            _set_limits()
            start_ranks = _make_fresh_ranks(request) if fresh else run_ranks
            pid = os.getpid()
            data = json.dumps(_judge_here(request, start_ranks)).encode() + b"\n"
            if os.getpid() != pid:  # a fork that the part made also returned from it
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


def _set_limits() -> None:
    """Set the limits for a part. Limits that are already lower stay unchanged."""
    limits = [(resource.RLIMIT_FSIZE, FILE_LIMIT), (resource.RLIMIT_CORE, 0)]
    if sys.platform == "linux":
        limits.append((resource.RLIMIT_DATA, MEMORY_LIMIT))
    for kind, number in limits:
        _, hard_limit = resource.getrlimit(kind)
        limit = number if hard_limit == resource.RLIM_INFINITY else min(number, hard_limit)
        resource.setrlimit(kind, (limit, limit))


def _judge_here(request: dict[str, Any], start_ranks: StartRanks) -> dict[str, Any]:
    """Judge a part in this process. Return the verdict as an answer: {"word", "way", "says", "case", "notes"}, each with a
    limited length."""
    sys.path[:0] = [*request.get("path", ()), str(Path(request["judge"]).parent)]
    sys.dont_write_bytecode = True
    part = Part(
        Path(request["file"]),
        request.get("metrics") or {},
        deadline=time.monotonic() + request["limit_s"],
        times=request.get("times", 1),
        start_ranks=start_ranks,
    )
    verdict = _judge(part, Path(request["judge"]))
    answer: dict[str, Any] = {
        "word": verdict.word,
        "way": verdict.way,
        "says": _shorten(verdict.says, MAX_SENTENCE),
        "case": _shorten(verdict.case, MAX_CASE),
        "notes": [_shorten(note, MAX_CASE) for note in part.notes[:MAX_NOTES]],
    }
    if verdict.suspicion:
        answer["suspicion"] = verdict.suspicion
    return answer


def _judge(part: Part, judge_path: Path) -> Verdict:
    try:
        judge_file = load_judge(judge_path)
        part.ways = judge_file.WAYS
        part.refuse_other_course_files(judge_path.parent.parent / part.file.name)
        judge_file.judge(part)
    except Verdict as verdict:
        return verdict
    except BaseException as error:  # noqa: BLE001  # the traceback shows whether the part or the judge caused it
        if part.is_own_fault(error):
            return part.make_verdict(error)
        traceback.print_exc(file=sys.stdout)
        return Verdict("error", "judge", f"the course's judge itself failed: {type(error).__name__}: {error}")
    return Verdict("passed")


def load_judge(path: Path, extra_paths: tuple[Path, ...] = ()) -> Any:
    """Return a judge file of the course as a module with `WAYS` and `judge`. It imports files from its own folder and from the
    folders `extra_paths` first, since other exercises may have files of the same name."""
    folders = [str(folder) for folder in (path.parent, *extra_paths)]
    sys.path[:] = [*folders, *(folder for folder in sys.path if folder not in folders)]
    spec = importlib.util.spec_from_file_location(f"judge_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there for the types of their fields
    spec.loader.exec_module(module)
    return module


def _shorten(text: str, longest: int) -> str:
    """Return a text that UTF-8 can encode, with at most `longest` characters."""
    safe = text.encode("utf-8", "replace").decode()
    return safe if len(safe) <= longest else f"{safe[: longest - 4]} ..."


def _make_fresh_ranks(request: dict[str, Any]) -> StartRanks:
    """Return a substitute for `run_ranks` that starts each rank as a new process instead of a fork.

    The judge's function cannot be passed to a process, so each process executes the whole judge, and receives the results of
    the earlier calls of `on_ranks`. A judge is deterministic, so the process reaches the call that it was started for, and
    acts as its rank there.
    """
    earlier: list[list[Any]] = []

    def start_ranks(call: Call, size: int, body: Body, limit_s: float, file_name: str) -> list[Any]:
        def start(number: int, folder: Path, writer: Connection) -> BaseProcess:
            return start_process(_run_fresh_rank, request, earlier, number, folder, writer, limit_s + START_S, fresh=True)

        answers = run_ranks(call, size, body, limit_s + START_S, file_name, start=start)
        earlier.append(answers)
        return answers

    return start_ranks


def _run_fresh_rank(
    request: dict[str, Any], earlier: list[list[Any]], number: int, folder: Path, writer: Connection, limit_s: float
) -> NoReturn:
    """Run a rank in this process, and end the process."""
    earlier_answers = iter(earlier)

    def become_rank(call: Call, size: int, body: Body, _limit_s: float, _file_name: str) -> list[Any]:
        answers = next(earlier_answers, None)
        if answers is None:
            run_rank(call, number, size, body, folder, writer, limit_s)
        return answers

    _judge_here(request, become_rank)
    os._exit(1)
