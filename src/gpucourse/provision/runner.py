"""One Terraform command, which survives Ctrl-C, a closed terminal, and the end of this process.

Terraform runs in its own session and writes into a file, which this process reads as it grows. If the terminal is closed or
this process ends, Terraform continues, saves its state and ends.

A ballast file takes up space while Terraform works. If the disk becomes full, the ballast is removed, so that the
state can be written, and Terraform is interrupted: without the state, the record of the lab would be lost.
"""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, final

from gpucourse.errors import InfrastructureError, Interrupted, MissingError, StorageError
from gpucourse.model.event import Event, Note, Watcher
from gpucourse.provision.commands import terraform_environment
from gpucourse.provision.failure import failure, make_interrupted_error
from gpucourse.provision.transcript import Transcript
from gpucourse.storage import storing
from gpucourse.workspace.lock import hold_lock, sign
from gpucourse.workspace.paths import StackPaths

_STOPPING = "stopping: Terraform finishes what is in flight and saves its state"
_PATIENCE = "still saving. Ctrl-C once more forces the end, and may leave something that is not recorded"
_FORCED = "forced: what was in flight may not be recorded; `gpucourse destroy` looks for it"
_PIECE = 1 << 20
_MAX_LINE = 16 << 20


@dataclass(frozen=True, kw_only=True)
class Runner:
    """Run Terraform commands in one stack's folder, one at a time.

    `environ`: the environment; variables that control Terraform are removed.
    `stop`: setting it has the effect of one Ctrl-C, for runners in threads that Ctrl-C does not reach.
    `wait_s`: how long to wait for a Terraform process that an earlier, killed command left running.
    """

    paths: StackPaths
    environ: Mapping[str, str]
    stop: threading.Event | None = None
    wait_s: float = 120.0

    def run(
        self, command: str, arguments: Sequence[str], watcher: Watcher, *, extra: Mapping[str, str] | None = None
    ) -> Transcript:
        """Run `arguments` to the end; return the transcript of Terraform's output. `paths.terraform_log(command)` contains it
        too.

        Raises TerraformFailed with Terraform's first error, StorageError, StackBusy, MissingError if Terraform cannot be
        started, and Interrupted after a requested stop. Any exception from `watcher` is raised after Terraform has ended.
        """
        careful = _Careful(watcher)
        transcript = Transcript()
        log = self.paths.terraform_log(command)
        environment = terraform_environment(self.environ, extra)
        with (
            _Interrupts(self.stop) as interrupts,
            self._lock(careful, interrupts) as lock,
            hold_reserve(self.paths.folder) as reserve,
        ):
            _check_not_asked(interrupts)
            with storing(log):
                log.unlink(missing_ok=True)  # an orphan may still have the old one open
                sink = os.open(log, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            try:
                process = self._start(arguments, environment, lock, sink)
            finally:
                os.close(sink)
            sign(lock, f"terraform {command}", process.pid)
            with log.open("rb", buffering=0) as tail:
                _follow(process, tail, transcript, interrupts=interrupts, reserve=reserve, watcher=careful)
            if reserve.ran_out:
                raise reserve.error(log)
            if interrupts.is_requested:
                raise make_interrupted_error(command, transcript, log)
        if process.returncode != 0:
            raise failure(command, process.returncode, transcript, log)
        careful.complain()
        return transcript

    def wait_for_predecessor(self, watcher: Watcher) -> None:
        """Wait until no other Terraform process works on this stack. Raises StackBusy, Interrupted."""
        with _Interrupts(self.stop) as interrupts, self._lock(watcher, interrupts):
            _check_not_asked(interrupts)

    def _lock(self, watcher: Watcher, interrupts: _Interrupts) -> AbstractContextManager[int]:
        """Return the lock that is held exactly as long as Terraform runs, even if this process ends.

        Terraform gets the open file as its standard input. Standard input is the only descriptor that Terraform does not pass
        on to processes that a provisioner leaves running.
        """

        def say_waiting(holder: str) -> None:
            watcher(Note(text=f"{holder} is still working on this stack; waiting for it to end", level="warning"))

        return hold_lock(
            self.paths.terraform_lock, wait_s=self.wait_s, on_wait=say_waiting, check=lambda: _check_not_asked(interrupts)
        )

    def _start(self, arguments: Sequence[str], environment: dict[str, str], lock: int, sink: int) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                list(arguments),
                cwd=self.paths.terraform,
                env=environment,
                stdin=lock,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            if not self.paths.terraform.is_dir():
                raise InfrastructureError(
                    f"the stack's folder {self.paths.terraform} is gone", hint="type `gpucourse deploy` again"
                ) from error
            raise MissingError(
                f"{arguments[0]} cannot be started: {error.strerror}",
                hint="install Terraform again, or name another one in GPUCOURSE_TERRAFORM",
            ) from error


def _check_not_asked(interrupts: _Interrupts) -> None:
    if interrupts.is_requested:
        raise Interrupted(
            "stopped before Terraform was started",
            hint="nothing was built or removed by this command: type it again when you want to",
        )


def _follow(
    process: subprocess.Popen[bytes],
    tail: IO[bytes],
    transcript: Transcript,
    *,
    interrupts: _Interrupts,
    reserve: DiskReserve,
    watcher: _Careful,
) -> None:
    """Read Terraform's output until Terraform has ended and everything has been read."""
    start_s, partial_line = time.monotonic(), b""
    while True:
        try:
            has_ended = process.poll() is not None  # before reading, so that nothing written before the end is missed
            piece = tail.read(_PIECE)
            *lines, partial_line = (partial_line + piece).split(b"\n")
            for line in lines:
                for event in transcript.read(line):
                    watcher(event)
            partial_line = partial_line[:_MAX_LINE]
            if reserve.check():
                interrupts.request_stop()
            interrupts.pass_on(process, changing=transcript.changing, tell=watcher)
            if not piece:
                if has_ended:
                    break
                time.sleep(0.005 if time.monotonic() - start_s < 2 else 0.05)
        except KeyboardInterrupt:  # raised by another handler
            interrupts.request_stop()
    for event in transcript.read(partial_line):
        watcher(event)


class _Careful:
    """A watcher whose errors do not stop the reading of Terraform's output.

    After an error, it is not called again; the error is raised at the end.
    """

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._error: Exception | None = None

    def __call__(self, event: Event) -> None:
        if self._error is not None:
            return
        try:
            self._watcher(event)
        except Exception as error:  # noqa: BLE001  kept, and raised by `complain`
            self._error = error

    def complain(self) -> None:
        """Raise the watcher's exception, if there was one."""
        if self._error is not None:
            raise self._error


@final
class _Interrupts:
    """Count the requests to stop: Ctrl-C in the main thread, and `stop` once it is set. Use it as a context manager.

    At the first SIGINT, Terraform finishes the operations in progress, saves its state and ends. At the second, it ends
    immediately, without saving. The second one is therefore sent only if nothing has been changed yet, or if the user presses
    Ctrl-C a third time.

    If another SIGINT handler is installed, it stays. The code that catches its KeyboardInterrupt then calls `request_stop`.
    """

    def __init__(self, stop: threading.Event | None = None) -> None:
        self._stop = stop
        self._requests = 0
        self._answered = 0
        self._sent = 0
        self._before: Any = None

    @property
    def is_requested(self) -> bool:
        """Return whether a stop was requested."""
        return self._count() > 0

    def request_stop(self) -> None:
        """Request a stop."""
        self._requests += 1

    def pass_on(self, process: subprocess.Popen[bytes], *, changing: bool, tell: Callable[[Note], None]) -> None:
        """Act on the requests since the last call. `changing`: something has already been built or removed."""
        while self._answered < self._count():
            self._answered += 1
            if self._answered == 1:
                self._send(process, signal.SIGINT)
                tell(Note(text=_STOPPING))
            elif self._answered == 2 and changing:
                tell(Note(text=_PATIENCE, level="warning"))
            else:
                self._send(process, signal.SIGINT if self._sent < 2 else signal.SIGKILL)
                if changing:
                    tell(Note(text=_FORCED, level="warning"))

    def __enter__(self) -> _Interrupts:
        in_main = threading.current_thread() is threading.main_thread()
        if in_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, lambda _number, _frame: self.request_stop())
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _count(self) -> int:
        return self._requests + (self._stop is not None and self._stop.is_set())

    def _send(self, process: subprocess.Popen[bytes], number: signal.Signals) -> None:
        self._sent += 1
        process.send_signal(number)


