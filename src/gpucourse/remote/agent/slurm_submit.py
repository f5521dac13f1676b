"""Submitting a run to Slurm, exactly once: even if the answer was lost, or this process was killed between two files."""

from __future__ import annotations

import os
import time

from gpucourse.remote.agent import prune, scratch, slurm_errors, slurm_jobs, store
from gpucourse.remote.agent import slurm_words as say
from gpucourse.remote.agent.job import Job, JobRefused, home, mapping, take_secrets, words
from gpucourse.remote.agent.slurm_watch import look

_ANSWER_S = 60.0
_PICTURE_S = 15.0
_NEXT_S = 5.0


def submit(spec: dict[str, object]) -> dict[str, object]:
    """Submit the files of `spec` in their order and return the jobs' numbers. If a submission is requested again, submit only
    what the first did not. Jobs get the environment of `spec`; its secrets are written into no file here. Of the runs in
    `collected` the oldest are removed."""
    job = Job(str(spec["run_id"]))
    secrets, collected = take_secrets(spec), words(spec.pop("collected", []))
    os.makedirs(home(), 0o700, exist_ok=True)
    for name in ("logs", "outputs"):
        os.makedirs(job.path(name), 0o700, exist_ok=True)
    lock = _lock(job)
    try:
        if job.has("cancelled"):
            raise JobRefused(f"run {job.run_id} was cancelled before it began")
        again = job.has("started")
        if not again:
            prune.prune(collected)
            job.write("job.json", spec)
            store.lay_out(spec["files"], job.path("work"))
            job.write("slurm.json", spec)
            os.close(os.open(job.path("started"), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        if not job.has("submitted"):
            asked = mapping(spec["slurm"])
            if asked.get("setup"):
                with open(job.path("setup.sh"), "w", encoding="utf-8") as setup:
                    setup.write(str(asked["setup"]))
            places = _make_places(job)
            job.write("places.json", places)
            asked_for = {name: str(value) for name, value in mapping(spec.get("env", {})).items()}
            variables = {**places, **asked_for, **secrets}
            _all_files(job, asked, slurm_jobs.find(job) if again else [], variables)
            if asked.get("show_queue"):
                _show_queue(job, bool(asked.get("cancel_last")))
            if not asked.get("session"):  # a session is a job that the learner's own terminal requests
                job.write("submitted", {})
    finally:
        os.close(lock)
    return {"state": "running", "again": again, "jobs": [entry["id"] for entry in slurm_jobs.list_submitted_jobs(job)]}


def recover(job: Job) -> None:
    """Complete the list of submitted jobs from Slurm's, after the submitting process was killed."""
    if job.has("submitted") or job.has("done") or job.is_supervised():
        return
    known = {str(entry["id"]) for entry in slurm_jobs.list_submitted_jobs(job)}
    asked = mapping(mapping(job.read("slurm.json") or {}).get("slurm") or {})
    for queued in slurm_jobs.find(job):
        if str(queued["id"]) not in known:
            file = next((entry for entry in _files(asked) if entry["job_name"] == queued["name"]), None)
            if file is not None:
                _remember(job, str(queued["id"]), file)


def session(job: Job) -> dict[str, object]:
    """Return the job of a terminal: its row, how many GPUs Slurm holds for it right now, the folder that its shell starts in,
    and where it puts temporary files."""
    recover(job)
    rows = look(job)
    running = [row for row in rows if say.phase(str(row["state"])) == say.RUNNING]
    held = say.count_held_gpus(slurm_jobs.ask("scontrol", "-d", "show", "job", "-o", str(running[0]["job"]))) if running else 0
    return {
        "rows": rows,
        "held": held,
        "work": job.path("work"),
        "outputs": job.path("outputs"),
        "places": job.read("places.json"),
    }


def _lock(job: Job) -> int:
    deadline = time.monotonic() + _ANSWER_S
    while True:
        lock = job.lock()
        if lock is not None:
            return lock
        if time.monotonic() >= deadline:
            raise JobRefused(f"an earlier submission of run {job.run_id} is still under way after {_ANSWER_S:g} s")
        time.sleep(0.05)


def _all_files(job: Job, asked: dict[str, object], there: list[dict[str, object]], variables: dict[str, str]) -> None:
    known = {str(entry["id"]) for entry in slurm_jobs.list_submitted_jobs(job)}
    lost = [entry for entry in there if str(entry["id"]) not in known]
    for file in _files(asked):
        if file["text"]:
            with open(job.path("{}.sbatch".format(file["name"])), "w", encoding="utf-8") as text:
                text.write(str(file["text"]))
        for _ in range(
            int(str(file["copies"])) - sum(entry["file"] == file["name"] for entry in slurm_jobs.list_submitted_jobs(job))
        ):
            mine = next((entry for entry in lost if entry["name"] == file["job_name"]), None)
            if mine is not None:
                lost.remove(mine)
                _remember(job, str(mine["id"]), file)
            else:
                _remember(job, _sbatch(job, file, variables), file)


def _sbatch(job: Job, file: dict[str, object], variables: dict[str, str]) -> str:
    before = [str(entry["id"]) for entry in slurm_jobs.list_submitted_jobs(job) if entry["file"] == file["after"]]
    depends = ["--dependency=afterok:" + ":".join(before), "--kill-on-invalid-dep=yes"] if before else []
    script = str(file.get("script") or "")  # it is submitted from its own folder, beside the files that it needs
    words = [
        "sbatch",
        "--parsable",
        *depends,
        *_words(file, "flags"),
        script or "{}.sbatch".format(file["name"]),
        *_words(file, "arguments"),
    ]
    slurm_errors.make_folder(job, str(file.get("error") or ""))
    number = (
        slurm_jobs.ask(*words, folder=job.path("work") if script else job.folder, variables=_export_too(variables))
        .strip()
        .splitlines()[-1]
        .partition(";")[0]
    )
    if not number.isdigit():
        raise slurm_jobs.Controller(f"sbatch --parsable did not answer with a number: {number}")
    slurm_jobs.note(job, "{} {} -> job {}".format(time.strftime("%H:%M:%S"), " ".join(words), number))
    return number


def _export_too(variables: dict[str, str]) -> dict[str, str]:
    """Return the variables of a run, and with them the list of what sbatch exports, if the login sets one that lacks them."""
    words = slurm_jobs.environment().get("SBATCH_EXPORT", "ALL").split(",")
    if "ALL" in words:
        return variables
    kept = [word for word in words if word not in ("NONE", "NIL", "")]
    return {**variables, "SBATCH_EXPORT": ",".join([*kept, *variables]) or "NONE"}


def _make_places(job: Job) -> dict[str, str]:
    """Return where the jobs put temporary files, below the run's folder, and where libraries keep files from one run to the
    next.

    If no path to that folder is short enough for sockets, they get the folder that the cluster sets for them.
    """
    places = scratch.make_caches(slurm_jobs.environment())
    temporary = scratch.make_shared(job, _is_on_one_machine)
    return {**places, "TMPDIR": temporary} if temporary else places


def _is_on_one_machine() -> bool:
    try:
        return set(slurm_jobs.ask("sinfo", "-h", "-a", "-o", "%n").split()) == {slurm_jobs.host()}
    except slurm_jobs.Controller:  # sbatch will report the same
        return False


def _remember(job: Job, number: str, file: dict[str, object]) -> None:
    entry = {"id": number, "file": file["name"], "tasks": file["tasks"], "numbers": file.get("numbers")}
    job.write("jobs.json", {"jobs": [*slurm_jobs.list_submitted_jobs(job), entry]}, flush=True)


def _show_queue(job: Job, cancel_last: bool) -> None:
    """Keep the queue as it is once every job that waits has its reason, then cancel the last job if `cancel_last`.

    For a second after sbatch no job has a reason, and for another second none is next in line; on a cluster that others use,
    the next job may be theirs, so the wait for that is shorter.
    """
    began, nap = time.monotonic(), 0.1
    while True:
        rows = look(job)
        reasons = [row.get("reason") for row in rows if say.phase(str(row["state"])) in (say.WAITING, say.UNKNOWN)]
        known = all(reason not in (None, "", "None") for reason in reasons)
        waited = time.monotonic() - began
        if (known and (set(reasons) != {"Priority"} or waited > _NEXT_S)) or waited > _PICTURE_S:
            break
        time.sleep(nap)
        nap = min(nap * 1.5, 1.0)
    if len(rows) < 2:
        return
    shown = slurm_jobs.picture()
    slurm_jobs.note(job, shown)
    with open(job.path("outputs", "squeue.txt"), "w", encoding="utf-8") as file:
        file.write(shown)
    job.write(
        "outputs/queue.json", {"queue": [{name: row.get(name) for name in ("job", "state", "reason", "node")} for row in rows]}
    )
    last = slurm_jobs.list_submitted_jobs(job)[-1]
    state = str(rows[-1]["state"])
    if cancel_last and say.phase(state) != say.ENDED:
        jobs = [*slurm_jobs.list_submitted_jobs(job)[:-1], dict(last, asked=True, asked_in=state)]
        job.write("jobs.json", {"jobs": jobs}, flush=True)
        with slurm_jobs.watching(job):
            seen = job.read("seen.json") or {}
            job.write("seen.json", dict(seen, jobs=[*rows[:-1], dict(rows[-1], asked=True)]))
        slurm_jobs.ask("scancel", str(last["id"]))
        slurm_jobs.note(job, "{} scancel {}".format(time.strftime("%H:%M:%S"), last["id"]))


def _words(file: dict[str, object], name: str) -> list[str]:
    words = file.get(name)
    return [str(word) for word in words] if isinstance(words, list) else []


def _files(asked: dict[str, object]) -> list[dict[str, object]]:
    files = asked.get("files")
    return [mapping(file) for file in files] if isinstance(files, list) else []
