"""Sending the logs of a run under Slurm from the shared folder, and asking Slurm now and then about its state.

No process of this stays on the node that accepts jobs: it lives as long as the connection of its request.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time

from gpucourse.remote.agent import frames
from gpucourse.remote.agent.job import Job
from gpucourse.remote.agent.line import Line
from gpucourse.remote.agent.slurm import commands, jobs, watch, words
from gpucourse.remote.agent.slurm.words import Row

FIRST_S, MAX_PAUSE_S, AFTER_NOTE_S = 0.2, 10.0, 0.1
"""Pauses between two questions to Slurm: the first, the longest, and after a job has begun a log or noted its end."""

_LOOK_S = 0.05
_JOB_LOG = re.compile(r"^(?P<job>\d+(?:_\d+)?)-(?P<node>.+)\.out$")
_RANK_LOG = re.compile(r"^(?P<node>.+)-rank(?P<rank>\d+)\.log$")


def follow(job: Job, offsets: dict[str, int], out: int) -> None:
    """Send every byte of every log from its offset on (by `node/rank`, the launcher's `node/-`), then how it all ended."""
    jobs.recover(job)
    logs = _Logs(job, offsets)
    questions = _Questions(job)
    questions.start()
    line = Line(out)
    while True:
        if questions.fault is not None:
            raise questions.fault
        # Looked at before the logs: what was written before the end is seen before the end is reported.
        is_over = watch.state(job) in ("ended", "absent")
        has_sent = logs.send(line, whole=is_over)
        if is_over:
            end = job.read_end()
            for rank in end.get("ranks", []):
                line.send(frames.RANK, rank["rank"] + 1, 0, json.dumps(rank).encode())
            line.send(frames.END, 0, 0, json.dumps(end).encode())
            return
        line.rest(has_sent=has_sent)


class _Questions(threading.Thread):
    """Asks Slurm about the run: soon again after a change, less and less often without one. It is a thread, because commands
    wait for a controller that is down, and the logs must not."""

    def __init__(self, job: Job) -> None:
        super().__init__(name="slurm", daemon=True)
        self._job, self._written = job, 0
        self.fault: BaseException | None = None

    def run(self) -> None:
        pause, old_rows = FIRST_S, None
        try:
            while watch.state(self._job) not in ("ended", "absent"):
                rows = [(row["job"], row["state"], row.get("reason")) for row in watch.look(self._job)]
                pause = FIRST_S if old_rows not in (None, rows) else min(pause * 1.5, MAX_PAUSE_S)
                old_rows = rows
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
            count = notes + len(os.listdir(self._job.path("logs")))
            if count != self._written:
                self._written = count
                return True
            time.sleep(min(_LOOK_S, max(0.0, deadline - time.monotonic())))
        return False


class _Logs:
    """The logs that have appeared: for each the number of its stream, and how much of it was sent."""

    def __init__(self, job: Job, offsets: dict[str, int]) -> None:
        self._job, self._offsets, self._limit = job, offsets, job.log_limit()
        self._streams: dict[str, int] = {}
        self._sent: dict[str, int] = {}
        request = jobs.read_request(job)
        self._is_spread, self._ranks = request["spread"], request["ranks"] or 1
        self._here = commands.host()

    def send(self, line: Line, *, whole: bool) -> bool:
        """Send what is new: one piece of each log, or with `whole` everything. Return whether there was anything."""
        moved = False
        self._job.trim_logs(self._limit)  # only while a client follows: no process of ours stays on this node
        names = sorted(os.listdir(self._job.path("logs")))
        self._name_streams(line, [name for name in names if name not in self._streams], at_last=whole)
        for name, stream in self._streams.items():
            end_offset = line.send_log(stream, self._job.path("logs", name), self._sent[name], self._limit, whole=whole)
            moved = moved or end_offset != self._sent[name]
            self._sent[name] = end_offset
        return moved

    def _name_streams(self, line: Line, names: list[str], *, at_last: bool) -> None:
        """Send the node and the rank of each of these logs, unless they are not known yet."""
        rows = {row["job"]: row for row in self._read_rows()} if names else {}
        for name in names:
            owner = self._find_owner(name, rows, at_last=at_last)
            if owner is None:
                continue
            node, rank = owner
            stream = self._streams[name] = len(self._streams)
            self._sent[name] = self._offsets.get(f"{node}/{'-' if rank is None else rank}", 0)
            line.send(frames.NAMED, stream, 0, json.dumps({"node": node, "rank": rank}).encode())
            line.send(frames.LOG, stream, self._sent[name])  # a rank that prints nothing has a log, too

    def _read_rows(self) -> list[Row]:
        stored = self._job.read("exit.json") or self._job.read("seen.json")
        rows: list[Row] = stored.get("jobs") or jobs.make_rows(self._job)
        return rows

    def _find_owner(self, name: str, rows: dict[str, Row], *, at_last: bool) -> tuple[str, int | None] | None:
        """Return the node and the rank (None: the launcher) of a log; None for a file that is no log, or while its node is not
        known. Slurm names the file after the host; if nodes share this host, Slurm's list of the job's nodes decides, and
        `at_last` the node that sends the log."""
        if name == "launcher.log":
            return "", None
        match = _JOB_LOG.match(name) or _RANK_LOG.match(name)
        if match is None:
            return None
        fields = match.groupdict()
        row = next(iter(rows.values()), {}) if self._is_spread else rows.get(fields.get("job", ""), {})
        of_job: int | None = None if self._is_spread else row.get("row")
        host, rank = fields["node"], int(fields["rank"]) if "rank" in fields else of_job
        if host != self._here:
            return host, rank
        nodes = words.hosts(row.get("node") or "")
        if not nodes:
            return ("", rank) if at_last else None
        place = (rank or 0) * len(nodes) // self._ranks if self._is_spread else 0
        return host if host in nodes else nodes[place], rank
