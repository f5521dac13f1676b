"""Watch a run under Slurm: ask one question at a time, report every change once, and record the end."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress

from gpucourse.remote.agent import scratch
from gpucourse.remote.agent.job import Job
from gpucourse.remote.agent.slurm import commands, jobs, log, words
from gpucourse.remote.agent.slurm.words import Row
from gpucourse.remote.agent.supervise import finish

_PROOF_S = 60.0
_SAME_MOMENT_S = 1.0
_KILLED, _TERMINATED = 137, 143
_CODES = {"timed_out": 124, "lost": _KILLED, "cancelled": _TERMINATED}
_GRAVEST_FIRST = ("timed_out", "lost", "exited", "cancelled")
_RANK_NOTE = re.compile(
    r"(\d{1,3}(?= \S+ \d)|-(?= \S+ -)) (\S+) (\d+(?:\.\d+)?|-)\n"
)  # without its line break, a note is not complete


def look(job: Job) -> list[Row]:
    """Return the current rows. When the last job has ended, record how the run ended.

    If Slurm does not answer, return the rows of the last look. The log reports once that Slurm is silent, and once that it
    answers again.
    """
    with job.holding(jobs.WATCH):
        if job.has("done"):
            final_rows: list[Row] = job.read("exit.json").get("jobs", [])
            return final_rows
        last_look = job.read("seen.json")
        old_rows: list[Row] = last_look.get("jobs") or jobs.make_rows(job)
        try:
            new_rows = _query_rows(job, old_rows)
            has_ended = bool(new_rows) and all(map(words.is_over, new_rows))
            later_jobs = jobs.list_later_jobs(job) if has_ended else []
        except commands.Controller as error:
            if not last_look.get("silent"):
                log.note_silence(job, error.message)
                job.write("seen.json", dict(last_look, jobs=old_rows, silent=error.message))
            return old_rows
        if last_look.get("silent"):
            log.note(job, "Slurm answers again")
        log.note_changes(job, old_rows, new_rows)
        if has_ended:
            new_rows = _add_details(new_rows, with_usage=bool(jobs.read_request(job).get("is_shared")))
            log.add_error_files(job, new_rows)
            log.warn_of_unshared_folder(job, new_rows)
            if not later_jobs:
                scratch.remove(job)
            finish(job, dict(_summarize_end(job, new_rows), later=later_jobs))
        job.write("seen.json", {"jobs": new_rows})
        return new_rows


def state(job: Job) -> str:
    """Return `absent`, `preparing`, `running` or `ended`, as for every run."""
    if job.has("done"):
        return "ended"
    if job.is_supervised():
        return "preparing"
    return "running" if jobs.list_submitted_jobs(job) else "absent"


def describe_state(job: Job) -> Row:
    """Take a look at the run, and return its state and, if it has ended, how it ended."""
    jobs.recover(job)
    rows = look(job)
    end = {name: value for name, value in job.read("exit.json").items() if name not in ("jobs", "ranks", "later")}
    return {"state": state(job), "exit": end or None, "jobs": [] if end else _add_positions(job, rows)}


def _add_positions(job: Job, rows: list[Row]) -> list[Row]:
    """Return the rows. Each row that waits for its priority also says how many jobs are ahead of it in the queue. Slurm is
    asked once for each partition, for all runs in it."""
    request = jobs.read_request(job)
    queue = request.get("partition") or ""
    if not (queue and request.get("is_shared") and any(row.get("reason") == "Priority" for row in rows)):
        return rows
    priorities_by_queue: Row = _asked.setdefault("queues", {})
    if queue not in priorities_by_queue:
        priorities_by_queue[queue] = log.list_priorities(queue)
    priorities = priorities_by_queue[queue]
    return [
        dict(row, ahead=log.count_ahead(priorities, row["job"])) if row.get("reason") == "Priority" else row for row in rows
    ]


def describe_later_jobs(job: Job) -> Row:
    """Return the current state of the later jobs. When the last of them has ended, remove the folder for temporary files."""
    later_jobs = jobs.list_later_jobs(job)
    if job.has("done") and not later_jobs:
        scratch.remove(job)
    return {"jobs": later_jobs}


def request_end(job: Job) -> list[str]:
    """Cancel the run's jobs with scancel, but do not wait for their end. Return the jobs that had not ended."""
    jobs.recover(job)
    if not job.has("cancelled"):
        job.write("cancelled", {})
    remaining = [row["job"] for row in look(job) if not words.is_over(row)]
    silent = job.read("seen.json").get("silent")
    if remaining and silent:  # scancel would wait for the controller as long as squeue just did
        raise commands.Controller(silent)
    if remaining:
        _scancel(job, remaining)
    return remaining


