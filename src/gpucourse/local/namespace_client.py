"""The host's connection to the namespace around its machines. It starts that namespace, sends requests and reads the
answers."""

from __future__ import annotations

import array
import asyncio
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from gpucourse.local import layout

_MESSAGE = 1 << 20
_START_S, _ANSWER_S = 20.0, 60.0
_DIAL_S = 5.0


class NamespaceFailed(Exception):
    """The namespace, or something in it, could not be created. The message says why."""


class NamespaceClient:
    """The machines of one stack. The first request starts the namespace, which ends with the host."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._line: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._waiting: dict[int, asyncio.Future[tuple[dict[str, Any], list[int]]]] = {}
        self._number = 0
        self._turn = asyncio.Lock()

    @property
    def alive(self) -> bool:
        """Return whether the namespace has been started and has not ended."""
        return self._line is not None

    async def ask(self, verb: str, **document: object) -> dict[str, Any]:
        """Send a request to the namespace and return the answer. The first request starts the namespace. Raises
        NamespaceFailed."""
        async with self._turn:
            if self._line is None:
                await self._start()
        return (await self._ask(verb, document))[0]

    async def dial(self, address: str, port: int) -> socket.socket:
        """Return a connection to a machine, from the namespace's side of its network.

        Raises OSError if no process listens, and NamespaceFailed if the machines are off.
        """
        line = await self.make_socket("")
        try:
            await asyncio.wait_for(asyncio.get_running_loop().sock_connect(line, (address, port)), _DIAL_S)
        except BaseException:
            line.close()
            raise
        return line

    async def make_socket(self, name: str) -> socket.socket:
        """Return a new socket in the network of the machine `name`. If `name` is empty, the socket is in the network around the
        machines.

        Raises NamespaceFailed if the machine is off.
        """
        _answer, handles = await self._ask("socket", {"name": name})
        line = socket.socket(fileno=handles[0])
        line.setblocking(False)
        return line

    def end(self) -> None:
        """End the namespace and everything in it."""
        self._drop_connection()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    async def _start(self) -> None:
        self.end()
        (self._folder / layout.MACHINES).mkdir(mode=0o700, exist_ok=True)
        own_end, child_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        program = Path(__file__).parent / "machines" / "namespace.py"
        with child_end:
            self._process = subprocess.Popen(  # noqa: ASYNC220 (it must die with this thread, and starting takes a millisecond)
                [sys.executable, str(program), str(child_end.fileno()), str(self._folder)],
                stdin=subprocess.DEVNULL,
                pass_fds=(child_end.fileno(),),
                start_new_session=True,
            )
        own_end.setblocking(False)
        self._line = own_end
        ready = self._waiting[0] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().add_reader(own_end.fileno(), self._hear)
        try:
            await asyncio.wait_for(ready, _START_S)
        except (TimeoutError, NamespaceFailed) as error:
            self.end()
            raise NamespaceFailed(
                f"the namespace of the simulated machines does not start: {layout.last_line(self._folder)}"
            ) from error

    async def _ask(self, verb: str, document: dict[str, object]) -> tuple[dict[str, Any], list[int]]:
        if self._line is None:
            raise NamespaceFailed("the machines are off")
        self._number += 1
        number = self._number
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            await asyncio.get_running_loop().sock_sendall(
                self._line, json.dumps({"id": number, "verb": verb, **document}).encode()
            )
            reply, handles = await asyncio.wait_for(answer, _ANSWER_S)
        except (TimeoutError, OSError) as error:
            raise NamespaceFailed(f"the namespace of the simulated machines does not answer: {error}") from error
        finally:
            self._waiting.pop(number, None)
        if "error" in reply:
            raise NamespaceFailed(str(reply["error"]))
        return reply, handles

    def _hear(self) -> None:
        if self._line is None:
            return
        try:
            text, rights, _flags, _address = self._line.recvmsg(_MESSAGE, socket.CMSG_SPACE(array.array("i", [0]).itemsize))
        except BlockingIOError:
            return
        except OSError:
            text, rights = b"", []
        if not text:
            self._drop_connection()
            return
        handles = array.array("i")
        for _level, _kind, data in rights:
            handles.frombytes(data)
        reply = json.loads(text)
        waiting = self._waiting.pop(reply["id"], None)
        if waiting is not None and not waiting.done():
            waiting.set_result((reply, list(handles)))
        else:  # the caller has given up
            for handle in handles:
                os.close(handle)

    def _drop_connection(self) -> None:
        if self._line is None:
            return
        asyncio.get_running_loop().remove_reader(self._line.fileno())
        self._line.close()
        self._line = None
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(NamespaceFailed("the namespace of the simulated machines has ended"))
        self._waiting.clear()
