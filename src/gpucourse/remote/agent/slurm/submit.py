"""Submit a run to Slurm exactly once, even if the answer was lost or this process was killed between two files."""

from __future__ import annotations

import os
import shlex
import time

from gpucourse.remote.agent import prune, scratch, store
from gpucourse.remote.agent.job import LOCK, Job, JobRefused, home
from gpucourse.remote.agent.slurm import commands, jobs, log, words
from gpucourse.remote.agent.slurm.watch import look
from gpucourse.remote.agent.slurm.words import Row

_PICTURE_S = 15.0
_NEXT_S = 5.0


def submit(spec: Row) -> Row:
    """Submit the files of `spec` in their order, and return the answer for the client.

    A repeated request submits only files that were not submitted before.

    Jobs get the environment in `spec`, whose secrets are written to no file here. The oldest of the runs in `collected` are
    removed.

    If the run is a task of a job array of several runs, the first of them submits the array, after the requests of the others
    have arrived.
    """
    job = Job(spec["run_id"])
    secrets, collected = spec.pop("secrets", {}), spec.pop("collected", [])
    os.makedirs(home(), 0o700, exist_ok=True)
    for name in ("logs", "outputs"):
        os.makedirs(job.path(name), 0o700, exist_ok=True)
    with job.holding(LOCK):
        if job.has("cancelled"):
            raise JobRefused(f"run {job.run_id} was cancelled before it began")
        is_repeated = job.has("started")
        if not is_repeated:
            prune.prune(collected)
            job.write("job.json", spec)
            store.lay_out(spec["files"], job.path("work"))
            job.write("slurm.json", spec)
            os.close(os.open(job.path("started"), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        if not job.has("submitted"):
            request = spec["slurm"]
            _write_helpers(job, request)
            places = _make_places(job)
            job.write("places.json", places)
            if is_repeated:
                jobs.adopt_lost_jobs(job, request["files"])
            functions = commands.read_login_functions() if request.get("is_shared") else {}
            variables = {**functions, **places, **spec.get("env", {}), **secrets}
            if request.get("array"):
                _prepare_task(job, request)
                _submit_array(job, request, variables)
                return {"state": "running", "again": is_repeated}
            _submit_files(job, request["files"], variables)
            if request["show_queue"]:
                _show_queue(job, cancel_last=request["cancel_last"])
            if not request.get("session"):  # a session is a job that the learner's own terminal requests
                job.write("submitted", {})
    return {"state": "running", "again": is_repeated}


def describe_session(job: Job) -> Row:
    """Return a terminal's job: its row, the number of GPUs that Slurm holds for it now, the shell's folder, and its temporary
    folders."""
    jobs.recover(job)
    rows = look(job)
    running = [row["job"] for row in rows if words.phase(row["state"]) == words.RUNNING]
    details = commands.ask("scontrol", "-d", "show", "job", "-o", running[0]) if running else ""
    return {
        "rows": rows,
        "gpus": words.count_held_gpus(details),
        "work": job.path("work"),
        "outputs": job.path("outputs"),
        "places": job.read("places.json"),
    }


def _write_helpers(job: Job, request: Row) -> None:
    """Write the files that a learner's batch file may use in the run's folder: setup.sh, and the programs in `bin`."""
    if request.get("setup"):
        with open(job.path("setup.sh"), "w", encoding="utf-8") as setup:
            setup.write(request["setup"])
    if request.get("python"):
        _make_program(job, "python", f'exec {request["python"]} "$@"')
    if request.get("absent_partition"):
        partitions = request["partition"], request.get("cpu_partition") or request["partition"]
        _make_program(job, "sbatch", _write_sbatch(request["absent_partition"], *partitions))


def _make_program(job: Job, name: str, command: str) -> None:
    """Write a program into `bin`, where it comes first on the PATH of a learner's files. The command may start another program
    of the same name.
    """
    os.makedirs(job.path("bin"), 0o700, exist_ok=True)
    with open(job.path("bin", name), "w", encoding="utf-8") as program:
        program.write(f'#!/bin/bash\nPATH=${{PATH#"${{0%/*}}:"}}\n{command}\n')
    os.chmod(job.path("bin", name), 0o700)


def _write_sbatch(absent: str, partition: str, cpu_partition: str) -> str:
    """Return the commands of a wrapper for sbatch. In jobs that a learner's file submits, it replaces a partition that the
    cluster lacks.

    A job of one command (--wrap) that requests no GPU goes to `cpu_partition`, all others go to `partition`.
    """
    old, gpu, cpu = (shlex.quote(f"--partition={name}") for name in (absent, partition, cpu_partition))
    return (
        f"new={gpu}\ncase \" $* \" in *' '--g[rp][eu]s*|*' '-G*) ;; *' '--wrap*) new={cpu} ;; esac\n"
        f'for word; do shift; [ "$word" != {old} ] || word=$new; set -- "$@" "$word"; done\nexec sbatch "$@"'
    )


def _prepare_task(job: Job, request: Row) -> None:
    """Write the file that the run's task of the array starts."""
    [file] = request["files"]
    with open(job.path("job.sbatch"), "w", encoding="utf-8") as script:
        script.write(file["text"])


def _submit_array(job: Job, request: Row, variables: dict[str, str]) -> None:
    """Submit the array if this is the first of its runs, and record for each run that its task was submitted."""
    array = request["array"]
    runs = [Job(run_id) for run_id in array["runs"]]
    if runs[0].run_id != job.run_id:
        return
    os.makedirs(job.path("tasks"), 0o700, exist_ok=True)
    for task, run in enumerate(runs):
        link = job.path("tasks", str(task))
        if not os.path.lexists(link):
            os.symlink(os.path.join(os.pardir, os.pardir, run.run_id), link)
    with open(job.path("array.sbatch"), "w", encoding="utf-8") as script:
        script.write(array["text"])
    [file] = request["files"]
    if not jobs.list_submitted_jobs(job):
        jobs.remember(job, _sbatch(job, dict(file, name="array"), variables), file)
    number = jobs.list_submitted_jobs(job)[0]["id"]
    for task, run in enumerate(runs):
        if not jobs.list_submitted_jobs(run):
            jobs.remember(run, number, jobs.read_request(run)["files"][0])
            log.note(run, f"task {task} of the job array {number}")
        run.write("submitted", {})


def _submit_files(job: Job, files: list[Row], variables: dict[str, str]) -> None:
    for file in files:
        submitted = sum(entry["file"] == file["name"] for entry in jobs.list_submitted_jobs(job))
        if file["text"]:
            with open(job.path(file["name"] + ".sbatch"), "w", encoding="utf-8") as script:
                script.write(file["text"])
        for _ in range(submitted, file["copies"]):
            jobs.remember(job, _sbatch(job, file, variables), file)


def _sbatch(job: Job, file: Row, variables: dict[str, str]) -> str:
    predecessors = [entry["id"] for entry in jobs.list_submitted_jobs(job) if entry["file"] == file["after"]]
    depends = ["--dependency=afterok:" + ":".join(predecessors), "--kill-on-invalid-dep=yes"] if predecessors else []
    script = file.get("script")  # it is submitted from its own folder, next to the files that it needs
    argv = ["sbatch", "--parsable", *depends, *file.get("flags", []), script or file["name"] + ".sbatch"]
    argv += file.get("arguments", [])
    log.make_error_folder(job, file.get("error", ""))
    folder = job.path("work") if script else job.folder
    answer = commands.ask(*argv, folder=folder, variables=_export_too(variables))
    number = answer.strip().splitlines()[-1].partition(";")[0]
    if not number.isdigit():
        raise commands.Controller(f"sbatch --parsable did not answer with a number: {number}")
    log.note(job, f"{' '.join(argv)} -> job {number}")
    return number


def _export_too(variables: dict[str, str]) -> dict[str, str]:
    """Return the variables of a run.

    If the login lists the variables that sbatch exports, and the list lacks some of the run's variables, also return an
    extended list.
    """
    names = commands.environment().get("SBATCH_EXPORT", "ALL").split(",")
    if "ALL" in names:
        return variables
    exported_names = [name for name in names if name not in ("NONE", "NIL", "")]
    return {**variables, "SBATCH_EXPORT": ",".join([*exported_names, *variables]) or "NONE"}


def _make_places(job: Job) -> dict[str, str]:
    """Return the jobs' cache folders. In a lab of the course, also return their folder for temporary files.

    If no path to the temporary folder is short enough for sockets, the jobs use the folder that the cluster sets for them.
    """
    places = scratch.make_caches(commands.environment())
    if jobs.read_request(job).get("is_shared"):  # the cluster decides where temporary files are
        return places
    temporary = scratch.make_shared(job, _is_on_one_machine)
    return {**places, "TMPDIR": temporary} if temporary else places


def _is_on_one_machine() -> bool:
    try:
        return set(commands.ask("sinfo", "-h", "-a", "-o", "%n").split()) == {commands.host()}
    except commands.Controller:  # sbatch will report the same
        return False


def _show_queue(job: Job, *, cancel_last: bool) -> None:
    """Record the queue as soon as every waiting job has a reason. Then cancel the last job if `cancel_last` is set.

    For a second after sbatch, no job has a reason, and for another second, no job is next in line. If other users share the
    cluster, the next job may be theirs, so this second wait is short.
    """
    start_s, nap = time.monotonic(), 0.1
    while True:
        rows = look(job)
        reasons = [row.get("reason") for row in rows if words.phase(row["state"]) in (words.WAITING, words.UNKNOWN)]
        has_all = all(reason for reason in reasons)
        elapsed_s = time.monotonic() - start_s
        if (has_all and (set(reasons) != {"Priority"} or elapsed_s > _NEXT_S)) or elapsed_s > _PICTURE_S:
            break
        time.sleep(nap)
        nap = min(nap * 1.5, 1.0)
    if len(rows) < 2:
        return
    picture = commands.show_queue()
    log.add_line(job, picture)
    with open(job.path("outputs", "squeue.txt"), "w", encoding="utf-8") as file:
        file.write(picture)
    queue = [{name: row.get(name) for name in ("job", "state", "reason", "node")} for row in rows]
    job.write("outputs/queue.json", {"queue": queue})
    if cancel_last and not words.is_over(rows[-1]):
        _cancel_last(job, rows)


def _cancel_last(job: Job, rows: list[Row]) -> None:
    """Cancel the last job, as the exercise requires. This is not a failure of the run."""
    *earlier_jobs, last_job = jobs.list_submitted_jobs(job)
    job.write("jobs.json", {"jobs": [*earlier_jobs, dict(last_job, asked=True)]}, flush=True)
    with job.holding(jobs.WATCH):
        job.write("seen.json", dict(job.read("seen.json"), jobs=[*rows[:-1], dict(rows[-1], asked=True)]))
    commands.ask("scancel", last_job["id"])
    log.note(job, f"scancel {last_job['id']}")
