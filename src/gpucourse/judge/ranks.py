"""Several ranks in a real gloo process group, for a judge: forks of its own process, which has imported torch already."""

from __future__ import annotations

import os
import pickle
import select
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from gpucourse.judge.verdict import Verdict


def run_ranks(call: Callable[..., Any], size: int, body: Callable[[int, int], Any], limit_s: float) -> list[Any]:
    """What `body(rank, size)` returns on every rank, in their order; `call` is `Part.call`.

    Raises Verdict where a rank failed, or where they did not end in time.
    """
    sys.stdout.flush()
    with tempfile.TemporaryDirectory(prefix="gpucourse-ranks-") as folder:
        pipes: list[BinaryIO] = []
        children: list[int] = []
        try:
            for rank in range(size):
                reader, writer = os.pipe()
                child = os.fork()
                if child == 0:
                    _be_rank(call, rank, size, body, folder, writer)
                os.close(writer)
                pipes.append(os.fdopen(reader, "rb"))
                children.append(child)
            return _gather(pipes, time.monotonic() + limit_s)
        finally:
            for pipe in pipes:
                pipe.close()
            for child in children:
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)


def _be_rank(
    call: Callable[..., Any], rank: int, size: int, body: Callable[[int, int], Any], folder: str, writer: int
) -> NoReturn:
    """One rank, in its own process: nothing returns from here."""
    try:
        result: tuple[str, Any] = ("answer", call(_in_group, rank, size, body, folder))
    except Verdict as verdict:
        result = ("verdict", verdict)
    try:
        with os.fdopen(writer, "wb") as pipe:
            pickle.dump(result, pipe)
        sys.stdout.flush()
        signal.pause()  # its sockets stay open, so that the others wait for it, or fail for a reason of their own
    finally:
        os._exit(1)


def _in_group(rank: int, size: int, body: Callable[[int, int], Any], folder: str) -> Any:
    os.environ.update({"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(size)})
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo0" if sys.platform == "darwin" else "lo")
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    store = dist.FileStore(str(Path(folder) / "store"), size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=timedelta(seconds=60))
    return body(rank, size)


def _gather(pipes: list[BinaryIO], deadline: float) -> list[Any]:
    answers: dict[int, Any] = {}
    waiting = dict(enumerate(pipes))
    while waiting:
        ready, _, _ = select.select(list(waiting.values()), [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            ranks = ", ".join(map(str, waiting))
            raise Verdict(
                "failed", "hang", f"rank {ranks} of {len(pipes)} never ended: who waits for a message that nobody sends?"
            )
        for rank in [rank for rank, pipe in waiting.items() if pipe in ready]:
            data = waiting.pop(rank).read()
            if not data:
                raise Verdict("failed", "crash", f"rank {rank} of {len(pipes)} ended without an answer")
            kind, value = pickle.loads(data)  # noqa: S301  # from a fork of this very process
            if kind == "verdict":
                raise Verdict(
                    value.word,
                    value.way,
                    f"rank {rank} of {len(pipes)}: {value.says}" if value.word == "failed" else value.says,
                    value.case,
                )
            answers[rank] = value
    return [answers[rank] for rank in range(len(pipes))]
