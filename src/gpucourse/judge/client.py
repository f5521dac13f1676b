"""Asking for a verdict on a part: a `Judge` keeps the process that has imported torch, and passes parts to it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal, Self, cast

import msgspec

from gpucourse.errors import MissingError

Word = Literal["passed", "failed", "open", "error"]


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on a part: `way` names the wrong way that was recognised, `says` the reason, `case` the input it failed on,
    `notes` what was counted, `output` the beginning of what it printed, `seconds` how long it took."""

    word: Word
    way: str = ""
    says: str = ""
    case: str = ""
    notes: tuple[str, ...] = ()
    output: str = ""
    seconds: float = 0.0


class Judge:
    """A process that judges parts, started at the first one and kept until `close`, so that torch is imported once."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def judge(
        self,
        judge_file: Path,
        file: Path,
        *,
        torch: bool,
        limit_s: float,
        path: Sequence[Path] = (),
        metrics: Mapping[str, Any] | None = None,
    ) -> Judged:
        """The verdict of the course's `judge_file` on the learner's `file`. `path`: folders that the file may import from;
        `metrics`: what a run of it measured.

        Raises MissingError where torch is needed and not here, or the process ended without an answer.
        """
        request = {
            "judge": str(judge_file.absolute()),
            "file": str(file.absolute()),
            "torch": torch,
            "limit_s": limit_s,
            "metrics": metrics,
            "path": [str(folder.absolute()) for folder in path],
        }
        process = self._start()
        try:
            cast("IO[str]", process.stdin).write(json.dumps(request) + "\n")
            cast("IO[str]", process.stdin).flush()
            answer = cast("IO[str]", process.stdout).readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            self.close()
            raise MissingError(
                f"the process that judges {file.name} ended without a verdict",
                hint="torch is needed for it: pip install 'gpucourse[local]'" if torch else "gpucourse doctor",
            )
        return msgspec.json.decode(answer, type=Judged)

    def _start(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "gpucourse.judge.child"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                encoding="utf-8",
                start_new_session=True,  # Ctrl-C is for the command, which closes it
            )
        return self._process

    def close(self) -> None:
        """End the process; a part that it judges ends with it."""
        if self._process is None:
            return
        self._process.terminate()
        self._process.communicate()
        self._process = None
