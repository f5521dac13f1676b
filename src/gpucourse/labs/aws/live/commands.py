"""Running commands of this program, each in its own process and with a time limit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from gpucourse.outside.documents import parse_json
from gpucourse.outside.names import OutsideError

PATIENCE_S = 900.0
_LONGEST = 20_000


@dataclass(frozen=True, kw_only=True)
class Answer:
    """How a command ended. `in_time` is False if the time limit ended it; `err` is the end of its standard error."""

    code: int
    out: str
    err: str
    seconds: float
    in_time: bool = True

    @property
    def document(self) -> dict[str, Any]:
        """Return the JSON document that it printed; empty if it printed none."""
        try:
            document = parse_json(self.out)
        except OutsideError:
            return {}
        return document if isinstance(document, dict) else {}


def run_command(words: Sequence[str], environ: Mapping[str, str], limit_s: float, patience_s: float = PATIENCE_S) -> Answer:
    """Run a command and wait for it.

    After `limit_s`, or when this process is interrupted, it gets a Ctrl-C, and `patience_s` to end what it began: Terraform
    must not be cut off in the middle. Raises KeyboardInterrupt once it has ended.
    """
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "gpucourse", *words],
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # this process forwards a Ctrl-C at the terminal, once
    )
    in_time = True
    try:
        out, err = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        in_time = False
        out, err = _interrupt(process, patience_s)
    except KeyboardInterrupt:
        _interrupt(process, patience_s)
        raise
    return Answer(
        code=process.returncode,
        out=out.decode(errors="replace"),
        err=err.decode(errors="replace")[-_LONGEST:],
        seconds=round(time.monotonic() - began, 1),
        in_time=in_time,
    )


def _interrupt(process: subprocess.Popen[bytes], patience_s: float) -> tuple[bytes, bytes]:
    with hold_signals_off():
        process.send_signal(signal.SIGINT)
        try:
            return process.communicate(timeout=patience_s)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            return process.communicate()


@contextmanager
def hold_signals_off() -> Iterator[None]:
    """Ignore Ctrl-C, SIGTERM and a closed terminal in the block; outside the main thread, where no signal arrives, do
    nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
