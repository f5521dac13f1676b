"""Use a learner's part in a run, in a separate process on every rank: a part that hangs or crashes disturbs nothing else.

    learner_part = own_part.Process("my_ring.py")                                # after the imports, before ranks.join()
    world = ranks.join()
    ...                                                                 # the course's own measurements
    outcome = learner_part.run(world, "ring_times:measure", sizes=[1024, 4096])  # on every rank
    if outcome.state == "ran":
        rows = outcome.results[0]

`ring_times.py` is a file of the exercise. Its `measure(world, sizes)` imports my_ring, joins no group itself, and returns what
JSON can store. `world` is a `ranks.World` of these processes alone: the same ranks, in a separate group.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import importlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

State = Literal["open", "ran", "failed"]

_PR_SET_PDEATHSIG = 1
_START_LIMIT_S = 120.0  # until all ranks have met; importing torch is slow on a busy computer
_LOOK_S = 0.5
_GRACE_S = 2.0  # after one rank failed, the others have this long to report their own failure
_STACK_S = 10.0  # the time limit for a part that writes its stack, on a busy computer
_MAX_LOAD = 10.0
_MAX_REPORT_BYTES = 10_000_000
_MAX_MEMORY_BYTES = 4 << 30  # of a part's data, as in `gpucourse try`
_GPU_DRIVERS = "/dev/nvidiactl", "/dev/kfd"  # such a driver reserves addresses, which would count as memory
_STILL_AT = "still at"
_PARTNER_LEFT = re.compile(r"Connection (?:closed|reset) by peer|Broken pipe")  # gloo, on a rank whose partner failed first


@dataclass(frozen=True)
class Outcome:
    """The outcome of a part in a run. It is the same on every rank.

    `open` means that a rank raised NotImplementedError, `failed` that the part raised something else, ended its process, or was
    too slow. `text` is then one line with the ranks, the file and its line. `results` holds each rank's result if the part ran.
    """

    state: State
    text: str = ""
    results: list[Any] = field(default_factory=list)


class Process:
    """A process that waits to use a learner's part on this rank.

    Make it after the imports and before torch computes or joins anything: on Linux it is a fork of this process, which needs
    no second import of torch. A fork copies only one thread, so a process with several threads must not be forked.
    """

    def __init__(self, part: str, *, backend: str = "") -> None:
        """`part` is the name of the learner's file, such as `my_ring.py`.

        With `backend="gloo"` it computes on CPUs, even if the nodes have GPUs.
        """
        self._part, self._backend = part, backend
        # Files without a name: nothing of them remains after a kill.
        self._report, self._stack = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115
        reader, self._requests = os.pipe()
        sys.stdout.flush()
        if sys.platform == "linux":
            parent, self._child = os.getpid(), os.fork()
            if self._child == 0:
                os.close(self._requests)
                _end_with_parent(parent)
                _serve(reader, self._report.fileno(), self._stack.fileno())
        else:  # macOS ends a fork of a process that has imported torch
            files = [reader, self._report.fileno(), self._stack.fileno()]
            self._child = subprocess.Popen([sys.executable, __file__, *map(str, files)], pass_fds=files).pid
        os.close(reader)

    def run(self, world: Any, work: str, *, limit_s: float = 60.0, **settings: object) -> Outcome:
        """Call `work`, such as `ring_times:measure`, with `world` and the settings in these processes, and return the outcome.

        Every rank calls this, once. `world` is its `ranks.World`, or None in a process without a group. `limit_s` is the time
        that the work may take once all ranks have met; it is longer while other programs keep the processors busy. After it,
        the part is ended, and its line is named.
        """
        request = {"work": work, "part": self._part, "settings": settings, "path": sys.path, "joins": world is not None,
                   "backend": self._backend}  # fmt: skip
        with contextlib.suppress(BrokenPipeError), os.fdopen(self._requests, "w", encoding="utf-8") as requests:
            requests.write(json.dumps(request) + "\n")
        code = self._wait(world, limit_s)
        own_state, text, result = self._read_outcome(code)
        if world is None:
            return Outcome(own_state, text, [result] if own_state == "ran" else [])
        return _combine(world.gather((own_state, text, result)))

    def _wait(self, world: Any, limit_s: float) -> int | None:
        """Wait for the processes of all ranks. Return this one's exit code, or None if it had to be ended."""
        code: int | None = None
        started_s, failed_s = time.monotonic(), None
        has_begun, load = False, 1.0
        while True:
            if code is None:
                child, status = os.waitpid(self._child, os.WNOHANG)
                code = os.waitstatus_to_exitcode(status) if child else None
            begun_here = code is not None or bool(_read(self._report, 1))
            is_running, has_failed, is_waiting = _on_any(world, [code is None, code not in (None, 0), not begun_here])
            now_s = time.monotonic()
            if not is_waiting and not has_begun:
                has_begun, started_s = True, now_s
            failed_s = failed_s or (now_s if has_failed else None)
            load = max(load, _measure_load())
            is_late = now_s - started_s > load * (limit_s if has_begun else _START_LIMIT_S) or (
                failed_s and now_s - failed_s > _GRACE_S
            )
            if not is_running:
                return code
            if _on_any(world, [bool(is_late)])[0]:
                if code is None:
                    self._stop()
                _on_any(world, [True])  # a rank that ends earlier would break the connections of ranks that still run
                if code is None:
                    os.kill(self._child, signal.SIGKILL)
                    os.waitpid(self._child, 0)
                return code
            time.sleep(_LOOK_S)

    def _stop(self) -> None:
        """Stop the process, after it has written where it is."""
        os.kill(self._child, signal.SIGUSR1)
        deadline_s = time.monotonic() + _STACK_S
        while not _read(self._stack, 1) and time.monotonic() < deadline_s:
            time.sleep(0.05)
        os.kill(self._child, signal.SIGSTOP)

    def _read_outcome(self, code: int | None) -> tuple[State, str, Any]:
        match = re.search(rf'File "(?:[^"]*/)?{re.escape(self._part)}", line (\d+)', _read(self._stack))
        place = f"{self._part}:{match[1]}" if match else self._part
        _, _, report = _read(self._report).rpartition("\n")
        if report and len(report) < _MAX_REPORT_BYTES - 10:
            state, text, result = json.loads(report)
            return state, text, result
        if code is None:
            return "failed", f"{_STILL_AT} {place} when it was ended", None
        if code != 0:
            cause = f"signal {-code} ({signal.Signals(-code).name})" if code < 0 else f"code {code}"
            return "failed", f"{place}: the process ended with {cause}", None
        text = f"more than {_MAX_REPORT_BYTES:,} bytes of results" if report else "the process ended without a result"
        return "failed", f"{place}: {text}", None


