"""The verbs: the requests that the agent serves. Each verb reads its arguments and standard input, and prints its answer as
JSON. Only `follow` and `pack` print a stream.

If a verb fails, it prints {"error": ..., "kind": ...}, and the exit code is 3. Each verb imports only the modules that it
needs.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from typing import Any

from gpucourse.remote.agent.job import Job, JobRefused

STREAMS = ("follow", "pack")
BACKGROUND = ("supervise", "describe")
"""The verbs of processes that keep running after `start` has answered."""


def main(argv: list[str]) -> int:
    """Run one verb and return the process's exit code."""
    verb, words = argv[0], argv[1:]
    if verb == "rank":
        from gpucourse.remote.agent import rank  # which starts its script before it imports `json`

        return rank.run(Job(words[0]), words[1:])
    import json

    try:
        answer = _answer(verb, words)
    except JobRefused as error:
        answer = {"error": error.message, "kind": error.kind}
    except BrokenPipeError:
        return 141  # the client left
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS, errno.EFBIG):
            raise
        answer = {"error": "{}: {}".format(error.strerror, error.filename or "on the node"), "kind": "storage"}
    if answer is None:
        return 0
    # If standard output is a stream and not JSON, the error goes to standard error.
    voice = sys.stderr if "error" in answer and verb in STREAMS else sys.stdout
    voice.write(json.dumps(answer) + "\n")
    voice.flush()
    return 3 if "error" in answer else 0


def _answer(verb: str, words: list[str]) -> dict[str, Any] | None:
    """Return the answer to a verb, or None if it was sent as a stream."""
    if verb == "start":
        return _start()
    if verb in BACKGROUND:
        _work_in_background(verb, Job(words[0]), words[1:])
        return None
    if verb == "states":
        return _describe_states(words)
    if verb == "cancel":
        return _cancel(float(words[0]), words[1:])
    if verb in STREAMS:
        _send_stream(verb, Job(words[0]), words[1:])
        return None
    if verb == "probe":
        import json

        from gpucourse.remote.agent import machine

        return machine.probe(json.loads(words[0]))
    if verb == "look":
        from gpucourse.remote.agent import look

        return look.list_activities(Job(words[0]))
    return _answer_about_slurm(verb, words)


def _answer_about_slurm(verb: str, words: list[str]) -> dict[str, Any]:
    from gpucourse.remote.agent.slurm import commands, submit, watch

    if verb == "cluster":
        return commands.describe_cluster()
    if verb == "session":
        return submit.describe_session(Job(words[0]))
    if verb == "later":
        return watch.describe_later_jobs(Job(words[0]))
    raise JobRefused(f"no such verb: {verb}")


def _start() -> dict[str, Any]:
    spec = _read_request()
    if "slurm" in spec:
        from gpucourse.remote.agent.slurm import submit

        return submit.submit(spec)
    from gpucourse.remote.agent import start

    return start.start(spec, _find_agent())


def _find_agent() -> str:
    """Return the folder that this program was started from. It is the first entry of `sys.path`, because Python runs in
    isolated mode (-I)."""
    return os.path.abspath(sys.path[0])


def _work_in_background(verb: str, job: Job, words: list[str]) -> None:
    from gpucourse.remote.agent import supervise

    if verb == "supervise":
        supervise.supervise(job, _read_request(), _find_agent(), lock=int(words[0]))
    else:
        supervise.describe(job, python=words[0], collected=words[1:])


def _send_stream(verb: str, job: Job, words: list[str]) -> None:
    """Send the results of a run, or its logs.

    `words`: how many bytes of each log the client has. A single `-` means that standard input lists them, one log per line.
    """
    if verb == "pack":
        from gpucourse.remote.agent import pack

        pack.pack(job, _read_request(), sys.stdout.buffer)
        return
    lines = sys.stdin.read().splitlines() if words == ["-"] else words
    offsets = {name: int(offset) for name, offset in (line.rsplit("=", 1) for line in lines)}
    if _is_scheduled(job):
        from gpucourse.remote.agent.slurm.follow import follow
    else:
        from gpucourse.remote.agent.follow import follow
    follow(job, offsets, sys.stdout.fileno())


def _describe_states(run_ids: list[str]) -> dict[str, Any]:
    """Return the state of each of these runs. One query to Slurm is enough for all of them."""
    scheduled = [job for job in map(Job, run_ids) if _is_scheduled(job)]
    if len(scheduled) > 1:
        from gpucourse.remote.agent.slurm import watch

        watch.ask_for_all(scheduled)
    return _do_on_each(run_ids, _describe_state)


def _describe_state(job: Job) -> dict[str, Any]:
    if _is_scheduled(job):
        from gpucourse.remote.agent.slurm import watch

        return watch.describe_state(job)
    from gpucourse.remote.agent import supervise

    supervise.settle(job)
    return {"state": job.state(), "exit": job.read("exit.json") or None}


def _cancel(grace_s: float, run_ids: list[str]) -> dict[str, Any]:
    """Stop these runs, and return their last states. All of them are asked to stop before any is waited for."""
    from gpucourse.remote.agent import supervise
    from gpucourse.remote.agent.slurm import watch

    def request_end(job: Job) -> list[str]:
        if _is_scheduled(job):
            return watch.request_end(job)
        supervise.request_end(job, grace_s)
        return []

    def finish(job: Job) -> str:
        return watch.cancel(job, jobs_of_slurm[job.run_id]) if _is_scheduled(job) else supervise.cancel(job, grace_s)

    jobs_of_slurm = _do_on_each(run_ids, request_end)
    return _do_on_each(list(jobs_of_slurm), finish)


def _do_on_each(run_ids: list[str], task: Callable[[Job], Any]) -> dict[str, Any]:
    """Return the result of a task for each of these runs.

    If several runs are requested, those that Slurm refuses are left out. If Slurm does not answer once, all further runs under
    Slurm are left out too, because each request would wait just as long.
    """
    results: dict[str, Any] = {}
    is_silent = False
    for job in sorted(map(Job, run_ids), key=_is_scheduled):
        if is_silent and _is_scheduled(job):
            continue
        try:
            results[job.run_id] = task(job)
        except JobRefused:
            if len(run_ids) == 1:
                raise
            is_silent = True
        is_silent = is_silent or "silent" in job.read("seen.json")
    return results


def _is_scheduled(job: Job) -> bool:
    return job.has("slurm.json")


def _read_request() -> dict[str, Any]:
    import json

    request: dict[str, Any] = json.loads(sys.stdin.buffer.read().decode())
    return request
