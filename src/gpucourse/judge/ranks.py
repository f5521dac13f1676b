"""Run several ranks in a real gloo process group, for a judge.

Ranks are forks of the judge's process, which has already imported torch, or new processes if it must not fork. This file
also makes processes end with their parent, and finds the line that a process is executing.
"""

from __future__ import annotations

import ctypes
import faulthandler
import multiprocessing
import os
import pickle
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NoReturn, cast

from gpucourse.judge.verdict import Verdict

Body = Callable[[int, int], Any]
Call = Callable[..., Any]
Start = Callable[[int, Path, Connection], BaseProcess]
StartRanks = Callable[[Call, int, Body, float, str], list[Any]]

# Ranks without an answer that together use less than QUIET_PROCESSOR_S of processor time in QUIET_S wait for each other.
QUIET_S, QUIET_PROCESSOR_S = 4.0, 0.06
_LOOK_S = 0.25
_LEFT_ALONE = re.compile(r"Connection (?:closed|reset) by peer")  # gloo, on a rank whose partner has failed or left the group
_SET_DEATH_SIGNAL = 1  # for Linux's prctl


def end_with_parent(limit_s: float) -> None:
    """Make this process end with its parent or, at the latest, some time after its own time limit."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, limit_s + 10.0)


def line_of_stack(stack: Path, name: str) -> str:
    """Return the file and line, such as `my_ring.py:14`, from faulthandler's output: the innermost line in the file of that
    name. Return an empty string if there is none. A judge of the same name, in a folder `judges`, is ignored."""
    with suppress(OSError):
        text = stack.read_text(encoding="utf-8", errors="replace")
        match = re.search(rf'File "(?:[^"]*/)?(?<!/judges/){re.escape(name)}", line (\d+)', text)
        return f"{name}:{match[1]}" if match else ""
    return ""


@dataclass
class _RankProcess:
    """One rank: its process, and the pipe for its answer."""

    number: int
    process: BaseProcess
    answers: Connection


def run_ranks(call: Call, size: int, body: Body, limit_s: float, file_name: str, *, start: Start | None = None) -> list[Any]:
    """Return the results of `body(rank, size)` on all ranks, in order. `call` is `Part.call`, and `file_name` the learner's
    file.

    Each rank is a fork, or the process that `start` returns for the rank's number, the folder and the pipe for the answer.

    Raises Verdict if a rank failed, if the ranks wait for each other, or if they did not end in time.
    """

    def fork(number: int, folder: Path, writer: Connection) -> BaseProcess:
        return start_process(run_rank, call, number, size, body, folder, writer, limit_s, fresh=False)

    with tempfile.TemporaryDirectory(prefix="gpucourse-ranks-", ignore_cleanup_errors=True) as folder:
        ranks: list[_RankProcess] = []
        try:
            for number in range(size):
                reader, writer = multiprocessing.Pipe(duplex=False)
                ranks.append(_RankProcess(number, (start or fork)(number, Path(folder), writer), reader))
                writer.close()
            return _gather(ranks, time.monotonic() + limit_s, Path(folder), file_name)
        finally:
            for rank in ranks:
                rank.answers.close()
                rank.process.kill()
                rank.process.join()


def start_process(target: Callable[..., NoReturn], *arguments: Any, fresh: bool) -> BaseProcess:
    """Start and return a process that calls `target`: a fork, or a `fresh` process that shares nothing and imports what it
    needs."""
    context = multiprocessing.get_context("spawn") if fresh else multiprocessing.get_context("fork")
    process = context.Process(target=target, args=arguments)
    process.start()
    return process


def run_rank(call: Call, rank: int, size: int, body: Body, folder: Path, answers: Connection, limit_s: float) -> NoReturn:
    """Run one rank in this process, and end the process."""
    try:
        end_with_parent(limit_s)
        with _stack(folder, rank).open("w") as file:
            faulthandler.register(signal.SIGUSR1, file=file, all_threads=False)
            try:
                result: tuple[str, Any] = ("answer", call(_run_in_group, rank, size, body, folder))
            except Verdict as verdict:
                result = ("verdict", verdict)
            answers.send_bytes(_pack(result))
            answers.close()
            with suppress(OSError, ValueError):
                sys.stdout.flush()
            signal.pause()  # its sockets stay open, so that other ranks wait for it or fail for another reason
    finally:
        os._exit(1)


def _pack(result: tuple[str, Any]) -> bytes:
    try:
        return pickle.dumps(result)
    except Exception as error:  # noqa: BLE001  # pickling a learner's value may raise anything
        return pickle.dumps(("verdict", Verdict("failed", "error", f"it returned a value that cannot be sent back: {error}")))


def _run_in_group(rank: int, size: int, body: Body, folder: Path) -> Any:
    os.environ.update({"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(size)})
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo0" if sys.platform == "darwin" else "lo")
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    store = dist.FileStore(str(folder / "store"), size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=timedelta(seconds=60))
    return body(rank, size)


def _gather(ranks: Sequence[_RankProcess], deadline: float, folder: Path, file_name: str) -> list[Any]:
    answers: dict[int, Any] = {}
    left_alone: Verdict | None = None
    waiting = {rank.answers: rank for rank in ranks}
    quiet = QuietSpan(time.monotonic(), len(waiting))
    while waiting:
        for pipe in wait(list(waiting), _LOOK_S):
            rank = waiting.pop(cast("Connection", pipe))
            try:
                answer = pickle.loads(rank.answers.recv_bytes())  # noqa: S301  # from a process of this judge
            except (EOFError, OSError):
                raise Verdict("failed", "crash", f"rank {rank.number} of {len(ranks)} ended without an answer") from None
            if answer[0] == "verdict":
                verdict = _name_rank(rank.number, len(ranks), answer[1])
                if not _LEFT_ALONE.search(verdict.says):
                    raise verdict
                left_alone = left_alone or verdict  # another rank may say why
                continue
            answers[rank.number] = answer[1]
        now = time.monotonic()
        only_wait = quiet.look(now, len(waiting), _read_processor_s(waiting.values()))
        if waiting and left_alone and (now > deadline or only_wait):
            break
        if waiting and (now > deadline or only_wait):
            raise Verdict("failed", "hang", _describe_wait([*waiting.values()], len(ranks), folder, file_name, quiet=only_wait))
    if left_alone:
        raise left_alone
    return [answers[rank.number] for rank in ranks]


@dataclass
class QuietSpan:
    """Detects that ranks only wait for each other: for QUIET_S seconds, the ranks without an answer have used hardly any
    processor time."""

    since: float
    ranks: int
    used_s: float = 0.0

    def look(self, now: float, ranks: int, spent_s: float) -> bool:
        """Return whether the ranks are quiet. Each answer begins a new span, because ranks that waited for it need time to
        continue.

        `ranks`: how many ranks have not answered.
        `spent_s`: their processor time in seconds, all together; below 0 if the system does not report it.
        """
        has_changed = ranks != self.ranks
        span_s = now - self.since
        quiet = not has_changed and span_s > QUIET_S and 0 <= self.used_s <= spent_s < self.used_s + QUIET_PROCESSOR_S
        if has_changed or span_s > QUIET_S or spent_s < self.used_s:
            self.since, self.ranks, self.used_s = now, ranks, spent_s
        return quiet


def _name_rank(number: int, size: int, verdict: Verdict) -> Verdict:
    message = f"rank {number} of {size}: {verdict.says}" if verdict.word == "failed" else verdict.says
    return Verdict(verdict.word, verdict.way, message, verdict.case)


def _describe_wait(waiting: Sequence[_RankProcess], size: int, folder: Path, file_name: str, *, quiet: bool) -> str:
    """Describe which ranks wait, and at which line of the learner's file. Only `quiet` ranks certainly wait."""
    for rank in waiting:
        with suppress(ProcessLookupError):
            os.kill(rank.process.pid or 0, signal.SIGUSR1)
    time.sleep(0.2)  # each rank writes its place
    places: dict[str, list[int]] = {}
    for rank in waiting:
        places.setdefault(line_of_stack(_stack(folder, rank.number), file_name), []).append(rank.number)
    sentences = "; ".join(_describe_place(place, numbers, size) for place, numbers in places.items())
    if quiet:
        return f"{sentences}, and never ended: which rank waits for a message that no rank sends?"
    return (
        f"{sentences}, and did not end in time: an endless loop, a message that no rank sends, or a computer that is very busy"
    )


def _describe_place(place: str, numbers: Sequence[int], size: int) -> str:
    verb = "waits" if len(numbers) == 1 else "wait"
    return f"rank {', '.join(map(str, numbers))} of {size} {verb}{f' at {place}' if place else ''}"


def _stack(folder: Path, rank: int) -> Path:
    return folder / f"stack-{rank}"


def _read_processor_s(ranks: Iterable[_RankProcess]) -> float:
    """Return the processor time of all threads of these ranks in seconds, or -1 if the system does not report it."""
    total = 0
    for rank in ranks:
        try:
            for task in Path(f"/proc/{rank.process.pid}/task").iterdir():
                total += int((task / "schedstat").read_text().split()[0])
        except (OSError, ValueError, IndexError):
            return -1.0
    return total / 1e9