def _read(file: IO[bytes], size: int = 0) -> str:
    return os.pread(file.fileno(), size or _MAX_REPORT_BYTES, 0).decode("utf-8", errors="replace")


def _measure_load() -> float:
    """Return the number of processes for each processor in the last minute, between 1 and `_MAX_LOAD`."""
    return min(_MAX_LOAD, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))


def _on_any(world: Any, values: list[bool]) -> list[bool]:
    return values if world is None else world.on_any(values)


def _combine(outcomes: list[tuple[State, str, Any]]) -> Outcome:
    states = {state for state, _, _ in outcomes}
    if states == {"ran"}:
        return Outcome("ran", results=[result for _, _, result in outcomes])
    if "open" in states:
        return Outcome("open", next(text for state, text, _ in outcomes if state == "open"))
    failures = [(rank, text) for rank, (state, text, _) in enumerate(outcomes) if state == "failed"]
    causes = [(rank, text) for rank, text in failures if not _PARTNER_LEFT.search(text)] or failures
    raised = [(rank, text) for rank, text in causes if not text.startswith(_STILL_AT)] or causes
    texts = [f"rank {rank}: {text}" for rank, text in raised]
    return Outcome("failed", "; ".join(texts[:3]) + (f"; and {len(texts) - 3} more ranks" if len(texts) > 3 else ""))


# --- in the part's own process -----------------------------------------------------------------------------------------


def _end_with_parent(parent: int) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # killed before the line above


def _serve(reader: int, report: int, stack: int) -> None:
    """Read one request, execute it, write a report, and end this process: with 0 if the part ran, otherwise with 1."""
    faulthandler.register(signal.SIGUSR1, file=stack)
    faulthandler.enable(file=stack)
    _limit_memory()
    with os.fdopen(reader, encoding="utf-8") as requests:
        text = requests.readline()
    if not text:
        os._exit(1)
    state, result = "ran", None
    request = json.loads(text)
    text = ""
    try:
        sys.path[:] = request["path"]
        if request["backend"]:
            os.environ["GPUCOURSE_BACKEND"] = request["backend"]
        world = _meet(request["part"]) if request["joins"] else None
        os.write(report, b"begun\n")
        module, _, name = request["work"].partition(":")
        work: Callable[..., object] = getattr(importlib.import_module(module), name)
        result = work(world, **request["settings"])
        json.dumps(result)
    except NotImplementedError as error:
        state, text, result = "open", str(error), None
    except (Exception, SystemExit) as error:  # noqa: BLE001 (the rank names it and goes on)
        state, text, result = "failed", _describe(error, request["part"]), None
    with os.fdopen(report, "w", encoding="utf-8") as file:
        json.dump([state, text, result], file)
    sys.stdout.flush()
    os._exit(state != "ran")


def _limit_memory() -> None:
    if sys.platform != "linux" or any(map(os.path.exists, _GPU_DRIVERS)):
        return
    _, hard_limit = resource.getrlimit(resource.RLIMIT_DATA)
    limit = _MAX_MEMORY_BYTES if hard_limit == resource.RLIM_INFINITY else min(_MAX_MEMORY_BYTES, hard_limit)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _meet(part: str) -> Any:
    world = importlib.import_module("ranks").join(group=part)  # an exercise of one process needs neither ranks nor torch
    world.wait_for_all()  # a rank that fails at once would otherwise leave while others still connect
    return world


def _describe(error: BaseException, part: str) -> str:
    """Return the error in one line, with the innermost line of the learner's file."""
    text = (str(error) or type(error).__name__).strip().splitlines()[0][:300]
    if isinstance(error, MemoryError):
        text = f"it asked for more memory than a part may have, {_MAX_MEMORY_BYTES >> 30} GiB"
    if isinstance(error, SyntaxError):
        return f"{Path(error.filename or part).name}:{error.lineno}: {type(error).__name__}: {error.msg}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).name == part]
    return f"{part}:{lines[-1]}: {type(error).__name__}: {text}" if lines else f"{part}: {type(error).__name__}: {text}"


if __name__ == "__main__":
    _serve(*map(int, sys.argv[1:]))
