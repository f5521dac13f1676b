"""Watching a run under Slurm: one question at a time, every change reported once, and the end written down."""

from __future__ import annotations

import os
import re
import time

from gpucourse.remote.agent import scratch, slurm_errors, slurm_jobs, slurm_later, slurm_log
from gpucourse.remote.agent import slurm_words as say
from gpucourse.remote.agent.job import Job, mapping
from gpucourse.remote.agent.supervise import finish

_PROOF_S = 60.0
_SAME_MOMENT_S = 1.0
_KILLED, _TERMINATED = 137, 143
_RANK_NOTE = re.compile(
    r"(\d{1,3}(?= \S+ \d)|-(?= \S+ -)) (\S+) (\d+(?:\.\d+)?|-)\n"
)  # without the end of its line it is not complete

Row = dict[str, object]


def look(job: Job) -> list[Row]:
    """Return the rows as they are now. When the last one has ended, the end is written down.

    If Slurm does not answer, the rows are those of the last look; that is reported once, and again when it answers.
    """
    with slurm_jobs.watching(job):
        ended = job.read("exit.json") if job.has("done") else None
        if ended is not None:
            return _rows(ended)
        seen = job.read("seen.json") or {}
        before = _rows(seen) or slurm_jobs.rows(job)
        try:
            after = _query_rows(job, before)
            over = bool(after) and all(say.phase(str(row["state"])) == say.ENDED for row in after)
            later = _list_later_jobs(job) if over else []
        except slurm_jobs.Controller as error:
            if not seen.get("silent"):
                slurm_log.log_silence(job, error.what)
                job.write("seen.json", dict(seen, jobs=before, silent=error.what))
            return before
        if seen.get("silent"):
            slurm_log.log_end_of_silence(job)
        slurm_log.log_changes(job, before, after)
        if over:
            after = _with_details(after)
            slurm_log.warn_of_unshared_folder(job, after, session=bool(_read_request(job).get("session")))
            slurm_errors.add_to_logs(job, after)
            if not later:
                scratch.remove(job)
            finish(job, dict(_end(job, after), later=later))
        job.write("seen.json", {"jobs": after})
        return after


def state(job: Job) -> str:
    """Return `absent`, `preparing`, `running` or `ended`, as for every run."""
    if job.has("done"):
        return "ended"
    if job.is_supervised():
        return "preparing"
    if not slurm_jobs.list_submitted_jobs(job):
        return "absent"
    return "running"


def request_end(job: Job) -> list[str]:
    """Cancel with scancel, without proof; return the jobs of the run that had not ended."""
    if not job.has("cancelled"):
        job.write("cancelled", {})
    left = _list_open_jobs(look(job))
    silent = (job.read("seen.json") or {}).get("silent")
    if left and silent:  # scancel would wait for the controller as long as squeue just did
        raise slurm_jobs.Controller(str(silent))
    if left:
        slurm_jobs.ask("scancel", *left)
        slurm_log.log_cancel(job, left)
    return left


def cancel(job: Job, left: list[str] | None = None, proof_s: float = _PROOF_S) -> dict[str, object]:
    """Cancel with scancel, with proof: return when Slurm reports that every job has ended, including those that the run's own
    jobs submitted. `left`: the jobs for which `request_end` was called already."""
    left = request_end(job) if left is None else left
    rows: list[Row] = []
    began, nap = time.monotonic(), 0.05
    while left and not job.has("done"):
        if time.monotonic() - began > proof_s:
            still = ", ".join(f"{row['job']} is {row['state']}" for row in rows if say.phase(str(row["state"])) != say.ENDED)
            raise slurm_jobs.Controller(f"scancel was accepted, and after {proof_s:g} s Slurm still says: {still}")
        time.sleep(nap)
        nap = min(nap * 1.5, 2.0)
        rows = look(job)
    return {"state": state(job), "killed": len(left) + _cancel_later_jobs(job, began + proof_s)}


def _list_open_jobs(rows: list[Row]) -> list[str]:
    return [str(row["job"]) for row in rows if say.phase(str(row["state"])) != say.ENDED]


def _cancel_later_jobs(job: Job, deadline: float) -> int:
    """End the jobs that an ended run's jobs had submitted, and those that these submit meanwhile; return how many there
    were."""
    ended = job.read("exit.json") or {}
    if not ended.get("later"):
        return 0
    known: set[str] = set()
    nap = 0.05
    while True:
        later = [str(entry["job"]) for entry in slurm_later.list_later_jobs(job)]
        if not later:
            break
        if time.monotonic() > deadline:
            still = ", ".join(later)
            raise slurm_jobs.Controller(f"scancel was accepted, and Slurm still has: {still}")
        if set(later) - known:
            slurm_jobs.ask("scancel", *later)
            slurm_log.log_cancel(job, later)
            known.update(later)
        time.sleep(nap)
        nap = min(nap * 1.5, 2.0)
    job.write("exit.json", dict(ended, later=[]), flush=True)
    scratch.remove(job)
    return len(known)


