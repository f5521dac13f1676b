"""Add lines to a run's logs: a line in plain words for every change of a job, and the content of the job's error file."""

from __future__ import annotations

import glob
import os
import re
import stat
import time
from collections import Counter

from gpucourse.remote.agent.job import Job
from gpucourse.remote.agent.slurm import commands, words
from gpucourse.remote.agent.slurm.jobs import read_request
from gpucourse.remote.agent.slurm.words import Row

MAX_LINES = 32
"""If a run has more jobs than this, some jobs get no lines of their own in the log."""

MAX_ERROR_BYTES = 1 << 20
"""The maximum number of bytes from the end of an error file that are added to a log. The file itself is collected unchanged."""

_INDENT = " " * 9  # aligns further lines with the text after the time
_LOG_END_BYTES = 64 << 10
_PREEMPTED = re.compile(rb"CANCELLED AT (\S+) DUE TO PREEMPTION")
_ENDS = {
    "TIMEOUT": "it reached its time limit, and Slurm ended it",
    "PREEMPTED": "a job of higher priority needed its nodes, and Slurm ended it",
    "OUT_OF_MEMORY": "it used more memory than it had asked for, and Slurm ended it",
    "NODE_FAIL": "a node failed while the job ran",
    "DEADLINE": "it could not end before its deadline, and Slurm ended it",
}
_PLACEHOLDER = re.compile(r"%(\d*)([%a-zA-Z])")


def add_line(job: Job, text: str) -> None:
    """Append one or more lines to the launcher's log."""
    with open(job.path("logs", "launcher.log"), "ab") as log:
        log.write((text.rstrip("\n") + "\n").encode())


def note(job: Job, first: str, *details: str) -> None:
    """Add a sentence with the current time, and more lines below it. On a shared cluster, the time includes its zone."""
    now = time.strftime("%H:%M:%S %Z" if read_request(job).get("is_shared") else "%H:%M:%S")
    add_line(job, "\n".join([f"{now} {first}", *(_INDENT + line for line in details)]))


def note_changes(job: Job, old_rows: list[Row], new_rows: list[Row]) -> None:
    """Write a line for each job that changed. If there are many jobs, write only a line for each failed job, and the number of
    jobs in each state."""
    pairs = list(zip(old_rows, new_rows))  # `strict` is not in Python 3.7
    if len(new_rows) <= MAX_LINES:
        for old, new in pairs:
            _note_change(job, old, new)
        return
    for old, new in pairs:
        if old["state"] != new["state"] != "COMPLETED" and words.is_over(new):
            _note_change(job, old, new)
    counts = Counter(row["state"] for row in new_rows)
    if counts != Counter(row["state"] for row in old_rows):
        note(job, f"of {len(new_rows)} jobs: {', '.join(f'{count} {state}' for state, count in counts.most_common())}")


def note_silence(job: Job, message: str) -> None:
    """Write that Slurm does not answer, with Slurm's own words and the command to type."""
    advice = "Running jobs continue; gpucourse keeps asking. If your own lab's controller is down, this starts it again: "
    note(job, f"Slurm does not answer: {' '.join(message.split())[:300]}", f"{advice}gpucourse deploy {_module(job)}")


def warn_of_unshared_folder(job: Job, rows: list[Row]) -> None:
    """Write that a machine may not share this folder if its job ran and failed, but none of the job's output arrived here."""
    jobs_with_log = {name.partition("-")[0] for name in os.listdir(job.path("logs"))}
    silent_failures = (row for row in rows if row["state"] == "FAILED" and row.get("node") and row["job"] not in jobs_with_log)
    row = next(silent_failures, None)
    if row is not None and not read_request(job).get("session"):
        note(
            job,
            f"job {row['job']} ran on {row['node']}, but nothing that it wrote is in {job.folder}. Do all machines share that "
            "folder? If not, name one that they share: slurm: {folder: $SCRATCH} in gpucourse.yaml, then "
            f"gpucourse deploy {_module(job)} --target slurm",
        )


