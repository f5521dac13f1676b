"""The verbs. Each reads its arguments and standard input and answers JSON (or, for `follow` and `pack`, a stream) on standard
output. An error is answered as {"error": ..., "kind": ...} with code 3."""

from __future__ import annotations

import errno
import os
import sys

from gpucourse.remote.agent.job import Job, JobRefused

TYPE_CHECKING = False  # `typing` takes two milliseconds to import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

STREAMS = ("follow", "pack")


def main(argv: list[str], agent: str) -> int:
    """Run one verb; return the process's exit code. `agent` is the folder that this program was started from."""
    verb, words = argv[0], argv[1:]
    if verb == "rank":
        from gpucourse.remote.agent import rank  # which starts its script before it imports `json`

        return rank.run(Job(words[0]), words[1:])
    import json

    try:
        answer = _answer(verb, words, agent)
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
    # If standard output is a stream of another kind, the error goes to standard error.
    voice = sys.stderr if "error" in answer and verb in STREAMS else sys.stdout
    voice.write(json.dumps(answer) + "\n")
    voice.flush()
    return 3 if "error" in answer else 0


def _answer(verb: str, words: list[str], agent: str) -> dict[str, Any] | None:
    """Return the answer to a verb; None if it was sent as a stream."""
    if verb == "start":
        return _start(agent)
    if verb not in _ANSWERS:
        raise JobRefused(f"no such verb: {verb}")
    return _ANSWERS[verb](words)


def _probe(words: list[str]) -> dict[str, Any]:
    from gpucourse.remote.agent import machine

    return machine.probe(_parse(words[0]))


def _start(agent: str) -> dict[str, Any]:
    spec = _parse(sys.stdin.buffer.read().decode())
    if "slurm" in spec:
        from gpucourse.remote.agent.slurm import submit

        return submit.submit(spec)
    from gpucourse.remote.agent import start

    return start.start(spec, agent)


def _describe_session(words: list[str]) -> dict[str, Any]:
    from gpucourse.remote.agent.slurm import submit

    return submit.describe_session(Job(words[0]))


def _describe_cluster(_words: list[str]) -> dict[str, Any]:
    from gpucourse.remote.agent.slurm import commands

    return commands.describe_cluster()


def _describe_later_jobs(words: list[str]) -> dict[str, Any]:
    from gpucourse.remote.agent.slurm import watch

    return watch.describe_later_jobs(Job(words[0]))


def _pack(words: list[str]) -> None:
    from gpucourse.remote.agent import pack

    pack.pack(Job(words[0]), _parse(sys.stdin.buffer.read().decode()), sys.stdout.buffer)
    sys.stdout.buffer.flush()


def _look(words: list[str]) -> dict[str, Any]:
    from gpucourse.remote.agent import look

    return {"ranks": look.list_activities(Job(words[0]))}


def _cancel(words: list[str]) -> dict[str, Any]:
    job, grace_s = Job(words[0]), float(words[1])
    return _finish_cancel(job, _request_end(job, grace_s), grace_s)


def _follow(job: Job, words: list[str]) -> None:
    """Send the logs of a run. `words`: how much of each the client has; a lone `-` means that this is on standard input, one a
    line."""
    lines = sys.stdin.read().splitlines() if words == ["-"] else words
    offsets = {name: int(offset) for name, offset in (line.rsplit("=", 1) for line in lines)}
    if _is_scheduled(job):
        from gpucourse.remote.agent.slurm import follow as slurm_follow

        slurm_follow.follow(job, offsets, sys.stdout.fileno())
        return
    from gpucourse.remote.agent import follow

    follow.follow(job, {int(stream): offset for stream, offset in offsets.items()}, sys.stdout.fileno())


def _describe_state(job: Job, *, with_ranks: bool = True) -> dict[str, Any]:
    if _is_scheduled(job):
        from gpucourse.remote.agent.slurm import watch

        return watch.describe_state(job)
    from gpucourse.remote.agent import supervise

    supervise.settle(job)
    ranks = {str(rank): end for rank, end in job.ranks().items()} if with_ranks else {}
    return {"state": job.state(), "exit": job.read("exit.json") or None, "ranks": ranks}


def _describe_states(runs: list[Job]) -> dict[str, dict[str, Any]]:
    """Return the states of these runs, without their ranks. Once Slurm does not answer, its other runs are left out: each would
    wait for it as long."""
    states: dict[str, dict[str, Any]] = {}
    is_silent = False
    for job in runs:
        if _is_scheduled(job) and is_silent:
            continue
        try:
            states[job.run_id] = _describe_state(job, with_ranks=False)
        except JobRefused:
            is_silent = True
        is_silent = is_silent or "silent" in job.read("seen.json")
    return states


def _request_end(job: Job, grace_s: float) -> list[str]:
    """Request the end of a run, without waiting; return the jobs that Slurm was asked to end."""
    if _is_scheduled(job):
        from gpucourse.remote.agent.slurm import watch

        return watch.request_end(job)
    from gpucourse.remote.agent import supervise

    supervise.request_end(job, grace_s)
    return []


def _finish_cancel(job: Job, cancelled: list[str], grace_s: float) -> dict[str, Any]:
    """Wait for the end that was requested, and prove it. `cancelled`: what `_request_end` returned."""
    if _is_scheduled(job):
        from gpucourse.remote.agent.slurm import watch

        return watch.cancel(job, cancelled)
    from gpucourse.remote.agent import supervise

    return supervise.cancel(job, grace_s)


def _cancel_all(runs: list[Job], grace_s: float) -> dict[str, dict[str, Any]]:
    """End these runs: request the end of all before waiting for any. Those that Slurm does not end are left out, and once it
    does not answer all of its others: each would wait for it as long."""
    cancelled: dict[str, list[str]] = {}
    results: dict[str, dict[str, Any]] = {}
    try:
        for job in sorted(runs, key=_is_scheduled):
            cancelled[job.run_id] = _request_end(job, grace_s)
    except JobRefused:
        runs = [job for job in runs if job.run_id in cancelled]
    try:
        for job in sorted(runs, key=_is_scheduled):
            results[job.run_id] = _finish_cancel(job, cancelled[job.run_id], grace_s)
    except JobRefused:
        return results
    return results


def _is_scheduled(job: Job) -> bool:
    return job.has("slurm.json")


def _parse(text: str) -> dict[str, Any]:
    import json

    request: dict[str, Any] = json.loads(text)
    return request


_ANSWERS: dict[str, Callable[[list[str]], dict[str, Any] | None]] = {
    "probe": _probe,
    "session": _describe_session,
    "cluster": _describe_cluster,
    "later": _describe_later_jobs,
    "follow": lambda words: _follow(Job(words[0]), words[1:]),
    "pack": _pack,
    "look": _look,
    "state": lambda words: _describe_state(Job(words[0])),
    "states": lambda words: {"runs": _describe_states([Job(run_id) for run_id in words])},
    "cancel": _cancel,
    "cancels": lambda words: {"runs": _cancel_all([Job(run_id) for run_id in words[1:]], float(words[0]))},
}
"""The function that answers each verb but `start`, given the words after it. Each imports its own modules: the other verbs need
not load them."""


def agent_folder() -> str:
    """Return the folder that this program was started from: the first entry of the path, since it runs isolated."""
    return os.path.abspath(sys.path[0])
