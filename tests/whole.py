"""Many tests at a time: `python -m tests.whole [--slow] [what pytest takes]`, which is what `make test` and `make slow` do.

Without `--slow` every test runs that is not marked `slow`, with it every test that is: both together are all tests, and
none runs twice. Groups run beside each other, each as a pytest of its own: tests that keep the processors busy, three at a
time, for each waits now and then; tests that mostly wait, more at a time; and, with `--slow`, random input
for FUZZ_SECONDS. Nothing is retried. The first group is shown as it goes, the others when they have ended. Where a pytest
breaks off, another runs what it left. What failed is named again at the end; the last line is the summary of everything.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tests import once
from tests.forks import SHARED
from tests.waiting import STUCK_S
from tests.workers import offer_forks

ROOT = Path(__file__).parent.parent
# Without bytecode every worker, and every process that a test starts, would compile all of it anew.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
WAITING = (
    "tests/system/test_real_boot.py",
    "tests/system/test_hostile_node.py",
    "tests/system/test_bad_luck_nodes.py",
    "tests/system/aws",
    "tests/system/test_terraform_aws.py",
    "tests/system/test_hosts.py",
    "tests/system/test_hostile_memory.py",
    "tests/system/test_drills.py",
    "tests/system/test_bad_luck_runs.py",
    "tests/system/test_coach.py",
    "tests/system/test_link.py",
    "tests/system/test_slurm_daemons.py",
    "tests/system/test_slurm_bad_luck.py",
    "tests/system/test_one_host.py",
    "tests/system/test_hosts_matrix.py",
    "tests/system/test_exercises_crashes.py",
    "tests/system/test_exercises_on_nodes.py",
    "tests/system/test_trips.py",
)
"""What waits for Terraform's AWS provider, or for nodes that are silent; what takes longest first."""

WAITING_TOO = (
    "tests/system/test_slurm_exercises.py",
    "tests/system/test_slurm_own_files.py",
    "tests/system/test_slurm_machines.py",
    "tests/system/test_slurm_destroyed.py",
    "tests/system/test_simulated_nodes_host.py",
    "tests/system/test_simulated_nodes_sessions.py",
    "tests/system/test_plain_user.py",
    "tests/system/test_simulated_nodes_terraform.py",
    "tests/system/test_provision_luck.py",
    "tests/system/test_provision_signals.py",
    "tests/system/test_provision_stack.py",
    "tests/system/test_first_boot_slurm.py",
    "tests/system/test_first_boot.py",
    "tests/system/test_remote_logs.py",
    "tests/system/test_remote_jobs.py",
    "tests/system/test_rendezvous.py",
    "tests/system/test_whole_run.py",
)
"""What waits for Slurm or for Terraform two to five times as long as it computes. In `make test` they are with the others that
wait: both groups are to end at the same time, else a processor is idle in the end."""

BUSY_IMPORTS = ("torch", "tests.mock_aws.warm")
FUZZ = "tests/fuzz"
NOTHING_COLLECTED = 5
BROKE_OFF = 3
"""An error of pytest itself; where a signal ended it, its code is negative."""
FAILED = re.compile(r"(FAILED|ERROR) \S|replacing crashed worker|INTERNALERROR> \w")
SHOWN = 60
"""So many lines name what failed in a group."""
COUNTED = re.compile(r"(\d+) (passed|failed|skipped|errors?|xfailed|xpassed|warnings?|deselected)\b")


@dataclass
class Group:
    """Some of the tests, as a pytest of their own."""

    name: str
    title: str
    workers: int
    chosen: Sequence[str]
    modules: Sequence[str] = ()
    """What many of its tests import when they run."""
    counts: Counter[str] = field(default_factory=Counter)
    code: int = 0
    seconds: float = 0.0
    failed: list[str] = field(default_factory=list)
    process: subprocess.Popen[str] | None = None
    stopped: bool = False

    def command(self, python: str, *more: str) -> list[str]:
        """What starts it. `python`: starts its workers, if it has any."""
        workers = ("--tx", f"{self.workers}*popen//python={python}", "--dist", "loadfile", "--no-loadscope-reorder")
        apart = ["-p", "tests.once", "-o", f"cache_dir=.pytest_cache/{self.name}"]
        if (
            SHARED in ENVIRONMENT
        ):  # pytest tidies up among the folders of earlier runs, and trips over another that does the same
            apart.append(f"--basetemp={ENVIRONMENT[SHARED]}/{self.name}")
        return [sys.executable, "-m", "pytest", *self.chosen, *(workers if python else ()), *apart, *more]

    def run(self, arguments: Sequence[str], output: IO[str]) -> None:
        """Run it to its end; pytest's output goes to `output`, how it ended into this object. Where pytest breaks off, for an
        error of its own or a signal, another one runs the rest."""
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="tests-", ignore_cleanup_errors=True) as notes:
            begun, before = once.prepare(Path(notes)), -1
            while (code := self.run_pytest(arguments, output, notes)) == BROKE_OFF or code < 0:
                begun, before = once.prepare(Path(notes)), begun
                if self.stopped or begun == before:
                    break
                output.write("\npytest broke off: another one runs what it left\n")
        self.seconds = time.monotonic() - began

    def run_pytest(self, arguments: Sequence[str], output: IO[str], notes: str) -> int:
        """Run one pytest; its exit code."""
        last = ""
        environment = ENVIRONMENT | {once.NOTES: notes}
        with ExitStack() as stack:
            python = ""
            if self.workers > 1:
                forks = offer_forks(Path(notes, "workers"), self.chosen, ROOT, environment, modules=self.modules)
                python = stack.enter_context(forks)
            self.process = subprocess.Popen(
                self.command(python, *arguments),
                cwd=ROOT,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                bufsize=1,
                start_new_session=True,  # a terminal's Ctrl-C comes to this process alone, which passes it on once
            )
            if self.stopped:  # while it was being started
                self.stop()
            with self.process as process:
                for line in process.stdout or ():
                    output.write(line)
                    output.flush()
                    last = line if line.strip() else last
                    if FAILED.match(line):
                        self.failed.append(line)
        self.end(process.returncode, last)
        return process.returncode

    def stop(self) -> None:
        """End it where it still runs: its workers bring their fixtures to an end (tests/once.py), which take down what they put
        up. What has not ended by then is killed."""
        self.stopped = True
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            limit = threading.Timer(STUCK_S, self.process.kill)
            limit.daemon = True
            limit.start()

    def end(self, code: int, summary: str) -> None:
        """Keep pytest's exit code, unless an earlier one was worse, and add the numbers in the last line that it wrote."""
        self.code = max(self.code, abs(code))  # negative: a signal ended it
        self.counts += Counter({word.rstrip("s") if word != "passed" else word: int(n) for n, word in COUNTED.findall(summary)})


