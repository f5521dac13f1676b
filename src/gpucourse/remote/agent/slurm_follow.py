"""Sending the logs of a run under Slurm from the shared folder, and asking Slurm now and then about its state.

No process of this stays on the node that accepts jobs: it lives as long as the connection of its request.
"""

from __future__ import annotations

import json
import os
import re
import socket
import threading
import time

from gpucourse.remote.agent import frames, slurm_jobs, slurm_watch
from gpucourse.remote.agent import slurm_words as say
from gpucourse.remote.agent.job import Job, mapping
from gpucourse.remote.agent.line import PIECE, Line
from gpucourse.remote.agent.slurm_submit import recover

FIRST_S, MOST_S, AFTER_NOTE_S = 0.2, 10.0, 0.1
"""Pauses between two questions to Slurm: the first, the longest, and after a job has begun a log or noted its end."""

_LOOK_S = 0.05
_JOB_LOG = re.compile(r"^(?P<job>\d+(?:_\d+)?)-(?P<node>.+)\.out$")
_RANK_LOG = re.compile(r"^(?P<node>.+)-rank(?P<rank>\d+)\.log$")


def follow(job: Job, offsets: dict[str, int], out: int) -> None:
    """Send every byte of every log from its offset on (by `node/rank`, the launcher's `node/-`), then how it all ended."""
    recover(job)
    logs = _Logs(job, offsets)
    asking = _Asking(job)
    asking.start()
    line = Line(out)
    while True:
        if asking.fault is not None:
            raise asking.fault
        # Looked at before the logs: what was written before the end is seen before the end is reported.
        ended = slurm_watch.state(job) in ("ended", "absent")
        sent = logs.send(line, whole=ended)
        if ended:
            how = job.read("exit.json") or {"code": 137, "reason": "lost", "seconds": None, "killed": 0}
            ranks = how.get("ranks")
            for rank in ranks if isinstance(ranks, list) else []:
                line.send(frames.RANK, int(mapping(rank)["rank"]) + 1, 0, json.dumps(rank).encode())  # type: ignore[call-overload]
            line.send(frames.END, 0, 0, json.dumps(how).encode())
            return
        line.rest(sent=sent)


class _Asking(threading.Thread):
    """Asks Slurm about the run: soon again after a change, less and less often without one. It runs in its own thread, because
    commands wait for a controller that is down, and the logs must not."""

    def __init__(self, job: Job) -> None:
        super().__init__(name="slurm", daemon=True)
        self._job, self._written = job, 0
        self.fault: BaseException | None = None

    def run(self) -> None:
        pause, known = FIRST_S, None
        try:
            while slurm_watch.state(self._job) not in ("ended", "absent"):
                now = [(row["job"], row["state"], row.get("reason")) for row in slurm_watch.look(self._job)]
                pause = FIRST_S if known not in (None, now) else min(pause * 1.5, MOST_S)
                known = now
                if self._wait_for_write(pause):
                    pause = AFTER_NOTE_S
        except BaseException as fault:  # noqa: BLE001  # raised again in `follow`
            self.fault = fault

    def _wait_for_write(self, seconds: float) -> bool:
        """Wait until a job begins a log, or notes its end, so that Slurm will report it in a moment; at most that many seconds.
        Return whether one did."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            notes = sum(name.startswith("ended-") for name in os.listdir(self._job.folder))
            written = notes + len(os.listdir(self._job.path("logs")))
            if written != self._written:
                self._written = written
                return True
            time.sleep(min(_LOOK_S, max(0.0, deadline - time.monotonic())))
        return False


class _Logs:
    """The logs that have appeared, and how much of each was sent."""

    def __init__(self, job: Job, offsets: dict[str, int]) -> None:
        self._job, self._offsets, self._limit = job, offsets, job.log_limit()
        self._streams: dict[str, int] = {}
        self._sent: dict[str, int] = {}
        self._places = {str(row["job"]): int(str(row["row"])) for row in slurm_jobs.rows(job)}
        asked = mapping((job.read("slurm.json") or {}).get("slurm") or {})
        self._spread = bool(asked.get("spread"))
        self._ranks = int(str(asked.get("ranks") or 1))
        self._here = socket.gethostname().split(".")[0]
        self._rows: dict[str, dict[str, object]] | None = None

    def send(self, line: Line, *, whole: bool) -> bool:
        """Send what is new: one piece of each log, or with `whole` everything. Return whether there was anything."""
        moved, self._rows = False, None
        self._job.trim_logs(self._limit)  # only while a client follows: no process of ours stays on this node
        for name in sorted(os.listdir(self._job.path("logs"))):
            if name not in self._streams and not self._open(name, line, whole=whole):
                continue
            data = self._read(name)
            while data:
                line.send(frames.LOG, self._streams[name], self._sent[name], data)
                self._sent[name] += len(data)
                moved = True
                data = self._read(name) if whole else b""
        return moved

    def _read(self, name: str) -> bytes:
        """Return the next piece of a log. No file is held open: an array may have more logs than one process may have files."""
        path, sent = self._job.path("logs", name), self._sent[name]
        left = PIECE if self._limit is None else min(PIECE, max(0, self._limit - sent))
        if not left or os.stat(path).st_size <= sent:
            return b""
        handle = os.open(path, os.O_RDONLY)
        try:
            return os.pread(handle, left, sent)
        finally:
            os.close(handle)

    def _open(self, name: str, line: Line, *, whole: bool) -> bool:
        """Send the node and the rank of a log. Return False for a file that is no log, or if they are not known yet."""
        whose = self._whose(name)
        node = whose and self._node(*whose, job=name.partition("-")[0], at_last=whole)
        if whose is None or node is None:
            return False
        rank = whose[1]
        stream = len(self._streams)
        self._streams[name] = stream
        self._sent[name] = self._offsets.get("{}/{}".format(node, "-" if rank is None else rank), 0)
        line.send(frames.NAMED, stream, 0, json.dumps({"node": node, "rank": rank}).encode())
        line.send(frames.LOG, stream, self._sent[name])  # a rank that prints nothing has a log, too
        return True

    def _whose(self, name: str) -> tuple[str, int | None] | None:
        if name == "launcher.log":
            return "", None
        of_job = _JOB_LOG.match(name)
        if of_job:
            rank = self._places.get(of_job["job"])
            if rank is None:
                self._places = {str(row["job"]): int(str(row["row"])) for row in slurm_jobs.rows(self._job)}
                rank = self._places.get(of_job["job"])
            return of_job["node"], None if self._spread else rank
        of_rank = _RANK_LOG.match(name)
        return (of_rank["node"], int(of_rank["rank"])) if of_rank else None

    def _node(self, host: str, rank: int | None, *, job: str, at_last: bool) -> str | None:
        """Return the node of a log. Slurm names the file after the host; if nodes share this host, Slurm's list of the job's
        nodes decides, as soon as it is known, and `at_last` the node that sends the log."""
        if host != self._here:
            return host
        if self._rows is None:  # once for all logs of a look: an array has thousands of both
            stored = self._job.read("exit.json") or self._job.read("seen.json") or {}
            rows = [mapping(row) for row in stored.get("jobs") or []]  # type: ignore[attr-defined]
            self._rows = {str(row["job"]): row for row in rows}
        mine = next(iter(self._rows.values()), None) if self._spread else self._rows.get(job)
        nodes = say.hosts(str(mine.get("node") or "")) if mine else []
        if not nodes:
            return "" if at_last else None
        return host if host in nodes else nodes[(rank or 0) * len(nodes) // self._ranks if self._spread else 0]
