"""Starting a run, once, detached from the client."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from gpucourse.remote.agent import store, supervise
from gpucourse.remote.agent.job import Job, JobRefused, home, take_secrets

_ANSWER_S = 30.0


def start(spec: dict[str, Any], agent: str) -> dict[str, Any]:
    """Start the run of `spec` and answer once it runs. A repeated request is answered with the result of the first.

    Its secrets reach the processes of the run and no file. Of the runs in `collected` the oldest are removed.
    """
    job = Job(spec["run_id"])
    secrets, collected = take_secrets(spec), spec.pop("collected", [])
    os.makedirs(home(), 0o700, exist_ok=True)
    for name in ("logs", "ranks", "outputs"):
        os.makedirs(job.path(name), 0o700, exist_ok=True)
    lock = job.lock()
    if lock is None:
        return _earlier(job)
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


def _earlier(job: Job) -> dict[str, Any]:
    deadline = time.monotonic() + _ANSWER_S
    while time.monotonic() < deadline:
        if job.has("pid") or job.has("done"):
            return {"state": job.state(), "again": True}
        time.sleep(0.02)
    raise JobRefused(f"an earlier start of run {job.run_id} is still getting ready after {_ANSWER_S:g} s")


def _detach(job: Job, spec: dict[str, Any], agent: str, lock: int) -> dict[str, Any]:
    """Fork twice, so that the supervisor has no parent here; it holds the lock from now on, and its first message is the
    answer."""
    listen, say = os.pipe()
    middle = os.fork()
    if middle == 0:
        code = 1
        try:
            os.close(listen)
            os.setsid()
            if os.fork() == 0:
                _into_background(job)
                supervise.supervise(job, spec, agent, say, lock)
            code = 0
        except BaseException:  # noqa: BLE001  # the last frame of this process: its only reader is the file
            _last_words(job)
        finally:
            os._exit(code)
    os.close(say)
    os.close(lock)
    os.waitpid(middle, 0)
    with os.fdopen(listen, "rb") as answer:
        message = answer.read()
    if not message:
        raise JobRefused(f"the supervisor of run {job.run_id} ended at once; see {job.path('supervisor.log')}")
    result: dict[str, Any] = json.loads(message.decode())
    return result


def _into_background(job: Job) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    log = os.open(job.path("supervisor.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for target, source in ((0, nothing), (1, log), (2, log)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(log)


def _last_words(job: Job) -> None:
    import traceback

    with open(job.path("supervisor.log"), "a") as log:
        traceback.print_exc(file=log)
    sys.stderr.flush()
