"""Run one rank: start the script in its own process, write both its outputs to the rank's log, byte for byte, and record how it
ended.

The script gets the arguments, environment and folder that it would get without this process in between. Signals from the
launcher are passed on. If this process is killed, the kernel kills the script (Linux).
"""

from __future__ import annotations

import os
import resource
import signal
import time
from contextlib import suppress

from gpucourse.remote.agent import reap
from gpucourse.remote.agent.job import Job

GROUP, GROUP_FILE = "group", "GPUCOURSE_GROUP_FILE"
"""The file for the sizes of a rank's process groups, and the variable that names it."""
_HANDED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_MAX_BYTES, _MAX_DIGITS = 1 << 16, 6


def run(job: Job, argv: list[str]) -> int:
    """Run `argv` as the rank that $RANK names. End as the script ends, with its exit code or by its signal."""
    rank, restart = int(os.environ.get("RANK", "0")), _count_restarts(job)
    log = os.open(job.path("logs", f"rank{rank}.log"), os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    if restart:
        _begin_again(job, rank, restart, log)
    group_file = job.path("ranks", f"{rank}.{GROUP}")
    if os.path.exists(group_file):  # the file of the rank's life before the restart
        os.unlink(group_file)
    os.environ[GROUP_FILE] = group_file
    signal.pthread_sigmask(signal.SIG_BLOCK, _HANDED_ON)
    start_time, me = time.time(), os.getpid()
    pid = os.fork()
    if pid == 0:
        _become(argv, log, me)
    with suppress(OSError):  # both processes do this: a signal needs the group, and may arrive before the slower one runs
        os.setpgid(pid, pid)
    for handed_on in _HANDED_ON:
        signal.signal(handed_on, lambda signal_number, _frame: _hand_on(pid, signal_number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDED_ON)
    job.write(f"ranks/{rank}.pid", {"rank": rank, "pid": pid, "wrapper": me})
    _, status = os.waitpid(pid, 0)
    end_time = time.time()
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    code = 128 + number if number else os.WEXITSTATUS(status)
    end = {"rank": rank, "code": code, "at": end_time, "seconds": end_time - start_time, "restart": restart}
    group = largest_group(group_file)
    job.write(f"ranks/{rank}.json", end if group is None else dict(end, group=group))
    if number:
        _die_by(number)
    return code


def largest_group(path: str) -> int | None:
    """Return the size of the largest process group in the file that torch's extension wrote.

    Return None if the file has no lines, or if the rank made only groups of simulated ranks. In both cases, it is unknown
    whether the rank worked with other ranks.
    """
    try:
        with open(path, "rb") as file:
            lines = file.read(_MAX_BYTES).split()
    except OSError:
        return None
    largest = max((int(line) for line in lines if line.isdigit() and len(line) < _MAX_DIGITS), default=None)
    return None if b"simulated" in lines and not largest else largest


def _count_restarts(job: Job) -> int:
    """Return how often torchrun has restarted the ranks. In a run without restarts, the environment is ignored, and the result
    is 0."""
    count = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return min(int(count), job.max_restarts()) if count.isdigit() and int(count) else 0


def _begin_again(job: Job, rank: int, restart: int, log: int) -> None:
    """Keep the record of the rank's end before the restart, and add a line about the restart to the log."""
    last_end = job.read("ranks", f"{rank}.json")
    if last_end:
        os.rename(job.path("ranks", f"{rank}.json"), job.path("ranks", "{}.{}.json".format(rank, last_end.get("restart", 0))))
    size = os.fstat(log).st_size
    cut_off = size > 0 and os.pread(log, 1, size - 1) != b"\n"
    os.write(log, f"{chr(10) * cut_off}--- restart {restart} ---\n".encode())


def _become(argv: list[str], log: int, parent: int) -> None:
    """Replace this process, which was just forked, with the script. Never return."""
    try:
        os.setpgid(0, 0)
        reap.die_with_parent(parent)
        os.dup2(log, 1)
        os.dup2(log, 2)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDED_ON)
        os.execvp(argv[0], argv)
    except OSError as error:
        os.write(2, (f"cannot start {argv[0]}: {error.strerror}\n").encode("utf-8", "surrogateescape"))
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)
    finally:
        os._exit(126)


def _hand_on(pid: int, number: int) -> None:
    with suppress(OSError):
        os.killpg(pid, number)


def _die_by(number: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def expand(argv: list[str], python: str, agent: str, run_id: str) -> list[str]:
    """Return the command after replacing the first `{rank}` with the wrapper. Any later ones belong to the script."""
    if "{rank}" not in argv:
        return list(argv)
    place = argv.index("{rank}")
    return [*argv[:place], python, "-I", "-S", agent, "rank", run_id, *argv[place + 1 :]]
