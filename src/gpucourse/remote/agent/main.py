"""The verbs. Each reads what it needs from its arguments and standard input and answers JSON (or, to `follow` and `pack`, a
stream) on standard output. What cannot be done is answered as {"error": ..., "kind": ...} with code 3."""

from __future__ import annotations

import errno
import json
import os
import sys

from gpucourse.remote.agent.job import Job, JobRefused, mapping

STREAMS = ("follow", "pack")


def main(argv: list[str], agent: str) -> int:
    """Run one verb; the process's exit code. `agent` is the folder that this program was started from."""
    verb, rest = argv[0], argv[1:]
    if verb == "rank":
        from gpucourse.remote.agent import rank

        return rank.run(Job(rest[0]), rest[1:])
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
    # Where standard output is a stream of another kind, the error goes beside it.
    voice = sys.stderr if "error" in answer and verb in STREAMS else sys.stdout
    voice.write(json.dumps(answer) + "\n")
    voice.flush()
    return 3 if "error" in answer else 0


def _do(verb: str, rest: list[str], agent: str) -> dict[str, object] | None:
    if verb == "probe":
        from gpucourse.remote.agent import machine

        return machine.probe(mapping(json.loads(rest[0])))
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
        return {"runs": {run_id: _tell_state(Job(run_id)) for run_id in rest}}
    if verb in ("state", "cancel"):
        if _is_scheduled(rest[0]):
            return _of_slurm(verb, Job(rest[0]))
        from gpucourse.remote.agent import supervise

        job = Job(rest[0])
        if verb == "cancel":
            return supervise.cancel(job, float(rest[1]))
        return _tell_state(job)
    raise JobRefused(f"no such verb: {verb}")


def _tell_state(job: Job) -> dict[str, object]:
    from gpucourse.remote.agent import supervise

    supervise.settle(job)
    return {"state": job.state(), "exit": job.read("exit.json"), "ranks": {str(r): how for r, how in job.ranks().items()}}


def _is_scheduled(run_id: str) -> bool:
    return os.path.lexists(Job(run_id).path("slurm.json"))


def _of_slurm(verb: str, job: Job) -> dict[str, object]:
    from gpucourse.remote.agent import slurm_submit, slurm_watch

    slurm_submit.recover(job)
    if verb == "cancel":
        return slurm_watch.cancel(job)
    slurm_watch.look(job)
    ended = job.read("exit.json")
    told = ended and {name: value for name, value in ended.items() if name not in ("jobs", "ranks", "later")}
    return {"state": slurm_watch.state(job), "exit": told, "ranks": {}}


def _input() -> dict[str, object]:
    return mapping(json.loads(sys.stdin.buffer.read().decode()))


def _pairs(words: list[str]) -> list[list[str]]:
    """Names and numbers; a lone `-` means that they come on standard input, one a line."""
    return [word.rsplit("=", 1) for word in (sys.stdin.read().splitlines() if words == ["-"] else words)]


def agent_folder() -> str:
    """The folder that this program was started from: the first entry of the path, since it runs isolated."""
    return os.path.abspath(sys.path[0])
