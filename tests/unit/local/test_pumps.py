"""Bytes between the host and the programs on its nodes."""

from __future__ import annotations

import asyncio
import os

import pytest

from gpucourse.local import pumps


def test_write_all_waits_for_room() -> None:
    data = os.urandom(3_000_000)

    async def through_a_pipe() -> bytes:
        reader, writer = os.pipe()
        for handle in (reader, writer):
            os.set_blocking(handle, False)
        writing = asyncio.create_task(pumps.write_all(writer, data))
        writing.add_done_callback(lambda _task: os.close(writer))
        pieces = []
        while piece := await pumps.read_some(reader):
            pieces.append(piece)
        os.close(reader)
        return b"".join(pieces)

    assert asyncio.run(through_a_pipe()) == data


def test_write_all_raises_when_the_reader_left() -> None:
    async def into_nowhere() -> None:
        reader, writer = os.pipe()
        os.close(reader)
        try:
            await pumps.write_all(writer, b"x")
        finally:
            os.close(writer)

    with pytest.raises(BrokenPipeError):
        asyncio.run(into_nowhere())