def groups(*, slow: bool) -> list[Group]:
    """What runs beside each other."""
    waiting = WAITING if slow else (*WAITING_TOO, *WAITING)
    elsewhere = (*waiting, FUZZ) if slow else waiting
    chosen = [
        Group("busy", "tests that keep the processors busy", 3, [f"--ignore={path}" for path in elsewhere], BUSY_IMPORTS),
        Group("waiting", "tests that mostly wait, for Terraform, for Slurm or for nodes that are silent", 4, waiting),
    ]
    if slow:
        chosen.append(Group("fuzz", "random input", 1, [FUZZ]))
    return chosen


def main(arguments: Sequence[str]) -> int:
    """Run the tests; pytest's exit code for all of them together."""
    slow = "--slow" in arguments
    marked = ["-m", "slow" if slow else "not slow", *(word for word in arguments if word != "--slow")]
    return run_beside(groups(slow=slow), marked)


def run_beside(groups: Sequence[Group], arguments: Sequence[str]) -> int:
    """Run the groups at the same time; show the first as it goes, then the others, then the summary. Returns the exit code.

    SIGTERM ends them all, and so do Ctrl-C and a terminal that is closed; the summary counts what was run by then.
    """
    began = time.monotonic()
    first, *others = groups
    with ExitStack() as stack:
        folder = tempfile.TemporaryDirectory(prefix="tests-", ignore_cleanup_errors=True)  # short: sockets lie below it
        ENVIRONMENT[SHARED] = stack.enter_context(folder)
        ENVIRONMENT.setdefault("GPUCOURSE_TESTS_CACHE", ENVIRONMENT.get("XDG_CACHE_HOME") or str(Path.home() / ".cache"))
        ENVIRONMENT["XDG_CACHE_HOME"] = f"{ENVIRONMENT[SHARED]}/cache"  # what the CUDA emulator compiles, it compiles once
        logs = [stack.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")) for _ in others]
        threads = [threading.Thread(target=group.run, args=(arguments, log)) for group, log in zip(others, logs, strict=True)]
        stack.callback(_end, groups, threads)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            stack.callback(signal.signal, number, signal.signal(number, lambda *_: _stop(groups)))
        for thread in threads:
            thread.start()
        _write(f"{first.title} (beside them, shown afterwards: {'; '.join(group.title for group in others)})")
        first.run(arguments, sys.stdout)
        for group, thread, log in zip(others, threads, logs, strict=True):
            thread.join()
            log.seek(0)
            _write(group.title)
            sys.stdout.write(log.read())
    return _summarize(groups, time.monotonic() - began)


def _stop(groups: Sequence[Group]) -> None:
    for group in groups:
        group.stop()


def _end(groups: Sequence[Group], threads: Sequence[threading.Thread]) -> None:
    _stop(groups)
    for thread in threads:
        thread.join()


def _summarize(groups: Sequence[Group], seconds: float) -> int:
    for group in groups:
        if group.failed:
            _write(f"what failed among {group.title}")
            sys.stdout.writelines(group.failed[-SHOWN:])
    for group in groups:
        _write(f"{group.title}: {_count(group.counts)} in {group.seconds:.0f}s")
    together = sum((group.counts for group in groups), Counter[str]())
    _write(f"{_count(together)} in {seconds:.2f}s", frame="=====", gap="")
    codes = {group.code for group in groups}
    if codes == {NOTHING_COLLECTED}:
        return NOTHING_COLLECTED
    return max(codes - {NOTHING_COLLECTED})


def _count(counts: Counter[str]) -> str:
    words = ("failed", "error", "passed", "skipped", "deselected", "xfailed", "warning")
    return ", ".join(f"{counts[word]} {word}" for word in words if counts[word]) or "no tests ran"


def _write(text: str, *, frame: str = "-----", gap: str = "\n") -> None:
    sys.stdout.write(f"{gap}{frame} {text} {frame}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