def _list_later_jobs(job: Job) -> list[Row]:
    try:
        return slurm_later.list_later_jobs(job)
    except slurm_jobs.UnknownJob:  # it knows of none
        return []


def _query_rows(job: Job, before: list[Row]) -> list[Row]:
    """Return the rows with Slurm's current answer; for jobs that it has forgotten, with the accounting or the job's own
    note."""
    open_rows = [row for row in before if say.phase(str(row["state"])) != say.ENDED]
    if not open_rows:
        return before
    numbers = sorted({str(row["job"]).partition("_")[0] for row in open_rows}, key=int)
    try:
        answers = say.queue(slurm_jobs.ask("squeue", "-h", "-a", "-t", "all", "-r", "-j", ",".join(numbers), "-o", say.QUEUE))
    except slurm_jobs.UnknownJob:
        answers = {}
    answers = _ours(job, answers)
    answers.update(_find_hidden_tasks([row for row in open_rows if row["job"] not in answers]))
    forgotten = [row for row in open_rows if row["job"] not in answers]
    accounts = _accounts(sorted({str(row["job"]).partition("_")[0] for row in forgotten})) if forgotten else {}
    after = []
    for row in before:
        job_id = str(row["job"])
        if say.phase(str(row["state"])) == say.ENDED:
            after.append(row)
        elif job_id in answers:
            after.append(_merge_row(row, answers[job_id]))
        else:
            after.append({**row, "reason": "", **(accounts.get(job_id) or _own_note(job, job_id))})
    return after


def _find_hidden_tasks(missing: list[Row]) -> dict[str, Row]:
    """Return scontrol's answer on tasks of arrays that squeue did not name: while they wait, squeue leaves out the last task of
    an array with a step, and all that do not fit into its line."""
    tasks: dict[str, Row] = {}
    for number in sorted({str(row["job"]).partition("_")[0] for row in missing if "_" in str(row["job"])}, key=int):
        try:
            known = say.details(slurm_jobs.ask("scontrol", "show", "job", "-o", number))
        except slurm_jobs.Controller:
            continue  # forgotten: its own note may help
        for row in missing:
            said = known.get(str(row["job"])) or known.get(number)
            if said and str(row["job"]).partition("_")[0] == number:
                tasks[str(row["job"])] = {name: said[name] for name in ("state", "reason", "submitted", "started", "ended")}
    return tasks


def _ours(job: Job, answers: dict[str, Row]) -> dict[str, Row]:
    """Return only the jobs of this run: a cluster that was set up again counts from 1, and reuses a number for another user."""
    handed_in = os.stat(job.path("jobs.json")).st_mtime
    later = [name for name, row in answers.items() if (_epoch(row["submitted"]) or 0.0) > handed_in + _SAME_MOMENT_S]
    if not later:
        return answers
    ours = {str(entry["id"]) for entry in slurm_jobs.find(job)}  # one that was put back into the queue counts as submitted then
    return {name: row for name, row in answers.items() if name not in later or name.partition("_")[0] in ours}


def _merge_row(row: Row, said: Row) -> Row:
    """Return the row with Slurm's answer, and where its job last ran: while a job completes, nodes that failed are gone from
    it."""
    ran_on = {"ran_on": said["node"]} if said["state"] == "RUNNING" else {}
    return {**row, **said, **ran_on}


def _accounts(numbers: list[str]) -> dict[str, dict[str, object]]:
    try:
        return say.accounts(slurm_jobs.ask("sacct", "-n", "-P", "-X", "-j", ",".join(numbers), "-o", say.ACCOUNTS))
    except slurm_jobs.Controller:  # most small clusters keep no accounts
        return {}


def _own_note(job: Job, job_id: str) -> dict[str, object]:
    """Return how a job ended by the note that it left; FORGOTTEN if it left none. The note does not show who sent a signal."""
    try:
        with open(job.path("ended-" + job_id)) as file:
            code = int(file.read())
    except (OSError, ValueError):
        return {"state": "FORGOTTEN"}
    return {"state": "FAILED" if code else "COMPLETED", "code": code, "reason": say.SIGNALLED if code == _TERMINATED else ""}


def _with_details(rows: list[Row]) -> list[Row]:
    """Return the rows with exit codes and restarts, which squeue does not show."""
    known: dict[str, dict[str, object]] = {}
    for number in sorted({str(row["job"]).partition("_")[0] for row in rows}, key=int):
        try:
            known.update(say.details(slurm_jobs.ask("scontrol", "show", "job", "-o", number)))
        except slurm_jobs.Controller:
            continue  # forgotten meanwhile
    return [_add_details(row, known.get(str(row["job"]), {})) for row in rows]


