"""The client of the judging process: a `Judge` keeps a process that has imported torch, and sends parts to it."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import math
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal, Self, cast

import msgspec

from gpucourse.errors import MissingError

Word = Literal["passed", "failed", "open", "error"]

# Import from the search path of this process, not from the user's current folder.
_BEGIN = "import sys; sys.path[:] = sys.argv[2:]; from gpucourse.judge.child import main; main(sys.argv[1])"
_IMPORT_S = 120.0  # seconds to import torch from a cold disk
_LEAVING_S = 5.0
_SYSTEM = ":/usr/sbin:/sbin"  # a part may call chroot or mount, which are not on the PATH of an ordinary user in Debian
_FRESH_TIMES = 5  # multiplies the time limit of a part whose ranks import torch one by one
_MAX_LOAD = 10  # multiplies the time limit, at most, because other programs make a right part slower


class JudgeAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on a part.

    `way`: the name of the recognised wrong way.
    `says`: the reason.
    `case`: the input that failed.
    `notes`: what was counted.
    `output`: the beginning of what the part printed.
    `seconds`: the time that the part took.
    """

    word: Word
    way: str = ""
    says: str = ""
    case: str = ""
    notes: tuple[str, ...] = ()
    output: str = ""
    seconds: float = 0.0


class Judge:
    """A process that judges parts. It starts when it is needed and keeps running until `close`, so that torch is imported only
    once.

    `has_torch`: whether the process was started with torch.
    `fresh`: each part that needs torch, and each of its ranks, gets a new process that imports torch. This is for macOS, which
    ends a fork of a process that uses its frameworks.
    """

    def __init__(self, *, fresh: bool = sys.platform == "darwin") -> None:
        self.has_torch, self.fresh = False, fresh
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = ""  # for its parts; the process removes it as well, in case this process cannot

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def start(self, *, torch: bool) -> None:
        """Start the process, without waiting until it has imported torch. Raises MissingError if torch is not installed."""
        if torch and importlib.util.find_spec("torch") is None:
            raise MissingError("torch is not installed on this computer", hint="pip install 'gpucourse[local]'")
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._folder = tempfile.mkdtemp(prefix="gpucourse-judge-")
            self._process = subprocess.Popen(
                [sys.executable, "-c", _BEGIN, self._folder, *sys.path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PATH": os.environ.get("PATH", os.defpath) + _SYSTEM},
                start_new_session=True,  # Ctrl-C is for the command, which closes this process
            )
        if torch and not self.has_torch and not self.fresh:
            self.has_torch = True
            self._send({"torch": True, "fresh": False})

    def judge(
        self,
        judge_file: Path,
        file: Path,
        *,
        torch: bool,
        limit_s: float,
        path: Sequence[Path] = (),
        metrics: Mapping[str, Any] | None = None,
    ) -> JudgeAnswer:
        """Return the verdict of the course's `judge_file` on the learner's `file`.

        `path`: folders from which the file may import.
        `limit_s`: the time limit of the part. It is longer on a busy computer.
        `metrics`: the measurements of a run with the file.

        Raises MissingError if torch is needed but not installed, or if the process did not answer.
        """
        self.start(torch=torch)
        fresh = torch and self.fresh
        times = (_FRESH_TIMES if fresh else 1) * _measure_load()
        limit_s *= times
        self._send(
            {
                "judge": str(judge_file.absolute()),
                "file": str(file.absolute()),
                "torch": torch,
                "fresh": fresh,
                "limit_s": limit_s,
                "times": times,
                "metrics": metrics,
                "path": [str(folder.absolute()) for folder in path],
            }
        )
        try:
            answer = self._read_line(time.monotonic() + limit_s + _IMPORT_S)
        except BaseException:  # after Ctrl-C: the late answer must not be taken for the next part's
            self.close()
            raise
        if answer is None:
            return self._explain_silence(file)
        try:
            reply = msgspec.json.decode(answer, type=JudgeAnswer)
        except msgspec.MsgspecError as error:
            self.close()
            raise MissingError(f"the verdict on {file.name} cannot be read: {error}", hint="type the command again") from error
        if reply.way == "no-torch":
            self.close()
            raise MissingError(reply.says, hint="pip install --force-reinstall 'gpucourse[local]'")
        return reply

    def _explain_silence(self, file: Path) -> JudgeAnswer:
        """Return the verdict on a part whose process sent no answer. Raises MissingError if the part is not the cause."""
        code = self._process.poll() if self._process else None
        self.close()
        number = 0 if code is None else -code if code < 0 else code - 128
        if number > 0:
            name = signal.Signals(number).name
            return JudgeAnswer(
                word="failed", way="ended-parent", says=f"it ended the process that started it ({name}): return instead"
            )
        raise MissingError(f"the process that judges {file.name} gave no verdict", hint="gpucourse doctor")

    def _send(self, request: Mapping[str, object]) -> None:
        pipe = cast("IO[bytes]", cast("subprocess.Popen[bytes]", self._process).stdin)
        with contextlib.suppress(BrokenPipeError):  # no answer will come, which `_read_line` handles
            pipe.write(json.dumps(request).encode() + b"\n")
            pipe.flush()

    def _read_line(self, deadline: float) -> bytes | None:
        """Return the next line that the process writes, or None if it exits or the deadline passes first."""
        process = cast("subprocess.Popen[bytes]", self._process)
        pipe = cast("IO[bytes]", process.stdout)
        if not select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))[0]:
            return None
        line = pipe.readline()  # it always writes whole lines
        if line.endswith(b"\n"):
            return line
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_LEAVING_S)
        return None

    def close(self) -> None:
        """End the process, and the part that is being judged. It may be called more than once."""
        process, self._process, self.has_torch = self._process, None, False
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                cast("IO[bytes]", pipe).close()
        process.terminate()
        try:
            process.wait(_LEAVING_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


def _measure_load() -> int:
    """Return the number of processes for each processor in the last minute, rounded up, between 1 and `_MAX_LOAD`."""
    return min(_MAX_LOAD, max(1, math.ceil(os.getloadavg()[0] / (os.cpu_count() or 1))))
