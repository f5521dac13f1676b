"""Send the logs of a run under Slurm from the shared folder, and query Slurm about the run's state at intervals.

No gpucourse process stays on the node that accepts jobs: this process ends when the client's connection ends.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Iterator

from gpucourse.remote.agent import frames
from gpucourse.remote.agent.follow import LogStreams
from gpucourse.remote.agent.frames import Line
from gpucourse.remote.agent.job import Job
from gpucourse.remote.agent.slurm import commands, jobs, watch, words
from gpucourse.remote.agent.slurm.words import Row

FIRST_S, MAX_PAUSE_S, MAX_WAIT_S, AFTER_NOTE_S = 0.2, 10.0, 30.0, 0.1
"""The pauses between two questions to Slurm: the first pause, the longest pause, the longest one while all jobs wait, and the
pause after a job has begun a log or recorded its end."""

_LOOK_S = 0.05
_JOB_LOG = re.compile(r"^(?P<job>\d+(?:_\d+)?)-(?P<node>.+)\.out$")
_RANK_LOG = re.compile(r"^(?P<node>.+)-rank(?P<rank>\d+)\.log$")


def follow(job: Job, offsets: dict[str, int], out: int) -> None:
    """Send every byte of every log from its offset, then how the ranks and the run ended.

    `offsets`: the keys are `node/rank`, or `node/-` for a launcher.
    """
    jobs.recover(job)
    line, owners = Line(out), _Owners(job)
    logs = LogStreams(job, offsets, line)
    questions = _Questions(job)
    questions.start()
    while True:
        if questions.fault is not None:
            raise questions.fault
        # The state is read before the logs: what was written before the end is seen before the end is reported.
        is_over = watch.state(job) in ("ended", "absent")
        job.trim_logs(job.log_limit())  # only while a client follows: no gpucourse process stays on this node
        new_names = [name for name in sorted(os.listdir(job.path("logs"))) if name not in logs.streams]
        for name, node, rank in owners.find(new_names, at_last=is_over):
            logs.begin(name, node, rank)
        has_sent = logs.send(whole=is_over)
        if is_over:
            end = job.read_end()
            for rank_end in end.get("ranks", []):
                line.send(frames.RANK, 0, 0, json.dumps(rank_end).encode())
            line.send(frames.END, 0, 0, json.dumps(end).encode())
            return
        line.rest(has_sent=has_sent)


class _Questions(threading.Thread):
    """A thread that queries Slurm about the run: soon after a change, and less and less often without one.

    Slurm's commands block while a controller is down, and the logs must not wait for them.
    """

    def __init__(self, job: Job) -> None:
        super().__init__(name="slurm", daemon=True)
        self._job, self._written = job, 0
        self.fault: BaseException | None = None

    def run(self) -> None:
        pause, old_rows = FIRST_S, None
        try:
            while watch.state(self._job) not in ("ended", "absent"):
                rows = [(row["job"], row["state"], row.get("reason")) for row in watch.look(self._job)]
                waits = all(words.phase(state) == words.WAITING for _, state, _ in rows)
                pause = FIRST_S if old_rows not in (None, rows) else min(pause * 1.5, MAX_WAIT_S if waits else MAX_PAUSE_S)
                old_rows = rows
                if self._wait_for_write(pause):
                    pause = AFTER_NOTE_S
        except BaseException as fault:  # noqa: BLE001  # raised again in `follow`
            self.fault = fault

    def _wait_for_write(self, seconds: float) -> bool:
        """Wait until a job begins a log or records its end, but at most `seconds`. Return whether that happened.

        Slurm reports such a change a moment later.
        """
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            notes = sum(name.startswith("ended-") for name in os.listdir(self._job.folder))
            count = notes + len(os.listdir(self._job.path("logs")))
            if count != self._written:
                self._written = count
                return True
            time.sleep(min(_LOOK_S, max(0.0, deadline - time.monotonic())))
        return False


class _Owners:
    """Find the node and the rank that a log belongs to."""

    def __init__(self, job: Job) -> None:
        self._job, self._here = job, commands.host()
        request = jobs.read_request(job)
        self._is_spread, self._ranks = request["spread"], request["ranks"] or 1

    def find(self, names: list[str], *, at_last: bool) -> Iterator[tuple[str, str, int | None]]:
        """Yield the name, the node and the rank of each file in `names` that is a log of a known node. The rank of a launcher
        is None."""
        rows = {row["job"]: row for row in self._read_rows()} if names else {}
        for name in names:
            owner = self._find_owner(name, rows, at_last=at_last)
            if owner is not None:
                yield (name, *owner)

    def _read_rows(self) -> list[Row]:
        stored = self._job.read("exit.json") or self._job.read("seen.json")
        rows: list[Row] = stored.get("jobs") or jobs.make_rows(self._job)
        return rows

    def _find_owner(self, name: str, rows: dict[str, Row], *, at_last: bool) -> tuple[str, int | None] | None:
        """Return the node and the rank of a log. Return None if the file is not a log, or while its node is unknown.

        Slurm names the file after the host. If several nodes share this host, Slurm's list of the job's nodes decides. If
        there is no list even at the end (`at_last`), the log belongs to the node that sends it.
        """
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