def _note_change(job: Job, old: Row, new: Row) -> None:
    """Write a line if a job's state, or its reason for waiting, has changed."""
    old_state, new_state, name = old["state"], new["state"], f"job {new['job']}"
    reason = new.get("reason") or ""
    began_unseen = old_state == "SUBMITTED" and reason == "BeginTime" and _has_log(job, new)
    if words.phase(new_state) == words.WAITING and (words.phase(old_state) == words.RUNNING or began_unseen):
        _note_requeue(job, old, new)
        return
    if old_state == new_state == "RUNNING" and old.get("started") and new.get("started") != old["started"]:
        at = new["started"].rpartition("T")[2]
        cause = "Slurm's controller had not stored its first start when it ended"
        note(job, f"{name} was restarted at {at}, from the beginning: {cause}")
    if (old_state, old.get("reason") or "") == (new_state, reason) or (new_state == "PENDING" and not reason):
        return
    if words.phase(new_state) == words.WAITING:
        _note_wait(job, new, reason)
    elif words.phase(new_state) == words.UNKNOWN:
        note(job, f"{name} is {new_state}, a state that this program does not know; gpucourse keeps asking")
    elif new_state == "FORGOTTEN":
        lead = f"It was {old_state} when it was last seen. " if old_state != "SUBMITTED" else ""
        note(
            job,
            f"{name}: Slurm has forgotten it, and it left no note, so how it ended is unknown",
            f"{lead}If slurmctld was killed in its first seconds, or the whole cluster was restarted, then the job is lost and "
            "must be run again",
        )
    elif new_state in _ENDS:
        note(job, f"{name} is {new_state}: {_ENDS[new_state]}")
    elif reason == words.SIGNALLED:
        cause = "its time limit, scancel or preemption; Slurm has forgotten the job, so it is unknown which"
        note(job, f"{name} is {new_state}: a signal ended it ({cause})")
    else:
        note(job, f"{name} is {new_state}{' on ' + new['node'] if new.get('node') else ''}")


def _note_requeue(job: Job, old: Row, new: Row) -> None:
    node = old.get("ran_on") or old.get("node") or _find_log_node(job, new)
    down = _describe_down_nodes(node) if node else ""
    node = node or "its node"
    cause = f"because its node failed ({down})"
    if _is_preempted(job, old):
        cause = f"because a job of higher priority needed {node} (preemption)"
    elif not down:  # the node is back already, or it was not the cause
        cause = f"because {node} or the controller failed, a job of higher priority came, or a person typed scontrol requeue"
    skip = _write_head_command(job, f"scontrol update JobId={new['job']} StartTime=now")
    lines = [f"Slurm makes it wait two minutes first (PENDING, BeginTime). To skip this wait: {skip}"]
    if down:
        lines.append(
            "Output that still appears there is from the first start, whose processes end when the node is back. "
            f"In a lab of your own, this brings it back: gpucourse deploy {_module(job)}"
        )
    note(job, f"job {new['job']} was put back into the queue, {cause}: it will start again from the beginning.", *lines)


def _note_wait(job: Job, row: Row, reason: str) -> None:
    meaning = words.explain_reason(reason)
    lines: list[str] = []
    if reason == "Priority":
        lines += _describe_place(job, row["job"])
    if row.get("expected"):
        lines.append(f"Slurm expects it to start at {row['expected'].replace('T', ' ')} by the cluster's clock")
    if words.never_starts(reason):
        lines.append(f"It does not start by itself: gpucourse cancel {job.run_id},")
        lines.append("then request other resources")
    if reason == "JobHeldAdmin" and read_request(job).get("is_shared"):
        lines.append(f"Only the administrator can release it: ask why, or gpucourse cancel {job.run_id}")
    elif reason in words.HELD:
        lines.append("To release it: " + _write_head_command(job, f"scontrol release {row['job']}"))
    if reason == words.FAILED_START:
        lines.append(f"gpucourse status says why; in a lab of your own, gpucourse deploy {_module(job)} repairs it")
    if reason == "BeginTime":
        lines.append(
            "To start it immediately: " + _write_head_command(job, f"scontrol update JobId={row['job']} StartTime=now")
        )
    note(job, f"job {row['job']} is {row['state']} ({reason}){': ' + meaning if meaning else ''}", *lines)


def _describe_place(job: Job, number: str) -> list[str]:
    """Return a line with the number of waiting jobs of the same partition that have a higher priority.

    Return no line if no such job is known, for example because Slurm does not show the jobs of other people.
    """
    request = read_request(job)
    queue = request.get("partition") or ""
    if not (queue and request.get("is_shared")):
        return []
    priorities = list_priorities(queue)
    ahead = count_ahead(priorities, number)
    return [f"{ahead} of {len(priorities)} jobs that wait in {queue} are ahead of it"] if ahead else []


