"""A run under Slurm: its files beside those of job.py, and the calls of Slurm's commands.

slurm.json   the request           <name>.sbatch   the file that is submitted   ended-<job>   a job's own note of its end
jobs.json    the submitted jobs    seen.json       their last known state       watch         held while Slurm is asked
places.json  where its jobs put temporary files
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from gpucourse.remote.agent import slurm_words as say
from gpucourse.remote.agent.job import Job, JobRefused, mapping

TIMEOUT_S = 30.0
NOTHING: Mapping[str, str] = {}

_MUNGE = "/run/munge/munge.socket.2"
_PLACES = "/usr/local/bin:/usr/bin:/bin:/opt/slurm/bin:/usr/local/slurm/bin:/opt/slurm/current/bin"


_DROPPED = re.compile(
    r"SSH_|SQUEUE_|SINFO_|SACCT_|GPUCOURSE_|(SBATCH|SLURM)_(ARRAY_INX|CHDIR|DEPENDENCY|ERROR|INPUT|JOB_NAME|OPEN_MODE|OUTPUT|"
    r"REMOTE_CWD|STD[A-Z]+MODE|SUBMIT_DIR|WAIT|WORKING_DIR)$"
)


class Controller(JobRefused):
    """Slurm refused, or did not answer; `what` holds its own words."""

    def __init__(self, what: str) -> None:
        super().__init__(what, "slurm")


class UnknownJob(Controller):
    """Slurm has forgotten the job in the question."""


def ask(
    *words: str,
    folder: str | None = None,
    timeout_s: float = TIMEOUT_S,
    munge: str = _MUNGE,
    variables: Mapping[str, str] = NOTHING,
) -> str:
    """Return the output of a command of Slurm; `munge` is the socket of the daemon that it uses, `variables` are added to its
    environment.

    Raises Controller with the error message, UnknownJob.
    """
    if _is_munged_gone(munge):  # a command of Slurm would wait for it, for more than half a minute and without a message
        raise Controller(f"munged is gone: nobody listens at {munge}")
    try:
        done = subprocess.run(
            [_program(words[0]), *words[1:]],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd=folder,
            env={**environment(), **variables},
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        message = (error.stderr or b"").decode("utf-8", "replace").strip()  # its messages while it waited
        raise Controller(f"{words[0]} did not answer within {timeout_s:g} s{': ' + message if message else ''}") from error
    except OSError as error:
        raise Controller(f"cannot start {words[0]}: {error.strerror}") from error
    if done.returncode:
        message = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
        kind = UnknownJob if say.UNKNOWN_JOB in message else Controller
        raise kind(message or f"{words[0]} ended with code {done.returncode}")
    return done.stdout.decode("utf-8", "replace")


def environment() -> dict[str, str]:
    """Return the environment of Slurm's commands: what the login sets for jobs (an account, a QoS, a partition), but nothing
    that moves a job's output or folder, or changes what the commands print; the person's real home."""
    kept = {name: value for name, value in os.environ.items() if not _DROPPED.match(name)}
    if "SLURM_JOB_ID" in os.environ:  # the shell itself is a job: these describe that one
        kept = {name: value for name, value in kept.items() if name == "SLURM_CONF" or not name.startswith("SLURM_")}
    if "SBATCH_CLUSTERS" in kept:  # squeue and scancel look for the jobs in the same cluster
        kept["SLURM_CLUSTERS"] = kept["SBATCH_CLUSTERS"]
    return {**kept, "HOME": pwd.getpwuid(os.getuid()).pw_dir, "SLURM_TIME_FORMAT": "standard", "LC_ALL": "C.UTF-8"}


@contextmanager
def watching(job: Job) -> Iterator[None]:
    """Let only one process at a time ask Slurm about a run, so that a change is reported once."""
    handle = job.lock("watch", wait=True)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def note(job: Job, text: str) -> None:
    """Write a sentence, or a picture, into the launcher's log."""
    with open(job.path("logs", "launcher.log"), "ab") as log:
        log.write((text.rstrip("\n") + "\n").encode())


def list_submitted_jobs(job: Job) -> list[dict[str, object]]:
    """Return what was submitted: `id`, `file`, how many `tasks` (0: no array) or their `numbers`, and `asked`: whether the
    exercise itself requested its end."""
    jobs = (job.read("jobs.json") or {}).get("jobs")
    return [mapping(entry) for entry in jobs] if isinstance(jobs, list) else []


def rows(job: Job) -> list[dict[str, object]]:
    """Return one row for each job, or task of an array, as it is before anything is known about it."""
    job_rows: list[dict[str, object]] = []
    for submitted_job in list_submitted_jobs(job):
        numbers = submitted_job.get("numbers")
        tasks = numbers if isinstance(numbers, list) and numbers else range(int(str(submitted_job["tasks"])))
        names = ["{}_{}".format(submitted_job["id"], task) for task in tasks] or [str(submitted_job["id"])]
        for name in names:
            row: dict[str, object] = {"row": len(job_rows), "job": name, "file": submitted_job["file"], "state": "SUBMITTED"}
            job_rows.append(dict(row, asked=bool(submitted_job.get("asked")), restarts=0, code=None))
    return job_rows


def find(job: Job) -> list[dict[str, object]]:
    """Return the jobs that were submitted from this run's folder, as squeue shows them: for a submission that was cut short."""
    jobs: list[dict[str, object]] = []
    for line in ask("squeue", "-h", "-a", "-t", "all", "-u", user_name(), "-o", "%F|%j|%Z").splitlines():
        number, _, rest = line.strip().partition("|")
        name, _, folder = rest.rpartition("|")  # a name may hold anything
        if os.path.realpath(folder) in (os.path.realpath(job.folder), os.path.realpath(job.path("work"))):
            jobs.append({"id": number, "name": name})
    unique = {str(entry["id"]): entry for entry in jobs}
    return [unique[number] for number in sorted(unique, key=int)]


def cluster(_wanted: dict[str, object]) -> dict[str, object]:
    """Return what the cluster has: its version, every node of every partition, the user, the home folder, and which partition
    the login sets for sbatch and for srun."""
    version = ask("sinfo", "--version").strip()
    nodes = say.nodes(ask("sinfo", "-h", "-a", "-N", "-o", say.NODES))
    login = {name: environment().get(name + "_PARTITION", "") for name in ("SBATCH", "SLURM")}
    return {
        "version": version,
        "nodes": nodes,
        "user": user_name(),
        "home": os.path.expanduser("~"),
        "batch_partition": login["SBATCH"],
        "session_partition": login["SLURM"],
    }


def picture() -> str:
    """Return the queue of this user as squeue shows it, with the command that showed it."""
    return "$ squeue -u {}\n{}".format(user_name(), ask("squeue", "-u", user_name()))


def user_name() -> str:
    """Return the name of the current user."""
    return pwd.getpwuid(os.getuid()).pw_name


def host() -> str:
    """Return the name of this machine, as Slurm knows machines."""
    return socket.gethostname().split(".")[0]


def _is_munged_gone(munge: str) -> bool:
    """Return whether munged left its socket behind and no longer answers there. A missing or different socket proves
    nothing."""
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(1.0)
        try:
            line.connect(munge)
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False


def _program(name: str) -> str:
    path = shutil.which(name) or shutil.which(name, path=_PLACES)
    if path is None:  # if Slurm is only on the path of a login shell
        shell = subprocess.run(
            ["/bin/sh", "-lc", "command -v " + name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
        )
        path = shell.stdout.decode().strip().splitlines()[-1] if shell.stdout.strip() else None
    if path is None:
        raise Controller(f"{name}: command not found")
    return path
