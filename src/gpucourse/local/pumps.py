"""Read and write bytes through non-blocking file descriptors in an event loop."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable

CHUNK = 1 << 17


async def read_some(handle: int) -> bytes:
    """Return the next bytes, or no bytes at the end of the input. A terminal's input ends when its last user closes it."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            return os.read(handle, CHUNK)
        except BlockingIOError:
            await _ready(handle, loop.add_reader, loop.remove_reader)
        except OSError as error:
            if error.errno == errno.EIO:
                return b""
            raise


async def write_all(handle: int, data: bytes) -> None:
    """Write every byte. Raises BrokenPipeError if no process reads them any more."""
    loop = asyncio.get_running_loop()
    remaining = memoryview(data)
    while remaining:
        try:
            remaining = remaining[os.write(handle, remaining) :]
        except BlockingIOError:
            await _ready(handle, loop.add_writer, loop.remove_writer)


async def _ready(handle: int, watch: Callable[..., object], unwatch: Callable[[int], object]) -> None:
    waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    watch(handle, _wake, waiting)
    try:
        await waiting
    finally:
        unwatch(handle)


def _wake(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
