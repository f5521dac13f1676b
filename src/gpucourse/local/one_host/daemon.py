"""Run one daemon of Slurm in the foreground, as a child of the process that hosts the nodes. The daemon ends with that
process."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from gpucourse.local.machines import kernel
from gpucourse.local.machines.daemons import DaemonFailed, last_lines

_START_S, _STOP_S, _POLL_S = 10.0, 5.0, 0.02


class Daemon:
    """A daemon from `start` to `kill`.

    `answers`: a function that tests whether the daemon serves.
    `output`: the file for its output.
    """

    def __init__(self, name: str, output: Path, answers: Callable[[], bool]) -> None:
        self.name = name
        self._output = output
        self._answers = answers
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def serves(self) -> bool:
        """Return whether the daemon runs and serves."""
        return self.alive and self._answers()

    @property
    def alive(self) -> bool:
        """Return whether the daemon's process runs."""
        return self._process is not None and self._process.poll() is None

    def start(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start the daemon's process. Raises OSError."""
        with self._output.open("wb") as output:
            # In this thread, which lives as long as the host: the kernel ends a child with the thread that started it.
            self._process = subprocess.Popen(
                command,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=partial(kernel.die_with_parent, signal.SIGKILL),  # noqa: PLW1509 (it is one call of the kernel)
            )

    async def ready(self) -> None:
        """Wait until the daemon serves. Raises DaemonFailed with its last output."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _START_S
        while not self.serves:
            if not self.alive or loop.time() > deadline:
                self.kill()
                raise DaemonFailed(f"{self.name} does not start: {last_lines(self._output)}")
            await asyncio.sleep(_POLL_S)

    async def stop(self) -> None:
        """Let the daemon store its state, then end it."""
        if self._process is not None and self.alive:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(self._process.wait, _STOP_S)
        self.kill()

    def kill(self) -> None:
        """End the daemon immediately."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            self._process.wait()