BALLAST = 2 << 20  # bytes: the state of 64 nodes and its backup take a tenth of this
SCARCE = 1 << 20  # bytes: the disk counts as full with less than this free in addition to the ballast


class DiskReserve:
    """Watch the free space on the disk of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ballast = folder / ".disk_reserve"
        self.ran_out = False

    def check(self) -> bool:
        """Return whether the disk has just become full. If so, remove the ballast; all later calls return False."""
        if self.ran_out or _free(self.folder) >= SCARCE:
            return False
        self.ran_out = True
        self.ballast.unlink(missing_ok=True)
        return True

    def error(self, log: Path | None = None) -> StorageError:
        """Return the error for the user. `log`: Terraform's log, if Terraform was stopped."""
        return StorageError(
            f"no space left in {self.folder}" + (": Terraform was stopped, and what it had built is recorded" if log else ""),
            hint=f"free some space there (df -h '{self.folder}'), then type the command again",
            log=log,
        )


@contextmanager
def hold_reserve(folder: Path) -> Iterator[DiskReserve]:
    """Keep the ballast on the disk during the block. If too little space is free, raise StorageError before the block."""
    reserve = DiskReserve(folder)
    try:
        with storing(folder):
            reserve.ballast.write_bytes(_make_noise())
        if reserve.check():
            raise reserve.error()
        yield reserve
    finally:
        reserve.ballast.unlink(missing_ok=True)


@functools.cache
def _make_noise() -> bytes:
    """Return random bytes: zeros would take no space on a disk that compresses."""
    return os.urandom(BALLAST)


def _free(folder: Path) -> int:
    disk = os.statvfs(folder)
    return disk.f_frsize * (disk.f_bfree if os.geteuid() == 0 else disk.f_bavail)
