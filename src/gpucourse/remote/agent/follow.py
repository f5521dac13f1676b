"""Sending a run's logs as they grow, from the first byte that the client does not have yet, until the run has ended."""

from __future__ import annotations

import json
import os

from gpucourse.remote.agent import frames, supervise
from gpucourse.remote.agent.job import Job
from gpucourse.remote.agent.line import PIECE, Line


def follow(job: Job, offsets: dict[int, int], out: int) -> None:
    """Send every byte of every log from its offset on, how each rank ended before and after restarts (after its log), and then
    how the run ended."""
    logs: dict[int, _Log] = {}
    told: set[tuple[int, object]] = set()
    line = Line(out)
    limit = job.log_limit()
    while True:
        # The state is read before the logs: what was written before the end is seen before the end is reported.
        supervise.settle(job)
        ended = job.state() in ("ended", "absent")
        news = [(rank, how) for rank, _, how in job.rank_ends() if (rank, how.get("restart", 0)) not in told]
        ended_ranks = {rank for rank, _ in news}
        sent = False
        for rank_log in _new_logs(job, logs, offsets, limit):
            line.send(frames.LOG, rank_log.stream, rank_log.offset)  # a rank that prints nothing has a log, too
            sent = True
        for log in logs.values():
            sent = _send_log(log, line, to_its_end=ended or log.stream - 1 in ended_ranks) or sent
        for rank, how in news:
            line.send(frames.RANK, rank + 1, 0, json.dumps(how).encode())
            told.add((rank, how.get("restart", 0)))
            sent = True
            line.hurry()
        if ended:
            how = job.read("exit.json") or {"code": 137, "reason": "lost", "seconds": None, "killed": 0}
            line.send(frames.END, 0, 0, json.dumps(how).encode())
            return
        line.rest(sent=sent)


class _Log:
    """One open log file, and how much of it was sent; nothing beyond its limit is sent."""

    def __init__(self, stream: int, path: str, offset: int, limit: int | None) -> None:
        self.stream, self.offset, self.limit = stream, offset, limit
        self.handle = os.open(path, os.O_RDONLY)

    def piece(self) -> bytes:
        left = PIECE if self.limit is None else min(PIECE, max(0, self.limit - self.offset))
        return os.pread(self.handle, left, self.offset)


def _new_logs(job: Job, logs: dict[int, _Log], offsets: dict[int, int], limit: int | None) -> list[_Log]:
    """Open the logs that have appeared; return those of ranks."""
    try:
        names = os.listdir(job.path("logs"))
    except OSError:
        return []
    known = set(logs)
    for name in names:
        stem, ending = os.path.splitext(name)
        if stem == "launcher":
            stream = frames.LAUNCHER
        elif stem.startswith("rank") and stem[4:].isdigit() and ending == ".log":
            stream = int(stem[4:]) + 1
        else:
            continue
        if stream not in logs:
            logs[stream] = _Log(stream, job.path("logs", name), offsets.get(stream, 0), limit)
    return [log for stream, log in logs.items() if stream not in known and stream != frames.LAUNCHER]


def _send_log(log: _Log, line: Line, *, to_its_end: bool) -> bool:
    """Send what is new; no more than one piece while the run lasts, so that no log waits for another. Return whether anything
    was sent."""
    sent = False
    for data in iter(log.piece, b""):
        line.send(frames.LOG, log.stream, log.offset, data)
        log.offset += len(data)
        sent = True
        if not to_its_end:
            break
    return sent
