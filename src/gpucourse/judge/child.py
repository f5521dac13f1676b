"""The process that judges parts. `main` imports torch once, and starts a process for each part.

It reads requests as lines of JSON and writes an answer to each: {"word", "way", "says", "case", "notes", "output", "seconds"}.
If the client exits, this process ends, together with the part that is being judged.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import sys
import tempfile
from contextlib import suppress
from typing import Any, NoReturn

from gpucourse.judge.apart import Requests, adopt_orphans, judge_apart
from gpucourse.judge.counterfactual import settle
from gpucourse.judge.no_compiler import leave_compiler_out


def main(folder: str) -> NoReturn:
    """Answer requests from standard input until it ends. Then exit immediately, because unloading torch would take Python a
    second.

    Parts write into `folder`, which is removed at the end.
    """
    code: int | str | None = 1
    try:
        tempfile.tempdir = folder
        _serve()
        code = 0
    except SystemExit as error:
        code = error.code
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(code if isinstance(code, int) else 1)


def _serve() -> None:
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))  # so that its children are ended first
    adopt_orphans()
    requests = Requests(os.dup(0))
    answers = os.fdopen(os.dup(1), "wb")
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):  # a part uses neither this process's input nor its output
        os.dup2(silence, stream)
    while (request := requests.read()) is not None:
        fault = _import_torch() if request["torch"] and not request["fresh"] else ""
        if "judge" not in request:
            continue
        answer = {"word": "error", "way": "no-torch", "says": fault} if fault else _judge(request, requests)
        if answer is None:
            return
        with suppress(BrokenPipeError):
            answers.write(json.dumps(answer).encode() + b"\n")
            answers.flush()


def _judge(request: dict[str, Any], requests: Requests) -> dict[str, Any] | None:
    """Return the answer to a request, with a cause only if it has been proved. Return None if the client has exited."""
    answer = judge_apart(request, requests)
    return answer and settle(request, answer, lambda next_request: judge_apart(next_request, requests))


def _import_torch() -> str:
    """Import torch once, for all forks. Return why that failed, or an empty string."""
    try:
        leave_compiler_out()  # which imports torch
        gc.freeze()  # otherwise, garbage collection in each fork would copy this memory: 0.1 s of processor time
    except (ImportError, OSError, RuntimeError) as error:
        return f"torch cannot be imported: {type(error).__name__}: {str(error)[:500]}"
    return ""
