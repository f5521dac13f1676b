"""The lines about jobs in a run's log: every change of a state or a reason, in plain words, and what to type next."""

from __future__ import annotations

import os
import re
import time
from collections import Counter

from gpucourse.remote.agent import slurm_jobs
from gpucourse.remote.agent import slurm_words as say
from gpucourse.remote.agent.job import Job, mapping

MOST_LINES = 32
"""If there are more jobs than that, not each has its own lines."""

_INDENT = " " * 9  # below the words, beside the clock

_LOG_END_BYTES = 64 << 10
_PREEMPTED = re.compile(rb"CANCELLED AT (\S+) DUE TO PREEMPTION")

Row = dict[str, object]


def log_changes(job: Job, before: list[Row], after: list[Row]) -> None:
    """Write what changed: a line for each job; if they are many, a line for each that failed, and how many are in which
    state."""
    pairs = list(zip(before, after))  # `strict` is not in Python 3.7
    if len(after) <= MOST_LINES:
        for old, new in pairs:
            log_change(job, old, new)
        return
    for old, new in pairs:
        if old["state"] != new["state"] and say.phase(str(new["state"])) == say.ENDED and new["state"] != "COMPLETED":
            log_change(job, old, new)
    counts = Counter(str(row["state"]) for row in after)
    if counts != Counter(str(row["state"]) for row in before):
        _note(job, "of {} jobs: {}".format(len(after), ", ".join(f"{count} {state}" for state, count in counts.most_common())))


def log_change(job: Job, old: Row, new: Row) -> None:
    """Write a line for each change of a job's state, or of the reason why it waits."""
    was, now = str(old["state"]), str(new["state"])
    reason, last = str(new.get("reason") or ""), str(old.get("reason") or "")
    if say.phase(was) == say.RUNNING and say.phase(now) == say.WAITING:
        _note(job, *_describe_requeue(job, old, new))
        return
    if was == now == "RUNNING" and old.get("started") and new.get("started") != old["started"]:
        _note(job, _describe_new_start(new))
    if (was, last) == (now, reason) or (now == "PENDING" and reason in ("", "None")):
        return
    if say.phase(now) == say.WAITING:
        _note(job, _describe_wait(job, new, reason))
    elif say.phase(now) == say.UNKNOWN:
        _note(job, f"{_name(new)} is {now}, a state that this program does not know; gpucourse keeps asking")
    elif now == "FORGOTTEN":
        _note(job, *_describe_forgotten(new, was))
    elif now == "TIMEOUT":
        _note(job, f"{_name(new)} is TIMEOUT: it reached its time limit, and Slurm ended it")
    elif now == "PREEMPTED":
        _note(job, f"{_name(new)} is PREEMPTED: a job of higher priority needed its nodes, and Slurm ended it")
    elif reason == say.SIGNALLED:
        why = "its time limit, scancel or preemption; Slurm does not know the job any more, so nobody can say which"
        _note(job, f"{_name(new)} is {now}: a signal ended it ({why})")
    else:
        _note(job, "{} is {}{}".format(_name(new), now, " on {}".format(new["node"]) if new.get("node") else ""))


def log_silence(job: Job, words: str) -> None:
    """Write that Slurm does not answer, in its own words, and what to type."""
    said = " ".join(words.split())[:300]
    again = "Running jobs continue; gpucourse keeps asking. If your own lab's controller is down, this starts it again: "
    _note(job, f"Slurm does not answer: {said}", f"{again}gpucourse deploy {_module(job)}")


def log_end_of_silence(job: Job) -> None:
    """Write that Slurm answers again."""
    _note(job, "Slurm answers again")


def log_cancel(job: Job, numbers: list[str]) -> None:
    """Write which command was typed for the person."""
    _note(job, "scancel {}".format(" ".join(numbers)))


def warn_of_unshared_folder(job: Job, rows: list[Row], session: bool) -> None:
    """Write, if a job ran and failed and none of its output arrived here, that it could not write here."""
    jobs_with_log = {name.partition("-")[0] for name in os.listdir(job.path("logs"))}
    for row in rows:
        if row["state"] == "FAILED" and row.get("node") and str(row["job"]) not in jobs_with_log and not session:
            where = f"{_name(row)} ran on {row['node']}, and nothing that it wrote is in {job.folder}. "
            mend = "Do all machines share that folder? If not, name one that they do: shared_folder in gpucourse.yaml, "
            _note(job, where + mend + f"then gpucourse deploy {_module(job)} --target hosts")
            return


