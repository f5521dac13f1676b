"""Bytes through non-blocking file descriptors."""

from __future__ import annotations

import asyncio
import os

from gpucourse.local.pumps import read_some, write_all


def test_read_some_receives_what_write_all_sends() -> None:
    reader, writer = os.pipe()
    for end in (reader, writer):
        os.set_blocking(end, False)
    text = os.urandom(1 << 20)  # more than a pipe holds

    async def receive() -> bytes:
        buffer = b""
        while piece := await read_some(reader):
            buffer += piece
        os.close(reader)
        return buffer

    async def send() -> None:
        await write_all(writer, text)
        os.close(writer)

    async def both() -> bytes:
        return (await asyncio.gather(receive(), send()))[0]

    assert asyncio.run(both()) == text