def cancel(job: Job, cancelled: list[str], proof_s: float = _PROOF_S) -> str:
    """Wait until every job in `cancelled` has ended, then end the jobs that these submitted. Return the state of the run.

    Raises Controller if a job does not end.
    """
    deadline = time.monotonic() + proof_s
    rows: list[Row] = []
    for _ in _nap_until(deadline):
        rows = look(job) if cancelled else []
        if not cancelled or job.has("done"):
            _cancel_later_jobs(job, deadline)
            return state(job)
    remaining = ", ".join(f"{row['job']} is {row['state']}" for row in rows if not words.is_over(row))
    raise commands.Controller(f"scancel was accepted, but after {proof_s:g} s Slurm still says: {remaining}")


def _cancel_later_jobs(job: Job, deadline: float) -> None:
    """End the jobs that the jobs of an ended run have submitted, and any jobs that these submit before they end."""
    end = job.read("exit.json")
    if not end.get("later"):
        return
    cancelled: set[str] = set()
    later_jobs: list[str] = []
    for _ in _nap_until(deadline):
        later_jobs = [queued["job"] for queued in jobs.list_later_jobs(job)]
        if not later_jobs:
            job.write("exit.json", dict(end, later=[]), flush=True)
            scratch.remove(job)
            return
        if set(later_jobs) - cancelled:
            _scancel(job, later_jobs)
            cancelled.update(later_jobs)
    raise commands.Controller(f"scancel was accepted, but Slurm still lists: {', '.join(later_jobs)}")


def _scancel(job: Job, numbers: list[str]) -> None:
    commands.ask("scancel", *numbers)
    log.note(job, "scancel " + " ".join(numbers))


def _nap_until(deadline: float) -> Iterator[None]:
    """Yield immediately, then after naps of growing length, until `deadline` on the monotonic clock."""
    nap = 0.05
    yield
    while time.monotonic() < deadline:
        time.sleep(nap)
        nap = min(nap * 1.5, 2.0)
        yield


def _query_rows(job: Job, old_rows: list[Row]) -> list[Row]:
    """Return the rows with Slurm's current answer. If Slurm has forgotten a job, the accounting or the job's own note replaces
    the answer."""
    open_rows = [row for row in old_rows if not words.is_over(row)]
    if not open_rows:
        return old_rows
    answers = _find_own_jobs(job, _ask_queue(_list_numbers(open_rows)))
    answers.update(_find_hidden_tasks([row for row in open_rows if row["job"] not in answers]))
    accounts = _ask_accounts(_list_numbers([row for row in open_rows if row["job"] not in answers]))
    new_rows = []
    for row in old_rows:
        answer = answers.get(row["job"])
        if words.is_over(row):
            new_rows.append(row)
        elif answer:  # a completing job no longer lists nodes that failed: keep the nodes on which it last ran
            ran_on = {"ran_on": answer["node"]} if answer["state"] == "RUNNING" and "node" in answer else {}
            new_rows.append({**row, **answer, **ran_on})
        else:
            new_rows.append({**row, "reason": "", **(accounts.get(row["job"]) or _read_end_note(job, row["job"]))})
    return new_rows


def _list_numbers(rows: list[Row]) -> list[str]:
    """Return the numbers of the jobs and arrays of these rows."""
    return sorted({row["job"].partition("_")[0] for row in rows}, key=int)


_asked: Row = {}
"""Slurm's answers for several runs. `numbers`: the jobs in the query. `rows`: a row for each job. `queues`: the
priorities in each partition."""


def ask_for_all(runs: list[Job]) -> None:
    """Ask squeue once for the jobs of several runs. The next look at each of them uses the answer."""
    entries = [entry["id"] for job in runs if not job.has("done") for entry in jobs.list_submitted_jobs(job)]
    numbers = sorted(set(entries), key=int)
    if len(runs) > 1 and numbers:
        with suppress(commands.Controller):  # each run then makes its own query, and reports the error
            rows = _ask_queue(numbers)
            _asked.update(numbers=set(numbers), rows=rows)


