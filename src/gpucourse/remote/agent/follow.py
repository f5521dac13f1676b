"""Sending a run's logs as they grow, from the first byte that the client does not have yet, until the run has ended."""

from __future__ import annotations

import json
import os
import re

from gpucourse.remote.agent import frames, supervise
from gpucourse.remote.agent.job import Job
from gpucourse.remote.agent.line import Line

_RANK_LOG = re.compile(r"rank(?P<rank>[0-9]+)\.log")


def follow(job: Job, offsets: dict[int, int], out: int) -> None:
    """Send every byte of every log from its offset on, how each rank ended before and after restarts (after its log), and then
    how the run ended."""
    sent_to: dict[int, int] = {}
    reported: set[tuple[int, int]] = set()
    line, limit = Line(out), job.log_limit()
    while True:
        # The state is read before the logs: what was written before the end is seen before the end is reported.
        supervise.settle(job)
        is_over = job.state() in ("ended", "absent")
        news = [(rank, end) for rank, _, end in job.rank_ends() if (rank, end.get("restart", 0)) not in reported]
        ended_ranks = {rank for rank, _ in news}
        moved = bool(news)
        for stream, path in _list_logs(job):
            if stream not in sent_to:
                sent_to[stream] = offsets.get(stream, 0)
                if stream != frames.LAUNCHER:
                    line.send(frames.LOG, stream, sent_to[stream])  # a rank that prints nothing has a log, too
                    moved = True
            end_offset = line.send_log(stream, path, sent_to[stream], limit, whole=is_over or stream - 1 in ended_ranks)
            moved = moved or end_offset != sent_to[stream]
            sent_to[stream] = end_offset
        for rank, end in news:
            line.send(frames.RANK, rank + 1, 0, json.dumps(end).encode())
            reported.add((rank, end.get("restart", 0)))
            line.hurry()
        if is_over:
            line.send(frames.END, 0, 0, json.dumps(job.read_end()).encode())
            return
        line.rest(has_sent=moved)


def _list_logs(job: Job) -> list[tuple[int, str]]:
    """Return the stream and the path of each log that is there."""
    names = os.listdir(job.path("logs")) if job.has("logs") else []
    logs = [(frames.LAUNCHER, job.path("logs", name)) for name in names if name == "launcher.log"]
    for name in names:
        match = _RANK_LOG.fullmatch(name)
        if match:
            logs.append((int(match["rank"]) + 1, job.path("logs", name)))
    return logs
