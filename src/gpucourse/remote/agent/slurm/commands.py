"""Start Slurm's commands on this node, understand their errors, and read their output about the cluster."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import socket
import subprocess
from collections.abc import Mapping
from typing import Any

from gpucourse.remote.agent.job import JobRefused
from gpucourse.remote.agent.slurm import words

TIMEOUT_S = 30.0
NOTHING: Mapping[str, str] = {}

_MUNGE = "/run/munge/munge.socket.2"
_PLACES = "/usr/local/bin:/usr/bin:/bin:/opt/slurm/bin:/usr/local/slurm/bin:/opt/slurm/current/bin"
_LOGIN_S = 15.0
_OF_MODULES = re.compile(r"BASH_FUNC_|MODULE|LMOD_|LOADEDMODULES|_LMFILES_")
_DROPPED = re.compile(
    r"SSH_|SQUEUE_|SINFO_|SACCT_|GPUCOURSE_|(SBATCH|SLURM)_(ARRAY_INX|CHDIR|DEPENDENCY|ERROR|INPUT|JOB_NAME|OPEN_MODE|OUTPUT|"
    r"REMOTE_CWD|STD[A-Z]+MODE|SUBMIT_DIR|WAIT|WORKING_DIR)$"
)


class Controller(JobRefused):
    """Slurm refused a request, or did not answer it. `message` contains Slurm's own words."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "slurm")


class UnknownJob(Controller):
    """Slurm has no record of the job in the request."""


def ask(
    *argv: str,
    folder: str | None = None,
    timeout_s: float = TIMEOUT_S,
    munge: str = _MUNGE,
    variables: Mapping[str, str] = NOTHING,
) -> str:
    """Return the output of one of Slurm's commands. Raises Controller with the error message, or UnknownJob.

    `munge`: the socket of the munge daemon that the command uses.
    `variables`: variables to add to the command's environment.
    """
    if _is_munged_gone(munge):  # a command of Slurm would wait for it, for more than half a minute and without a message
        raise Controller(f"munged is gone: no process listens at {munge}")
    try:
        result = subprocess.run(
            [_find_program(argv[0]), *argv[1:]],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd=folder,
            env={**environment(), **variables},
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        message = (error.stderr or b"").decode("utf-8", "replace").strip()  # its messages while it waited
        raise Controller(f"{argv[0]} did not answer within {timeout_s:g} s{': ' + message if message else ''}") from error
    except OSError as error:
        raise Controller(f"cannot start {argv[0]}: {error.strerror}") from error
    if result.returncode:
        message = (result.stderr or result.stdout).decode("utf-8", "replace").strip()
        kind = UnknownJob if words.UNKNOWN_JOB in message else Controller
        raise kind(message or f"{argv[0]} ended with code {result.returncode}")
    return result.stdout.decode("utf-8", "replace")


def environment() -> dict[str, str]:
    """Return the environment for Slurm's commands.

    It contains the login's settings for jobs (an account, a QoS, a partition) and the user's real home. Variables that move a
    job's output or folder, or change the commands' output, are left out.
    """
    variables = {name: value for name, value in os.environ.items() if not _DROPPED.match(name)}
    if "SLURM_JOB_ID" in os.environ:  # the shell itself runs in a job, which these variables describe
        variables = {name: value for name, value in variables.items() if name == "SLURM_CONF" or not name.startswith("SLURM_")}
    if "SBATCH_CLUSTERS" in variables:  # squeue and scancel look for the jobs in the same cluster
        variables["SLURM_CLUSTERS"] = variables["SBATCH_CLUSTERS"]
    return {**variables, "HOME": pwd.getpwuid(os.getuid()).pw_dir, "SLURM_TIME_FORMAT": "standard", "LC_ALL": "C.UTF-8"}


def read_login_functions() -> dict[str, str]:
    """Return the functions that a login shell of bash exports, such as `module`, as variables for jobs.

    The shells between sshd and this process may have dropped them. The result is empty if they kept them, or if there is no
    bash.
    """
    if any(name.startswith("BASH_FUNC_") for name in os.environ) or shutil.which("bash") is None:
        return {}
    mark = "gpucourse-begins"
    try:
        shell = subprocess.run(
            ["bash", "-lc", f"printf '%s\\0' {mark}; exec env -0"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_LOGIN_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    entries = shell.stdout.decode("utf-8", "surrogateescape").partition(mark + "\0")[2].split("\0")
    pairs = (entry.partition("=") for entry in entries)
    return {name: value for name, _, value in pairs if _OF_MODULES.match(name) and name not in os.environ}


def describe_cluster() -> dict[str, Any]:
    """Return each partition of the cluster with its groups of identical nodes.

    Also return the partitions that SBATCH_PARTITION and SLURM_PARTITION name in the user's login shell, or empty strings.
    """
    partitions: dict[str, dict[str, Any]] = {}
    for group in words.groups(ask("sinfo", "-h", "-a", "-e", "-o", words.GROUPS)):
        name = group.pop("partition")
        facts = {field: group.pop(field) for field in ("default", "open", "max_s")}
        partitions.setdefault(name, {"name": name, **facts, "nodes": []})["nodes"].append(group)
    return {
        "partitions": list(partitions.values()),
        "batch_partition": environment().get("SBATCH_PARTITION", ""),
        "session_partition": environment().get("SLURM_PARTITION", ""),
    }


def list_nodes(*options: str) -> list[words.Row]:
    """Return a row for each node of each partition."""
    return words.nodes(ask("sinfo", "-h", "-a", "-N", *options, "-o", words.NODES))


def show_queue() -> str:
    """Return this user's queue as squeue prints it, below the squeue command itself."""
    return f"$ squeue -u {user_name()}\n{ask('squeue', '-u', user_name())}"


def user_name() -> str:
    """Return the name of the current user."""
    return pwd.getpwuid(os.getuid()).pw_name


def host() -> str:
    """Return the name of this machine, in the form that Slurm uses."""
    return socket.gethostname().split(".")[0]


def _is_munged_gone(munge: str) -> bool:
    """Return whether munged has left its socket behind and no longer answers. A missing or different socket proves nothing."""
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(1.0)
        try:
            line.connect(munge)
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False


def _find_program(name: str) -> str:
    path = shutil.which(name) or shutil.which(name, path=_PLACES)
    if path is None:  # Slurm may be only on the path of a login shell
        shell = subprocess.run(
            ["/bin/sh", "-lc", "command -v " + name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
        )
        lines = shell.stdout.decode().strip().splitlines()
        if not lines:
            raise Controller(f"{name}: command not found")
        path = lines[-1]
    return path