def _add_details(row: Row, known: dict[str, object]) -> Row:
    told = {name: known[name] for name in ("code", "restarts", "submitted", "started", "ended") if known.get(name)}
    if row["state"] == "COMPLETED":
        told.setdefault("code", 0)
    whole = {**row, **told}
    begun, ended, asked = (_epoch(whole.get(key)) for key in ("started", "ended", "submitted"))
    never = row["state"] == "CANCELLED" and not row.get("node")
    whole["waited_s"] = None if begun is None or asked is None or never else max(0.0, begun - asked)
    whole["ran_s"] = None if begun is None or ended is None or never else max(0.0, ended - begun)
    return whole


def _end(job: Job, rows: list[Row]) -> dict[str, object]:
    """Return how the whole run ended: the gravest end of its jobs, without those that the exercise itself cancelled."""
    counted = [row for row in rows if not row.get("asked")]
    order = ("timed_out", "lost", "exited", "cancelled")
    # A shell ends with the code of its last command, which shows nothing about the session.
    fine = ("COMPLETED", "FAILED") if _read_request(job).get("session") else ("COMPLETED",)
    bad = [row for row in counted if row["state"] not in fine]
    bad.sort(key=lambda row: order.index(say.ending(str(row["state"]))))
    code, reason = 0, "exited"
    if bad:
        reason = say.ending(str(bad[0]["state"]))
        known = bad[0].get("code")
        code = {"timed_out": 124, "lost": 137, "cancelled": 143}.get(reason) or (int(str(known)) if known else 1)
    if job.has("cancelled") and bad:
        reason, code = "cancelled", 143
    return {
        "code": code,
        "reason": reason,
        "seconds": max(0.0, _last_note(job) - os.stat(job.path("slurm.json")).st_mtime),
        "killed": 0,
        "jobs": rows,
        "ranks": _ranks(job, rows),
    }


def _ranks(job: Job, rows: list[Row]) -> list[dict[str, object]]:
    """Return how each process ended, as far as Slurm shows it: the jobs themselves, or the tasks that srun names."""
    if _read_request(job).get("session"):
        return []
    asked = _read_request(job)
    now = time.time()
    if not asked.get("spread"):
        told = [row for row in rows if not row.get("asked") and row.get("code") is not None]
        return [
            {"rank": row["row"], "code": row["code"], "node": _first_host(row), "at": _epoch(row.get("ended")) or now}
            for row in told
        ]
    ends = _read_rank_notes(job, killed=any(row["state"] != "COMPLETED" for row in rows))
    for name in sorted(os.listdir(job.path("logs"))) if not ends else ():
        if name.endswith(".out"):
            with open(job.path("logs", name), encoding="utf-8", errors="replace") as file:
                failed = say.parse_failed_tasks(file.read())
            ends += [
                {"rank": rank, "code": code, "node": node, "at": now + place / 1000}
                for place, (rank, code, node) in enumerate(failed)
            ]
    if not ends and all(row["state"] == "COMPLETED" for row in rows):
        ends = [{"rank": rank, "code": 0, "node": "", "at": now} for rank in range(int(str(asked.get("ranks", 0))))]
    return ends


def _first_host(row: Row) -> str:
    """Return the machine of a job's own log: the first that it had."""
    return next(iter(say.hosts(str(row.get("node") or ""))), "")


def _read_rank_notes(job: Job, *, killed: bool) -> list[dict[str, object]]:
    """Return each end of each rank that torchrun started: `ranks/RANK-RESTART` holds code, node and time. With `killed`, a rank
    that has begun and whose end was not written down counts as ended with its job."""
    ends: list[dict[str, object]] = []
    for name in sorted(os.listdir(job.path("ranks"))) if job.has("ranks") else ():
        rank, _, restart = name.partition("-")
        with open(job.path("ranks", name), encoding="utf-8", errors="replace") as file:
            noted = _RANK_NOTE.match(file.read())
        if rank.isdigit() and restart.isdigit() and noted and (killed or noted[1] != "-"):
            code, node, at = noted.groups() if noted[1] != "-" else (_KILLED, noted[2], time.time())
            ends.append({"rank": int(rank), "code": int(code), "node": node, "at": float(at), "restart": int(restart)})
    return ends


def _read_request(job: Job) -> dict[str, object]:
    return mapping((job.read("slurm.json") or {}).get("slurm") or {})


def _rows(stored: dict[str, object]) -> list[Row]:
    jobs = stored.get("jobs")
    return [mapping(row) for row in jobs] if isinstance(jobs, list) else []


def _epoch(moment: object) -> float | None:
    try:
        return time.mktime(time.strptime(str(moment), "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return None


def _last_note(job: Job) -> float:
    """Return when the last job wrote down its end; the current time if one could not."""
    noted = [os.stat(job.path(name)).st_mtime for name in os.listdir(job.folder) if name.startswith("ended-")]
    return max(noted) if len(noted) >= len(slurm_jobs.rows(job)) else time.time()
