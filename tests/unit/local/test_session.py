"""One session on a node, for a client that a test plays."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from gpucourse.local.child import Terminal
from gpucourse.local.session import serve


class Client:
    """A client that sends some input and stays until the end. It takes the place of a server.SshChannel."""

    terminal: Terminal | None = None
    environment: Mapping[str, str] = {}

    def __init__(self, command: str, *data: bytes) -> None:
        self.command: str | None = command
        self.sent, self.said, self.ended = [*data, b""], {False: b"", True: b""}, list[object]()

    async def read(self) -> bytes:
        return self.sent.pop(0)

    async def write(self, data: bytes, *, to_errors: bool = False) -> None:
        self.said[to_errors] += data

    async def wait_closed(self) -> None:
        await asyncio.get_running_loop().create_future()

    def listen(self, on_signal: Callable[[str], None], on_size: Callable[[int, int], None]) -> None:
        """No signal comes."""

    def exit(self, code: int) -> None:
        self.ended.append(code)

    def exit_by_signal(self, name: str) -> None:
        self.ended.append(name)


@pytest.mark.parametrize(
    ("command", "out", "errors", "exit_status"),
    [("cat; echo oh >&2; exit 3", b"one\ntwo\n", b"oh\n", 3), ("kill -KILL $$", b"", b"", "KILL"), ("pwd", None, b"", 0)],
)
def test_serve_sends_the_output_and_the_end(
    tmp_path: Path, command: str, out: bytes | None, errors: bytes, exit_status: object
) -> None:
    client: Any = Client(command, b"one\n", b"two\n")
    asyncio.run(serve(client, shell="/bin/sh", home=tmp_path, environment=dict(os.environ)))
    assert client.said == {False: os.fsencode(f"{tmp_path}\n") if out is None else out, True: errors}
    assert client.ended == [exit_status]


def test_serve_reports_a_shell_that_cannot_start(tmp_path: Path) -> None:
    client: Any = Client("true")
    asyncio.run(serve(client, shell=str(tmp_path / "none"), home=tmp_path, environment={}))
    assert client.said[True].startswith(b"cannot start a process on this node:")
    assert client.ended == [255]