def _ask_queue(numbers: list[str]) -> dict[str, Row]:
    if _asked.get("numbers", set()) >= set(numbers):
        return {job: row for job, row in _asked["rows"].items() if job.partition("_")[0] in numbers}
    try:
        return words.queue(commands.ask("squeue", "-h", "-a", "-t", "all", "-r", "-j", ",".join(numbers), "-o", words.QUEUE))
    except commands.UnknownJob:
        return {}


def _ask_accounts(numbers: list[str]) -> dict[str, Row]:
    if not numbers:
        return {}
    try:
        return words.accounts(commands.ask("sacct", "-n", "-P", "-X", "-j", ",".join(numbers), "-o", words.ACCOUNTS))
    except commands.Controller:  # most small clusters keep no accounts
        return {}


def _ask_details(numbers: list[str]) -> dict[str, Row]:
    """Return scontrol's answer about these jobs. Jobs that it has forgotten are left out."""
    details: dict[str, Row] = {}
    for number in numbers:
        try:
            details.update(words.details(commands.ask("scontrol", "show", "job", "-o", number)))
        except commands.Controller:
            continue
    return details


def _find_hidden_tasks(missing: list[Row]) -> dict[str, Row]:
    """Return scontrol's answer about tasks of arrays that squeue did not name.

    While tasks wait, squeue leaves out the last task of an array with a step, and all tasks that do not fit into its line.
    """
    tasks = [row for row in missing if "_" in row["job"]]
    details = _ask_details(_list_numbers(tasks))
    answers = {row["job"]: details.get(row["job"]) or details.get(row["job"].partition("_")[0]) for row in tasks}
    names = ("state", "reason", "submitted", "started", "ended")
    return {task: {name: answer[name] for name in names} for task, answer in answers.items() if answer}


def _find_own_jobs(job: Job, answers: dict[str, Row]) -> dict[str, Row]:
    """Return only the jobs of this run.

    A cluster that was set up again numbers its jobs from 1, so another user's job may have the number of a job of this run.
    """
    handed_in = os.stat(job.path("jobs.json")).st_mtime
    newer_jobs = {name for name, row in answers.items() if (_epoch(row["submitted"]) or 0.0) > handed_in + _SAME_MOMENT_S}
    if not newer_jobs:
        return answers
    numbers = {queued["job"] for queued in jobs.list_queued_jobs(job)}  # requeuing a job renews its submit time
    return {name: row for name, row in answers.items() if name not in newer_jobs or name.partition("_")[0] in numbers}


def _read_end_note(job: Job, job_id: str) -> Row:
    """Return how a job ended according to its own note, or FORGOTTEN if it left none. The note does not show who sent a signal
    that ended the job."""
    try:
        with open(job.path("ended-" + job_id)) as file:
            code = int(file.read())
    except (OSError, ValueError):
        return {"state": "FORGOTTEN"}
    return {"state": "FAILED" if code else "COMPLETED", "code": code, "reason": words.SIGNALLED if code == _TERMINATED else ""}


def _ask_usage(numbers: list[str]) -> dict[str, Row]:
    """Return the hours that these jobs have used, and who cancelled them, if the cluster keeps accounts."""
    try:
        return words.usage(commands.ask("sacct", "-n", "-P", "-X", "-D", "-j", ",".join(numbers), "-o", words.USAGE))
    except commands.Controller:
        return {}


def _add_details(rows: list[Row], *, with_usage: bool = False) -> list[Row]:
    """Return the rows with the exit codes, restarts and durations, which squeue does not show.

    `with_usage`: also with the hours that the jobs have used.
    """
    details = _ask_details(_list_numbers(rows))
    usage = _ask_usage(_list_numbers(rows)) if with_usage else {}
    full_rows = []
    for row in rows:
        answer = details.get(row["job"], {})
        names = ("code", "restarts", "submitted", "started", "ended")
        full = {**row, **{name: answer[name] for name in names if answer.get(name)}}
        if full["state"] == "COMPLETED" and full["code"] is None:
            full["code"] = 0
        submit_s, start_s, end_s = (_epoch(full.get(name)) for name in ("submitted", "started", "ended"))
        if full["state"] == "CANCELLED" and not full.get("node"):
            start_s = None  # it never started
        full["waited_s"] = None if start_s is None or submit_s is None else max(0.0, start_s - submit_s)
        full["ran_s"] = None if start_s is None or end_s is None else max(0.0, end_s - start_s)
        if with_usage and row["job"] in usage:
            full.update(usage[row["job"]])
            if full["cancelled_by"] == str(os.getuid()):
                full["cancelled_by"] = ""
        elif with_usage and answer.get("tres") and not full["restarts"]:
            full.update(words.count_hours(answer["tres"], full["ran_s"] or 0.0))
        full_rows.append(full)
    return full_rows


