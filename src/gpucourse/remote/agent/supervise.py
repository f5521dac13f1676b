"""The supervisor of a run. It enforces the run's time limit, ends its remaining processes, and records how it ended. The
supervisor works without a client."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from typing import Any

from gpucourse.remote.agent import drill, reap, scratch, store
from gpucourse.remote.agent.job import MARK, Job
from gpucourse.remote.agent.rank import expand

_LEFT_GRACE_S = 2.0
_TRIM_S = 0.5  # a loop that prints writes some hundred megabytes in that time
_MACHINE_S = 8.0
_SYSTEM = ":/usr/local/sbin:/usr/sbin:/sbin"  # chroot, sysctl: Debian leaves them out of a plain user's PATH


def supervise(job: Job, spec: dict[str, Any], agent: str, lock: int) -> None:
    """Start the run's command and stay until none of its processes is left.

    The answer on standard output reports that the command was started, or why it was not.
    """
    wake = _wake_on_signals(job)
    reap.adopt_orphans()
    job.write("supervisor.pid", os.getpid())
    hand = drill.begin(job, spec["drill"], (1, lock)) if "drill" in spec else None
    start_s = time.monotonic()
    try:
        launcher = _launch(job, spec, agent)
    except OSError as error:
        if hand is not None:
            drill.end(hand)
        message = "cannot start {}: {}".format(error.filename or "the command", error.strerror)
        with open(job.path("logs", "launcher.log"), "a") as log:
            log.write(message + "\n")
        scratch.remove(job)
        finish(job, {"code": 127, "reason": "exited", "seconds": 0.0, "killed": 0})
        os.write(1, json.dumps({"error": message}).encode())
        return
    job.write("pid", launcher.pid)
    os.write(1, json.dumps({"state": "running", "pid": launcher.pid}).encode())
    os.dup2(2, 1)  # the answer ends here
    # A separate process, so that neither a hanging nvidia-smi nor the removal of other runs delays this run.
    argv = [sys.executable, "-I", "-S", agent, "describe", job.run_id, spec["python"], *spec["collected"]]
    describing = subprocess.Popen(argv, stdin=subprocess.DEVNULL, start_new_session=True)

    def members() -> list[int]:
        return sorted({*reap.find_marked(job.folder), *reap.below(os.getpid(), spare=describing.pid)} - {hand})

    reason = _wait(job, launcher, start_s + spec["timeout_s"], wake)
    if hand is not None:
        drill.end(hand)  # before the run's processes: it might stop a process that has to end
        hand = None
    was_killed = 0
    if reason != "exited":
        was_killed = reap.end(job, job.read("cancelled").get("grace_s", spec["grace_s"]), members)
    code = launcher.wait()
    seconds = time.monotonic() - start_s
    was_killed += reap.end(job, _LEFT_GRACE_S, members)
    code = 128 - code if code < 0 else code
    if reason != "exited" and code == 0:
        code = 124 if reason == "timed_out" else 143
    try:
        describing.wait(_MACHINE_S)
    except subprocess.TimeoutExpired:
        os.killpg(describing.pid, signal.SIGKILL)
        describing.wait()
    scratch.remove(job)
    finish(job, {"code": code, "reason": reason, "seconds": seconds, "killed": was_killed})


def finish(job: Job, end: dict[str, Any]) -> None:
    """Record how the run ended. The file `done` is written last."""
    job.trim_logs(job.log_limit())
    if not end.get("later"):  # Slurm jobs that may still write to their copies
        store.share(job)
    job.write("exit.json", dict(end, at=time.time()), flush=True)
    job.write("done", {}, flush=True)


def settle(job: Job) -> bool:
    """If the supervisor of the run has vanished, end the run's remaining processes and record the end of the run. Return
    whether it had vanished.

    A supervisor vanishes if it is killed or the node reboots.
    """
    lock = job.lock() if job.state() == "lost" else None
    if lock is None:
        return False
    if not job.has("done"):
        was_killed = reap.end(job, _LEFT_GRACE_S)
        scratch.remove(job)
        finish(job, dict(job.read_end(), killed=was_killed))
    os.close(lock)
    return True


def cancel(job: Job, grace_s: float) -> str:
    """End the run and all of its processes, and return its state. This may be called repeatedly."""
    if job.state() == "absent":
        os.makedirs(job.folder, 0o700, exist_ok=True)
        _note_cancel(job, grace_s)
    deadline = time.monotonic() + grace_s + 3 * _LEFT_GRACE_S
    while job.is_supervised() and not job.has("done") and time.monotonic() < deadline:
        request_end(job, grace_s)
        for _ in range(10):
            if job.has("done"):
                break
            time.sleep(0.03)
    reap.end(job, grace_s)
    settle(job)
    return job.state()


def request_end(job: Job, grace_s: float) -> None:
    """Ask the supervisor of a run to end it, but do not wait. Do nothing if the run has not begun or has ended."""
    if not job.has("job.json") or job.has("done"):
        return
    _note_cancel(job, grace_s)
    supervisor = job.pid("supervisor.pid") if job.is_supervised() else None
    if supervisor is not None:
        reap.signal_each([supervisor], signal.SIGTERM)
        reap.signal_each([supervisor], signal.SIGCONT)


def _launch(job: Job, spec: dict[str, Any], agent: str) -> subprocess.Popen[bytes]:
    full = {name: value for name, value in os.environ.items() if not name.startswith("SSH_")}
    full["PATH"] = full.get("PATH", os.defpath) + _SYSTEM
    full.update(scratch.make_caches(full))
    full["TMPDIR"] = scratch.make(job)
    requested = {**spec["env"], **spec["secrets"]}
    folders = (
        requested.get("PYTHONPATH"),
        full.get("PYTHONPATH"),
        scratch.avoid_colon(job, os.path.join(agent, "torch_extension")),
    )
    full.update(requested, PYTHONPATH=os.pathsep.join(folder for folder in folders if folder))
    full.update({MARK: job.folder, "GPUCOURSE_OUT": job.path("outputs"), "GPUCOURSE_RUN_ID": job.run_id})
    full["PYTHONUNBUFFERED"] = "1"
    with open(job.path("logs", "launcher.log"), "ab") as log:
        return subprocess.Popen(
            expand(spec["argv"], spec["python"], agent, job.run_id),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=job.path("work"),
            env=full,
            start_new_session=True,
        )


def _wait(job: Job, launcher: subprocess.Popen[bytes], deadline: float, wake: int) -> str:
    """Wait for the end of the run, and return `exited`, `timed_out` or `cancelled`. Meanwhile, keep the logs within their
    limit."""
    limit = job.log_limit()
    while True:
        job.trim_logs(limit)
        if launcher.poll() is not None:
            return "cancelled" if job.has("cancelled") else "exited"
        if job.has("cancelled"):
            return "cancelled"
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            return "timed_out"
        if select.select([wake], [], [], min(remaining, _TRIM_S))[0]:
            os.read(wake, 4096)


def _wake_on_signals(job: Job) -> int:
    """Return a descriptor that becomes readable when a signal arrives, so that the signal ends a wait.

    TERM, which a node's shutdown also sends, cancels the run. No signal is ignored, because the run's own processes would
    inherit that.
    """
    listen, say = os.pipe()
    os.set_blocking(say, False)
    signal.set_wakeup_fd(say, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: None)
    signal.signal(signal.SIGTERM, lambda _number, _frame: _note_cancel(job, _LEFT_GRACE_S))
    return listen


def _note_cancel(job: Job, grace_s: float) -> None:
    if not job.has("cancelled"):
        job.write("cancelled", {"grace_s": grace_s})


def describe(job: Job, python: str, collected: list[str]) -> None:
    """Write env.json, and remove the oldest of the `collected` runs."""
    from gpucourse.remote.agent import machine, prune

    os.nice(10)  # the ranks start at this moment, and have priority
    try:
        job.write("env.json", machine.describe(python))
    finally:  # even if the disk is too full for env.json: this frees space
        prune.prune(collected)
