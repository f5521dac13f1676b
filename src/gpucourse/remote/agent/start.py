"""Start a run exactly once, detached from the client."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any

from gpucourse.remote.agent import store
from gpucourse.remote.agent.job import Job, JobRefused, home

_ANSWER_S = 30.0


def start(spec: dict[str, Any], agent: str) -> dict[str, Any]:
    """Start the run of `spec`, and return the answer for the client once it is running.

    A repeated request gets the answer to the first request.

    The secrets are passed to the run's processes and written to no file. The oldest of the runs in `collected` are removed.
    """
    job = Job(spec["run_id"])
    secrets, collected = spec.pop("secrets", {}), spec.pop("collected", [])
    os.makedirs(home(), 0o700, exist_ok=True)
    for name in ("logs", "ranks", "outputs"):
        os.makedirs(job.path(name), 0o700, exist_ok=True)
    lock = job.lock()
    if lock is None:
        return _answer_repeated_request(job)
    if job.has("started"):
        os.close(lock)
        return {"state": job.state(), "again": True}
    if job.has("cancelled"):
        raise JobRefused(f"run {job.run_id} was cancelled before it began")
    try:
        _lay_out(job, spec)
    except OSError:  # a full disk: here the oldest runs are removed first, not while the new one starts
        from gpucourse.remote.agent import prune

        prune.prune(collected)
        _lay_out(job, spec)
    os.close(os.open(job.path("started"), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    answer = _detach(job, dict(spec, secrets=secrets, collected=collected), agent, lock)
    if "error" in answer:
        raise JobRefused(answer["error"], "cannot_start")
    return answer


def _lay_out(job: Job, spec: dict[str, Any]) -> None:
    job.write("job.json", spec)
    store.lay_out(spec["files"], job.path("work"))


def _answer_repeated_request(job: Job) -> dict[str, Any]:
    deadline = time.monotonic() + _ANSWER_S
    while time.monotonic() < deadline:
        if job.has("pid") or job.has("done"):
            return {"state": job.state(), "again": True}
        time.sleep(0.02)
    raise JobRefused(f"an earlier start of run {job.run_id} is still getting ready after {_ANSWER_S:g} s")


def _detach(job: Job, spec: dict[str, Any], agent: str, lock: int) -> dict[str, Any]:
    """Start the supervisor in its own session and return its first message. The supervisor holds the lock from now on."""
    reading, asking = os.pipe()
    listening, answering = os.pipe()
    argv = [sys.executable, "-I", "-S", agent, "supervise", job.run_id, str(lock)]
    with open(job.path("supervisor.log"), "ab") as log:
        subprocess.Popen(argv, stdin=reading, stdout=answering, stderr=log, pass_fds=(lock,), start_new_session=True)
    for descriptor in (reading, answering, lock):
        os.close(descriptor)
    with suppress(BrokenPipeError), os.fdopen(asking, "wb") as request:
        request.write(json.dumps(spec).encode())
    with os.fdopen(listening, "rb") as answer:
        message = answer.read()
    if not message:
        raise JobRefused(f"the supervisor of run {job.run_id} ended immediately; see {job.path('supervisor.log')}")
    result: dict[str, Any] = json.loads(message.decode())
    return result