def _summarize_end(job: Job, rows: list[Row]) -> Row:
    """Return how the whole run ended: the most serious end of its jobs. Jobs that the exercise itself cancelled are ignored."""
    # A shell ends with the code of its last command, which shows nothing about the session.
    fine = ("COMPLETED", "FAILED") if jobs.read_request(job).get("session") else ("COMPLETED",)
    failed_rows = [row for row in rows if not row["asked"] and row["state"] not in fine]
    code, reason = 0, "exited"
    if failed_rows:
        gravest_row = min(failed_rows, key=lambda row: _GRAVEST_FIRST.index(words.ending(row["state"])))
        reason = "cancelled" if job.has("cancelled") else words.ending(gravest_row["state"])
        code = _CODES.get(reason) or gravest_row["code"] or 1
    seconds = max(0.0, _find_last_note(job, rows) - os.stat(job.path("slurm.json")).st_mtime)
    return {"code": code, "reason": reason, "seconds": seconds, "killed": 0, "jobs": rows, "ranks": _list_ranks(job, rows)}


def _list_ranks(job: Job, rows: list[Row]) -> list[Row]:
    """Return how each process ended, as far as Slurm shows it. A process is a job, or a task of srun."""
    request, now = jobs.read_request(job), time.time()
    if request.get("session"):
        return []
    if not request["spread"]:
        ended_rows = [row for row in rows if not row["asked"] and row["code"] is not None]
        first_hosts = [next(iter(words.hosts(row.get("node") or "")), "") for row in ended_rows]  # the log is that machine's
        return [
            {"rank": row["row"], "code": row["code"], "node": host, "at": _epoch(row.get("ended")) or now}
            for row, host in zip(ended_rows, first_hosts)
        ]
    completed = all(row["state"] == "COMPLETED" for row in rows)
    ends = _read_rank_notes(job, is_killed=not completed)
    if not ends:
        ends = [
            {"rank": rank, "code": code, "node": node, "at": now + place / 1000}
            for place, (rank, code, node) in enumerate(_read_failed_tasks(job))
        ]
    if not ends and completed:
        ends = [{"rank": rank, "code": 0, "node": "", "at": now} for rank in range(request["ranks"])]
    return ends


def _read_failed_tasks(job: Job) -> list[tuple[int, int, str]]:
    """Return the tasks that failed according to srun, in the order of the logs' names."""
    failed_tasks = []
    for name in sorted(os.listdir(job.path("logs"))):
        if name.endswith(".out"):
            with open(job.path("logs", name), encoding="utf-8", errors="replace") as file:
                failed_tasks += words.parse_failed_tasks(file.read())
    return failed_tasks


def _read_rank_notes(job: Job, *, is_killed: bool) -> list[Row]:
    """Return each end of each rank that torchrun started, from `ranks/RANK-RESTART`, which contains the code, the node and the
    time.

    `is_killed`: whether a rank without a recorded end counts as killed with its job.
    """
    ends: list[Row] = []
    for name in sorted(os.listdir(job.path("ranks"))) if job.has("ranks") else ():
        rank, _, restart = name.partition("-")
        with open(job.path("ranks", name), encoding="utf-8", errors="replace") as file:
            note = _RANK_NOTE.match(file.read())
        if rank.isdigit() and restart.isdigit() and note and (is_killed or note[1] != "-"):
            code, node, at = note.groups() if note[1] != "-" else (_KILLED, note[2], time.time())
            ends.append({"rank": int(rank), "code": int(code), "node": node, "at": float(at), "restart": int(restart)})
    return ends


def _epoch(moment: str | None) -> float | None:
    """Return one of Slurm's times as seconds since the epoch, or None if the text is not a time."""
    try:
        return time.mktime(time.strptime(moment or "", "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return None


def _find_last_note(job: Job, rows: list[Row]) -> float:
    """Return the time at which the last job recorded its end, or the current time if a job could not record it."""
    times = [os.stat(job.path(name)).st_mtime for name in os.listdir(job.folder) if name.startswith("ended-")]
    return max(times) if times and len(times) >= len(rows) else time.time()