def list_priorities(queue: str) -> dict[str, int]:
    """Return the priority of each job or array that waits in a partition, by its number. The result is empty if Slurm does not
    answer."""
    try:
        answer = commands.ask("squeue", "-h", "-a", "-t", "PD", "-p", queue, "-o", "%i|%Q")
    except commands.Controller:
        return {}
    rows = [line.strip().split("|") for line in answer.splitlines()]
    return {row[0].partition("_")[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit()}


def count_ahead(priorities: dict[str, int], number: str) -> int:
    """Return how many of these jobs have a higher priority than a job or a task of an array. Return 0 if that job is not among
    them.
    """
    own_priority = priorities.get(number.partition("_")[0], 1 << 62)
    return sum(priority > own_priority for priority in priorities.values())


def _has_log(job: Job, row: Row) -> bool:
    """Return whether the job has written a log, which means that it has begun before."""
    return any(name.startswith(f"{row['job']}-") for name in os.listdir(job.path("logs")))


def _find_log_node(job: Job, row: Row) -> str:
    """Return the node whose name is in the name of the job's log, or an empty string if there is no log."""
    names = (name for name in os.listdir(job.path("logs")) if name.startswith(f"{row['job']}-") and name.endswith(".out"))
    return next(names, "")[len(row["job"]) + 1 : -len(".out")]


def _is_preempted(job: Job, row: Row) -> bool:
    """Return whether a log of the job shows that Slurm ended it for a job of higher priority, since its latest start."""
    for name in os.listdir(job.path("logs")):
        if name.startswith(f"{row['job']}-"):
            with open(job.path("logs", name), "rb") as log:
                log.seek(max(0, os.fstat(log.fileno()).st_size - _LOG_END_BYTES))
                moments = _PREEMPTED.findall(log.read())
            if any(moment.decode("ascii", "replace") >= (row.get("started") or "") for moment in moments):
                return True
    return False


def _describe_down_nodes(nodes: str) -> str:
    """Return which of these nodes accept no jobs, in Slurm's words.

    Return an empty string if all of them accept jobs, or if Slurm does not answer.
    """
    try:
        rows = commands.list_nodes("-n", nodes)
    except commands.Controller:
        return ""
    down_nodes = {row["name"]: row for row in rows if not words.usable(row["state"])}
    return "; ".join(
        f"{name} is {row['state']}{': ' + row['reason'] if row['reason'] else ''}" for name, row in sorted(down_nodes.items())
    )


def _write_head_command(job: Job, command: str) -> str:
    return f"gpucourse ssh {_module(job)} -- {command}"


def _module(job: Job) -> str:
    return read_request(job).get("module") or "2"


def add_error_files(job: Job, rows: list[Row]) -> None:
    """Add every job's error file to the job's log, but only once. If an error file is missing or is not a regular file, add a
    line that says so."""
    patterns = {file["name"]: file.get("error") for file in read_request(job)["files"]}
    first_logs = {name.partition("-")[0]: name for name in sorted(os.listdir(job.path("logs")), reverse=True)}
    for row in rows:
        number, pattern = row["job"], patterns.get(row["file"])
        if not pattern or number not in first_logs or job.has(f"errors-{number}"):
            continue
        job.write(f"errors-{number}", {})
        log = job.path("logs", first_logs[number])
        paths = sorted(glob.glob(os.path.join(glob.escape(job.path("work")), make_glob(pattern, number))))
        if not paths:
            _append(log, f"its errors went to {pattern}, which is not on this node")
        for path in paths:
            _add_error_file(path, log)


def make_glob(pattern: str, number: str) -> str:
    """Return a glob for the file names that sbatch's pattern may mean.

    `number`: the job's number, such as 12, or 12_3 for a task of an array. A `*` replaces every unknown part.
    """
    array, _, task = number.partition("_")
    values = {"A": array, "a": task} if task else {"A": array, "j": array}
    result, place = "", 0
    for match in _PLACEHOLDER.finditer(pattern):
        result += glob.escape(pattern[place : match.start()])
        width, letter = match.groups()
        result += "%" if letter == "%" else values[letter].zfill(int(width or 0)) if letter in values else "*"
        place = match.end()
    return result + glob.escape(pattern[place:])


def make_error_folder(job: Job, pattern: str) -> None:
    """Make the folder of an error file in the work folder. Without this folder, Slurm ends the job immediately."""
    parts = pattern.split("/")[:-1]
    fixed = [part for place, part in enumerate(parts) if "%" not in "".join(parts[: place + 1])]
    if fixed and not os.path.isabs(pattern) and ".." not in parts:
        os.makedirs(job.path("work", *fixed), 0o700, exist_ok=True)


def _add_error_file(path: str, log: str) -> None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        _append(log, f"its errors went to {path}, which cannot be read: {error.strerror}")
        return
    try:
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode):
            _append(log, f"its errors went to {path}, which is not a regular file")
            return
        if not info.st_size or os.path.samestat(info, os.stat(log)):
            return
        text = os.pread(handle, MAX_ERROR_BYTES, max(0, info.st_size - MAX_ERROR_BYTES))
    finally:
        os.close(handle)
    _append(log, f"{os.path.basename(path)}, the job's error file:", text)


def _append(log: str, line: str, text: bytes = b"") -> None:
    """Add one of our own lines to the log, and text below it. A line break comes first, because the log's last line may lack
    one.
    """
    with open(log, "ab") as target:
        target.write(f"\n{line}\n".encode("utf-8", "surrogateescape"))
        target.write(text if not text or text.endswith(b"\n") else text + b"\n")
