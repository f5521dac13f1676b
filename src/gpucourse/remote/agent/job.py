"""The folder of one run on one node, and the state of the run.

~/.gpucourse/jobs/<run_id>/
  job.json        the client's request
  started         exists once the run has been started, so that it never starts twice
  lock            the lock that the supervisor holds as long as it lives
  supervisor.pid  the process id of the supervisor
  pid             the process id of the launcher
  work/           the uploaded files; the run's command starts here
  outputs/        the result files that scripts write (GPUCOURSE_OUT)
  logs/           launcher.log, and rank<r>.log for each rank
  ranks/          <r>.json: how a rank ended; <r>.<n>.json: how it ended before restart n + 1
  tmp/            temporary files (TMPDIR), removed when the run ends
  cancelled       the request to end the run
  exit.json       how the run ended
  env.json        a description of the machine and its software
  done            the last file of a run that has ended: all files above are complete
  packed.json     the request for which the outputs were last sent

Libraries keep their caches from one run to the next in ~/.gpucourse/cache.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

MARK = "GPUCOURSE_RUN_DIR"
LOCK = "lock"
"""The lock of the supervisor, or of the process that submits the run to Slurm."""


class JobRefused(Exception):
    """The agent cannot do what the client requested. `kind` tells the client which kind of error this is."""

    def __init__(self, message: str, kind: str = "refused") -> None:
        super().__init__(message)
        self.message, self.kind = message, kind


def home() -> str:
    """Return the folder of all files that gpucourse keeps on this node."""
    return os.path.join(os.environ.get("HOME") or os.path.expanduser("~"), ".gpucourse")


class Job:
    """The files of one run on this node."""

    def __init__(self, run_id: str) -> None:
        if not run_id or "/" in run_id or run_id.startswith(".") or "\0" in run_id:
            raise JobRefused(f"not a run id: {run_id!r}")
        self.run_id = run_id
        self.folder = os.path.join(home(), "jobs", run_id)

    def path(self, *names: str) -> str:
        """Return the path of `names` (folders, then a file) below the job's folder."""
        return os.path.join(self.folder, *names)

    def has(self, *names: str) -> bool:
        """Return whether that file exists, even as a broken link."""
        return os.path.lexists(self.path(*names))

    def read(self, *names: str) -> dict[str, Any]:
        """Return the JSON object in that file, or an empty dict if the file is missing or contains no JSON object."""
        import json  # takes ten milliseconds, which a rank's script need not wait for

        try:
            with open(self.path(*names), "rb") as file:
                document = json.loads(file.read().decode())
        except (OSError, ValueError):
            return {}
        return document if isinstance(document, dict) else {}

    def read_end(self) -> dict[str, Any]:
        """Return how the run ended. If that was not recorded, the run counts as lost."""
        return self.read("exit.json") or {"code": 137, "reason": "lost", "seconds": None, "killed": 0}

    def write(self, name: str, data: object, flush: bool = False) -> None:
        """Store JSON in one step, so that a reader sees the whole file or none. With `flush`, the file also survives a power
        cut."""
        import json

        aside = self.path(f"{name}.{os.getpid()}.new")
        with open(aside, "wb") as file:
            file.write(json.dumps(data).encode())
            if flush:
                file.flush()
                os.fsync(file.fileno())
        os.rename(aside, self.path(name))

    def pid(self, name: str) -> int | None:
        """Return the process id in the job's file `name`, or None if the file is missing or contains no number."""
        try:
            with open(self.path(name)) as file:
                return int(file.read())
        except (OSError, ValueError):
            return None

    @contextmanager
    def holding(self, name: str) -> Iterator[None]:
        """Hold the lock of that name during the block. Wait while another process holds it."""
        handle = os.open(self.path(name), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def lock(self) -> int | None:
        """Take the supervisor's lock. Return the descriptor that holds it, or None if another process holds it."""
        handle = os.open(self.path(LOCK), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            return None
        return handle

    def is_supervised(self) -> bool:
        """Return whether the run's supervisor is alive."""
        try:
            handle = os.open(self.path(LOCK), os.O_RDONLY)
        except OSError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(handle)
        return False

    def state(self) -> str:
        """Return `absent`, `preparing`, `running`, `ended` or `lost`. A run is lost if its supervisor vanished without
        recording an end."""
        if not self.has("job.json"):
            return "absent"
        if self.has("done"):
            return "ended"
        if self.is_supervised():
            return "running" if self.has("pid") else "preparing"
        return "ended" if self.has("done") else ("lost" if self.has("started") else "absent")

    def log_limit(self) -> int | None:
        """Return how many bytes of each log are kept, or None if there is no limit."""
        limit: int | None = self.read("job.json").get("log_limit")
        return limit

    def trim_logs(self, limit: int | None) -> None:
        """Cut every log to its limit. A log's writer appends to the file, so it is not disturbed. Anything that it adds later
        is cut off next time."""
        for name in os.listdir(self.path("logs")) if limit is not None and self.has("logs") else ():
            path = self.path("logs", name)
            try:
                if limit is not None and os.lstat(path).st_size > limit:
                    os.truncate(path, limit)
            except OSError:
                continue  # it is gone, or belongs to another user: the next call tries again

    def ranks(self) -> dict[int, dict[str, Any]]:
        """Return how each rank ended. Ranks that still run or were restarted are left out."""
        return {rank: end for rank, life, end in self.rank_ends() if life is None}

    def rank_ends(self) -> list[tuple[int, int | None, dict[str, Any]]]:
        """Return each end of each rank: the rank, the number of restarts before this end, and the end.

        The number is None for the latest end of a rank.
        """
        try:
            names = sorted(os.listdir(self.path("ranks")))
        except OSError:
            return []
        ends = []
        for name in names:
            rank, _, suffix = name.partition(".")
            life = suffix[: -len(".json")] if suffix.endswith(".json") else ""
            if rank.isdigit() and (suffix == "json" or life.isdigit()):
                end = self.read("ranks", name)
                if end:
                    ends.append((int(rank), int(life) if life else None, end))
        return ends

    def max_restarts(self) -> int:
        """Return how often the launcher may restart all ranks."""
        count: int = self.read("job.json").get("max_restarts", 0)
        return count
