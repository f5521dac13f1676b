"""Start several ranks of one node from one process. Torch is imported once, and then the ranks are forked.

Importing torch takes one to two processor seconds per process. With eight processes on two cores, it would take most of a short
run. On GPUs, there is one process per GPU, and `start` is called with 1.
"""

from __future__ import annotations

import ctypes
import io
import os
import signal
import socket
import sys
from typing import TextIO

_PR_SET_PDEATHSIG = 1


def start(ranks_per_node: int) -> None:
    """Fork `ranks_per_node` ranks on this node, and return in each, with RANK, LOCAL_RANK, WORLD_SIZE and LOCAL_WORLD_SIZE set.

    Ranks 0 to n-1 are on the first node, n to 2n-1 on the second. Each line that a rank prints begins with its number.

    Call this after the imports, and before torch computes anything or starts a thread, because a fork copies only one thread.
    The original process waits, ends the other ranks of its node if one fails, and exits with 0 or the code of the first rank
    that failed. If it is killed, so are its ranks.

    Exit with a message if ranks cannot be forked: on macOS, or if torchrun started several processes on this node.
    """
    if ranks_per_node == 1:
        return
    if sys.platform == "darwin":
        sys.exit(
            "on macOS a process that has imported torch cannot be forked: take --ranks-per-node=1 (run --set ranks_per_node=1)"
        )
    if (processes := int(os.environ.get("LOCAL_WORLD_SIZE", "1"))) > 1:
        sys.exit(
            f"torchrun started {processes} processes on this node, and each of them would fork {ranks_per_node} ranks: "
            "take --nproc-per-node=1, or --ranks-per-node=1"
        )
    node, nodes = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    if "MASTER_PORT" not in os.environ:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(_free_port()))
    sys.stdout.flush()
    parent, children = os.getpid(), []
    for local in range(ranks_per_node):
        if (child := os.fork()) == 0:
            _begin(parent, node * ranks_per_node + local, local, nodes * ranks_per_node, ranks_per_node)
            return
        children.append(child)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _frame: _end(children, number))
    os._exit(_wait(children))


def _begin(parent: int, rank: int, local: int, world: int, local_world: int) -> None:
    """Make this process a rank, which dies with its parent."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # killed before the line above
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(local), WORLD_SIZE=str(world), LOCAL_WORLD_SIZE=str(local_world))
    sys.stdout, sys.stderr = _LinesOfARank(sys.stdout, rank), _LinesOfARank(sys.stderr, rank)


def _wait(children: list[int]) -> int:
    """Return the exit code of the ranks, once all have ended: the first code that is not 0, or 0."""
    worst, remaining = 0, set(children)
    while remaining:
        child, status = os.wait()
        remaining.discard(child)
        code = os.waitstatus_to_exitcode(status)
        if code and not worst:
            worst = code if code > 0 else 128 - code
            _end(sorted(remaining), signal.SIGTERM)
    return worst


def _end(children: list[int], number: int) -> None:
    for child in children:
        try:
            os.kill(child, number)
        except ProcessLookupError:
            continue


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class _LinesOfARank(io.TextIOBase):
    """A stream that several ranks share. It writes only whole lines, each with the number of its rank unless it is empty."""

    def __init__(self, stream: TextIO, rank: int) -> None:
        self._stream, self._rank, self._begun = stream, f"rank {rank}", ""

    def write(self, text: str) -> int:
        *lines, self._begun = (self._begun + text).split("\n")
        if lines:
            self._stream.write("".join(self._mark(line) + "\n" for line in lines))
            self._stream.flush()
        return len(text)

    def _mark(self, line: str) -> str:
        return line if not line or line.startswith((f"{self._rank} ", f"{self._rank}: ")) else f"{self._rank}: {line}"

    def flush(self) -> None:
        self._stream.flush()

    def fileno(self) -> int:
        return self._stream.fileno()
