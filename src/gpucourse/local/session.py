"""Run a command or a login shell on a node, until its last byte and its exit code have been sent.

If the client leaves first, the session's processes are ended (hang-up, terminate, kill), except those of a detached run.
"""

from __future__ import annotations

import asyncio
import os
import signal
import uuid
from pathlib import Path

from gpucourse.local import processes
from gpucourse.local.child import Child, read_some, start, write_all
from gpucourse.local.server import SshChannel

_PATIENCE_S = ((signal.SIGHUP, 0.5), (signal.SIGTERM, 3.0), (signal.SIGKILL, 2.0))
_POLL_S = 0.02


async def serve(channel: SshChannel, *, shell: str, home: Path, environment: dict[str, str]) -> None:
    """Run the client's command or shell until it ends."""
    session = uuid.uuid4().hex
    environment = {**environment, processes.SESSION: session}
    command = channel.command
    argv: list[str | bytes] = [shell, "-l"] if command is None else [shell, "-c", command.encode(errors="surrogateescape")]
    try:
        child = await start(argv, environment=environment, cwd=home, terminal=channel.terminal)
    except (OSError, ValueError) as error:
        await channel.write(f"cannot start a process on this node: {error}\n".encode(), to_errors=True)
        channel.exit(255)
        return
    channel.listen(lambda name: _forward(name, child), child.resize)
    await _attend(channel, child, session)


async def _attend(channel: SshChannel, child: Child, session: str) -> None:
    feeding = asyncio.create_task(_feed(channel, child))
    disconnect = asyncio.create_task(channel.wait_closed())
    completion = asyncio.create_task(_wait_until_silent(channel, child))
    try:
        await asyncio.wait({disconnect, completion}, return_when=asyncio.FIRST_COMPLETED)
        if completion.done() and completion.exception() is None:
            _tell_exit(channel, completion.result())
        else:
            await _end(child, session)
    finally:
        for task in (feeding, disconnect, completion):
            task.cancel()
        await asyncio.gather(feeding, disconnect, completion, return_exceptions=True)
        child.close()


async def _wait_until_silent(channel: SshChannel, child: Child) -> int:
    """Return the exit code once every byte that the process and its children wrote has been sent on."""
    pumps = [_copy(child.stdout, channel, to_errors=False)]
    if child.errors is not None:
        pumps.append(_copy(child.errors, channel, to_errors=True))
    await asyncio.gather(*pumps)
    return await child.process.wait()


async def _copy(handle: int, channel: SshChannel, *, to_errors: bool) -> None:
    while data := await read_some(handle):
        await channel.write(data, to_errors=to_errors)
        await asyncio.sleep(0)  # a process that always has output must not hold up the other nodes


async def _feed(channel: SshChannel, child: Child) -> None:
    """Pass the client's input to the process. Input that the process no longer reads is lost, as with any SSH server.

    A broken connection does not end the input.
    """
    try:
        while data := await channel.read():
            if child.stdin is not None:
                try:
                    await write_all(child.stdin, data)
                except OSError:
                    child.close_input()
    except ConnectionError:
        return
    await child.end_input()


def _tell_exit(channel: SshChannel, code: int) -> None:
    if code >= 0:
        channel.exit(code)
    else:
        channel.exit_by_signal(signal.Signals(-code).name.removeprefix("SIG"))


def _forward(name: str, child: Child) -> None:
    number = getattr(signal, f"SIG{name}", None)
    if isinstance(number, signal.Signals) and child.process.returncode is None:
        processes.send_group(child.process.pid, number)


async def _end(child: Child, session: str) -> None:
    """End the remaining processes of the session, with increasingly strong signals. A detached run keeps running."""
    loop = asyncio.get_running_loop()
    mark = processes.marker(processes.SESSION, session)
    for number, patience_s in _PATIENCE_S:
        deadline = loop.time() + patience_s
        signalled: set[int] = set()
        while alive := await asyncio.to_thread(processes.list_session_processes, mark, _group(child), processes.DETACHED_RUN):
            for pid in alive:
                if pid not in signalled or number == signal.SIGKILL:
                    processes.send(pid, number)
                    signalled.add(pid)
            if loop.time() >= deadline:
                break
            await asyncio.sleep(_POLL_S)
        if not alive:
            return


def _group(child: Child) -> int | None:
    return child.process.pid if child.process.returncode is None else None


def login_shell() -> str:
    """Return the shell of every session: bash, as on the course's real nodes, otherwise the system's own shell."""
    return next((shell for shell in ("/bin/bash", "/usr/bin/bash") if os.access(shell, os.X_OK)), "/bin/sh")
