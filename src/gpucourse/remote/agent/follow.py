"""Send a run's logs as they grow, from the first byte that the client does not have, until the run has ended."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection
from contextlib import suppress

from gpucourse.remote.agent import frames, supervise
from gpucourse.remote.agent.frames import Line
from gpucourse.remote.agent.job import Job

_LOG = re.compile(r"launcher\.log|rank(?P<rank>[0-9]+)\.log")


class LogStreams:
    """The logs that have appeared, each with the number of its stream and how many of its bytes were sent.

    `offsets`: how many bytes of each log the client has. A key is `node/rank`, or `node/-` for a launcher. This node's own name
    is left empty.
    """

    def __init__(self, job: Job, offsets: dict[str, int], line: Line) -> None:
        self._job, self._offsets, self._line, self._limit = job, offsets, line, job.log_limit()
        self.streams: dict[str, int] = {}
        self._sent: dict[str, int] = {}

    def begin(self, name: str, node: str, rank: int | None) -> None:
        """Send the node and the rank of a log that has appeared. The rank of a launcher is None."""
        stream = self.streams[name] = len(self.streams)
        self._sent[name] = self._offsets.get(f"{node}/{'-' if rank is None else rank}", 0)
        self._line.send(frames.NAMED, stream, 0, json.dumps({"node": node, "rank": rank}).encode())
        if node or rank is not None:
            self._line.send(frames.LOG, stream, self._sent[name])  # a rank that prints nothing has a log, too

    def send(self, *, whole: bool, ended_names: Collection[str] = ()) -> bool:
        """Send one new piece of each log. Return whether anything was new.

        `whole`: send everything that is new in every log.
        `ended_names`: send everything that is new in these logs.
        """
        has_sent = False
        for name, stream in self.streams.items():
            with suppress(FileNotFoundError):  # the run was removed meanwhile
                path, offset = self._job.path("logs", name), self._sent[name]
                self._sent[name] = self._line.send_log(stream, path, offset, self._limit, whole=whole or name in ended_names)
                has_sent = has_sent or self._sent[name] != offset
        return has_sent


def follow(job: Job, offsets: dict[str, int], out: int) -> None:
    """Send every byte of every log, each log from its offset.

    After a rank's log, send how the rank ended, both before a restart and at the end. Finally, send how the run ended.
    """
    reported: set[tuple[int, int]] = set()
    line = Line(out)
    logs = LogStreams(job, offsets, line)
    while True:
        # The state is read before the logs: what was written before the end is seen before the end is reported.
        supervise.settle(job)
        is_over = job.state() in ("ended", "absent")
        news = [(rank, end) for rank, _, end in job.rank_ends() if (rank, end.get("restart", 0)) not in reported]
        for name in sorted(os.listdir(job.path("logs"))) if job.has("logs") else ():
            log = _LOG.fullmatch(name)
            if log and name not in logs.streams:
                logs.begin(name, "", int(log["rank"]) if log["rank"] else None)
        has_sent = logs.send(whole=is_over, ended_names=[f"rank{rank}.log" for rank, _ in news])
        for rank, end in news:
            line.send(frames.RANK, 0, 0, json.dumps(dict(end, rank=rank)).encode())
            reported.add((rank, end.get("restart", 0)))
        if is_over:
            line.send(frames.END, 0, 0, json.dumps(job.read_end()).encode())
            return
        line.rest(has_sent=has_sent or bool(news))
