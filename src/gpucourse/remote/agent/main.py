"""The verbs. Each reads its arguments and standard input and answers JSON (or, for `follow` and `pack`, a stream) on standard
output. An error is answered as {"error": ..., "kind": ...} with code 3."""

from __future__ import annotations

import errno
import os
import sys

from gpucourse.remote.agent.job import Job, JobRefused, mapping

STREAMS = ("follow", "pack")


def main(argv: list[str], agent: str) -> int:
    """Run one verb; return the process's exit code. `agent` is the folder that this program was started from."""
    verb, rest = argv[0], argv[1:]
    if verb == "rank":
        from gpucourse.remote.agent import rank  # which starts its script before it imports `json`

        return rank.run(Job(rest[0]), rest[1:])
    import json

    try:
        answer = _do(verb, rest, agent)
    except JobRefused as error:
        answer = {"error": error.what, "kind": error.kind}
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


def _do(verb: str, rest: list[str], agent: str) -> dict[str, object] | None:
    if verb == "probe":
        from gpucourse.remote.agent import machine

        return machine.probe(_parse(rest[0]))
    if verb == "start":
        spec = _input()
        if "slurm" in spec:
            from gpucourse.remote.agent import slurm_submit

            return slurm_submit.submit(spec)
        from gpucourse.remote.agent import start

        return start.start(spec, agent)
    if verb == "session":
        from gpucourse.remote.agent import slurm_submit

        return slurm_submit.session(Job(rest[0]))
    if verb == "cluster":
        from gpucourse.remote.agent import slurm_jobs

        return slurm_jobs.cluster(_input())
    if verb == "follow":
        if _is_scheduled(rest[0]):
            from gpucourse.remote.agent import slurm_follow

            slurm_follow.follow(Job(rest[0]), {name: int(offset) for name, offset in _pairs(rest[1:])}, sys.stdout.fileno())
            return None
        from gpucourse.remote.agent import follow

        follow.follow(Job(rest[0]), {int(stream): int(offset) for stream, offset in _pairs(rest[1:])}, sys.stdout.fileno())
        return None
    if verb == "pack":
        from gpucourse.remote.agent import pack

        pack.pack(Job(rest[0]), _input(), sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return None
    if verb == "look":
        from gpucourse.remote.agent import look

        return {"ranks": look.list_activities(Job(rest[0]))}
    if verb == "later":
        from gpucourse.remote.agent import slurm_later

        return slurm_later.tell_later_jobs(Job(rest[0]))
    if verb == "states":
        return {"runs": _tell_states(rest)}
    if verb == "cancels":
        return {"runs": _cancel_all(float(rest[0]), rest[1:])}
    if verb == "cancel":
        if _is_scheduled(rest[0]):
            return _cancel_in_slurm(Job(rest[0]), _ask_slurm_for_end(Job(rest[0])))
        from gpucourse.remote.agent import supervise

        return supervise.cancel(Job(rest[0]), float(rest[1]))
    if verb == "state":
        return _tell_state(Job(rest[0]))
    raise JobRefused(f"no such verb: {verb}")


def _tell_state(job: Job, *, with_ranks: bool = True) -> dict[str, object]:
    if _is_scheduled(job.run_id):
        from gpucourse.remote.agent import slurm_submit, slurm_watch

        slurm_submit.recover(job)
        slurm_watch.look(job)
        ended = job.read("exit.json")
        told = ended and {name: value for name, value in ended.items() if name not in ("jobs", "ranks", "later")}
        return {"state": slurm_watch.state(job), "exit": told, "ranks": {}}
    from gpucourse.remote.agent import supervise

    supervise.settle(job)
    ranks = {str(rank): how for rank, how in job.ranks().items()} if with_ranks else {}
    return {"state": job.state(), "exit": job.read("exit.json"), "ranks": ranks}


def _tell_states(run_ids: list[str]) -> dict[str, dict[str, object]]:
    """Return the states of these runs, without their ranks. Once Slurm does not answer, its other runs are left out: each would
    wait for it as long."""
    told: dict[str, dict[str, object]] = {}
    is_silent = False
    for job in map(Job, run_ids):
        scheduled = _is_scheduled(job.run_id)
        if scheduled and is_silent:
            continue
        try:
            told[job.run_id] = _tell_state(job, with_ranks=False)
        except JobRefused:
            is_silent = True
        is_silent = is_silent or (scheduled and bool((job.read("seen.json") or {}).get("silent")))
    return told


def _cancel_all(grace_s: float, run_ids: list[str]) -> dict[str, dict[str, object]]:
    """End these runs: request the end of all before waiting for any. Those that Slurm does not end are left out."""
    from gpucourse.remote.agent import supervise

    asked: dict[str, list[str]] = {}
    scheduled = [run_id for run_id in run_ids if _is_scheduled(run_id)]
    for run_id in set(run_ids) - set(scheduled):
        supervise.request_end(Job(run_id), grace_s)
    try:
        for run_id in scheduled:
            asked[run_id] = _ask_slurm_for_end(Job(run_id))
    except JobRefused:  # the others would wait for it as long
        scheduled = list(asked)
    told = {run_id: supervise.cancel(Job(run_id), grace_s) for run_id in run_ids if not _is_scheduled(run_id)}
    try:
        for run_id in scheduled:
            told[run_id] = _cancel_in_slurm(Job(run_id), asked[run_id])
    except JobRefused:
        return told
    return told


def _ask_slurm_for_end(job: Job) -> list[str]:
    from gpucourse.remote.agent import slurm_submit, slurm_watch

    slurm_submit.recover(job)
    return slurm_watch.request_end(job)


def _cancel_in_slurm(job: Job, left: list[str]) -> dict[str, object]:
    from gpucourse.remote.agent import slurm_watch

    return slurm_watch.cancel(job, left)


def _is_scheduled(run_id: str) -> bool:
    return os.path.lexists(Job(run_id).path("slurm.json"))


def _input() -> dict[str, object]:
    return _parse(sys.stdin.buffer.read().decode())


def _parse(text: str) -> dict[str, object]:
    import json

    return mapping(json.loads(text))


def _pairs(words: list[str]) -> list[list[str]]:
    """Return names and numbers; a lone `-` means that they come on standard input, one a line."""
    return [word.rsplit("=", 1) for word in (sys.stdin.read().splitlines() if words == ["-"] else words)]


def agent_folder() -> str:
    """Return the folder that this program was started from: the first entry of the path, since it runs isolated."""
    return os.path.abspath(sys.path[0])