def _describe_requeue(job: Job, old: Row, new: Row) -> tuple[str, ...]:
    node = str(old.get("ran_on") or old.get("node") or "its node")
    down = _down(node)
    why = f"because its node failed ({down})"
    if _is_preempted(job, old):
        why = f"because a job of higher priority needed {node} (preemption)"
    elif not down:  # it is back already, or it was not the node
        why = f"because {node} or the controller failed, a job of higher priority came, or somebody typed scontrol requeue"
    lines = [
        f"{_name(new)} was put back into the queue, {why}: it will start again from the beginning.",
        "Slurm lets it wait two minutes first (PENDING, BeginTime). To skip them: "
        + _on_the_head(job, "scontrol update JobId={} StartTime=now".format(new["job"])),
    ]
    if down:
        lines.append(
            "Output that still appears there is from the first start, whose processes end when the node is back. "
            f"In a lab of your own, this brings it back: gpucourse deploy {_module(job)}"
        )
    return tuple(lines)


def _is_preempted(job: Job, row: Row) -> bool:
    """Return whether a log of the job shows that Slurm ended this start of it for a job of higher priority."""
    started = str(row.get("started") or "")
    for name in os.listdir(job.path("logs")):
        if name.startswith("{}-".format(row["job"])):
            with open(job.path("logs", name), "rb") as log:
                log.seek(max(0, os.fstat(log.fileno()).st_size - _LOG_END_BYTES))
                if any(moment.decode("ascii", "replace") >= started for moment in _PREEMPTED.findall(log.read())):
                    return True
    return False


def _down(nodes: str) -> str:
    """Return which of these nodes accept no jobs, in Slurm's words; empty if all do, or if Slurm does not answer."""
    try:
        listed = say.nodes(slurm_jobs.ask("sinfo", "-h", "-a", "-N", "-n", nodes, "-o", say.NODES))
    except slurm_jobs.Controller:
        return ""
    bad = {str(node["node"]): node for node in listed if not say.usable(str(node["state"]))}
    return "; ".join(
        "{} is {}{}".format(name, node["state"], ": {}".format(node["reason"]) if node["reason"] else "")
        for name, node in sorted(bad.items())
    )


def _describe_new_start(row: Row) -> str:
    words = "{} was restarted at {}, from the beginning: Slurm's controller had not stored its first start when it ended"
    return words.format(_name(row), str(row["started"]).rpartition("T")[2])


def _describe_forgotten(row: Row, was: str) -> tuple[str, ...]:
    lines = [f"{_name(row)}: Slurm does not know it any more, and it left no note, so how it ended is unknown"]
    seen = f"It was {was} when it was last seen. " if was != "SUBMITTED" else ""
    lines.append(
        f"{seen}If slurmctld was killed in its first seconds, or the whole cluster was restarted, then "
        "the job is lost and must be run again"
    )
    return tuple(lines)


def _describe_wait(job: Job, row: Row, reason: str) -> str:
    words = say.explain_reason(reason)
    line = "{} is {} ({}){}".format(_name(row), row["state"], reason, ": " + words if words else "")
    if reason in say.HELD:
        line += ". To release it: " + _on_the_head(job, "scontrol release {}".format(row["job"]))
    if reason == say.FAILED_START:
        line += f"; gpucourse status says why, and in a lab of your own gpucourse deploy {_module(job)} repairs it"
    if reason == "BeginTime":
        line += ". To start it at once: " + _on_the_head(job, "scontrol update JobId={} StartTime=now".format(row["job"]))
    return line


def _note(job: Job, first: str, *more: str) -> None:
    slurm_jobs.note(job, "\n".join([f"{time.strftime('%H:%M:%S')} {first}", *(_INDENT + line for line in more)]))


def _name(row: Row) -> str:
    return "job {}".format(row["job"])


def _on_the_head(job: Job, command: str) -> str:
    return f"gpucourse ssh {_module(job)} -- {command}"


def _module(job: Job) -> str:
    asked = mapping((job.read("slurm.json") or {}).get("slurm") or {})
    return str(asked.get("module") or "2")
