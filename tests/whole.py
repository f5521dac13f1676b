"""All tests: `python -m tests.whole [--slow] [what pytest takes]`, which is what `make test` and `make slow` do.

Two groups run at the same time: tests that keep the processors busy, a worker for each of two, and tests that mostly wait,
more at a time: for Terraform's AWS provider, which looks at what it builds every few seconds, or for nodes that have fallen
silent. After them come the exercises that have to be done within a time, alone.
What fails is tried once more, alone, and that decides. The last line is the summary of everything. Tests marked `thorough`
look a second time at what others promise already: without `--slow` they are left out, and counted as deselected.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.system.cli import SHARED

ROOT = Path(__file__).parent.parent
# Without bytecode every worker, and every process that a test starts, would compile all of it anew.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
WAITING = (
    "tests/system/test_bad_luck_nodes.py",  # first, for it takes longest
    "tests/system/aws",
    "tests/system/test_terraform_aws.py",
    "tests/system/test_mock_aws_terraform.py",
    "tests/system/test_hosts.py",
    "tests/system/test_hostile_node.py",
    "tests/system/test_hostile_memory.py",
    "tests/system/test_drills.py",
    "tests/system/test_bad_luck_runs.py",
    "tests/system/test_coach.py",
    "tests/system/test_link.py",
    "tests/system/test_slurm_daemons.py",
    "tests/system/test_slurm_bad_luck.py",
    "tests/system/test_one_host.py",
)
NOTHING_COLLECTED = 5
COUNTED = re.compile(r"(\d+) (passed|failed|skipped|errors?|xfailed|xpassed|warnings?|deselected)\b")


@dataclass
class Group:
    """Some of the tests, as a pytest of their own."""

    name: str
    title: str
    workers: int
    chosen: Sequence[str]
    counts: Counter[str] = field(default_factory=Counter)
    code: int = 0

    def command(self, *more: str) -> list[str]:
        """What starts it; each group remembers its own failures."""
        return [sys.executable, "-m", "pytest", *self.chosen, "-o", f"cache_dir=.pytest_cache/{self.name}", *more]

    @property
    def beside(self) -> tuple[str, ...]:
        """How its tests run side by side: a file stays in one worker, since its tests may share a lab."""
        return ("-n", str(self.workers), "--dist", "loadfile", "--no-loadscope-reorder")

    def ended(self, code: int, summary: str) -> None:
        """Take down how it ended."""
        self.code = code
        self.counts = Counter({word.rstrip("s") if word != "passed" else word: int(n) for n, word in COUNTED.findall(summary)})


ALONE = Group("alone", "exercises whose time counts, with nothing beside them", 1, ["tests/system/test_exercises_on_nodes.py"])
BUSY = Group("busy", "tests that keep the processors busy", 2, [f"--ignore={path}" for path in (*WAITING, *ALONE.chosen)])
PATIENT = Group("patient", "tests that mostly wait, for Terraform's AWS provider or for nodes that are silent", 4, WAITING)
GROUPS = (BUSY, PATIENT, ALONE)


def main(arguments: Sequence[str]) -> int:
    """Run everything; pytest's exit code for all of it together."""
    began = time.monotonic()
    if "--slow" in arguments:
        arguments = [word for word in arguments if word != "--slow"]
    else:
        arguments = ["-m", "not thorough", *arguments]
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log,
        tempfile.TemporaryDirectory(prefix="gpucourse-tests-") as shared,
    ):
        ENVIRONMENT[SHARED] = shared
        process = subprocess.Popen(
            PATIENT.command(*PATIENT.beside, *arguments), cwd=ROOT, env=ENVIRONMENT, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            _say(f"{BUSY.title} (beside them, told afterwards: {PATIENT.title})")
            _run(BUSY, *BUSY.beside, *arguments)
            code = process.wait()
        finally:
            if process.poll() is None:
                process.terminate()  # pytest ends its workers, and they what they started
                process.wait()
        log.seek(0)
        told = log.read()
        _say(PATIENT.title)
        sys.stdout.write(told)
        PATIENT.ended(code, _last(told))
        _say(ALONE.title)
        _run(ALONE, *arguments)
        for group in GROUPS:
            if group.code not in {0, NOTHING_COLLECTED}:
                _again(group)
    return _summary(GROUPS, time.monotonic() - began)


def _run(group: Group, *words: str) -> None:
    """Run it before everybody's eyes."""
    last = ""
    with subprocess.Popen(
        group.command(*words),
        cwd=ROOT,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        bufsize=1,
    ) as process:
        for line in process.stdout or ():
            sys.stdout.write(line)
            sys.stdout.flush()
            last = line if line.strip() else last
    group.ended(process.returncode, last)


def _again(group: Group) -> None:
    """What failed, once more and alone: that decides."""
    _say("what failed, once more and alone")
    before = group.counts
    _run(group, "--last-failed", "--last-failed-no-failures", "none")
    wrong = before["failed"] + before["error"]
    if group.code == NOTHING_COLLECTED:  # pytest could not even say what failed: then that stands
        group.code, group.counts = 1, before
        return
    before.update({"passed": group.counts["passed"], "failed": group.counts["failed"] - before["failed"]})
    before["error"] = group.counts["error"]
    if wrong and group.code == 0:
        _say(f"{wrong} of these tests failed at first, and passed alone")
    group.counts = before


def _summary(groups: Sequence[Group], seconds: float) -> int:
    for group in groups:
        _say(f"{group.title}: {_counted(group.counts)}")
    together = Counter[str]()
    for group in groups:
        together.update(group.counts)
    _say(f"{_counted(together)} in {seconds:.2f}s", frame="=====", gap="")
    codes = {group.code for group in groups}
    if codes == {NOTHING_COLLECTED}:
        return NOTHING_COLLECTED
    return max(codes - {NOTHING_COLLECTED})


def _counted(counts: Counter[str]) -> str:
    words = ("failed", "error", "passed", "skipped", "deselected", "xfailed", "warning")
    return ", ".join(f"{counts[word]} {word}" for word in words if counts[word]) or "no tests ran"


def _last(told: str) -> str:
    lines = [line for line in told.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _say(text: str, *, frame: str = "-----", gap: str = "\n") -> None:
    sys.stdout.write(f"{gap}{frame} {text} {frame}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
