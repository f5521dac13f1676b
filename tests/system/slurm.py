"""A real Slurm for tests: the lab of module 2, and the output of its own commands, which bypass gpucourse."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gpucourse.local import health
from tests.system.cli import COMMAND, Learner
from tests.waiting import STUCK_S, until

OWN = ("run", "--launcher", "slurm", "--nodes", "1", "--script")
"""The words that run a learner's own script as a job on one node. The script's name follows them."""
EXERCISES = Path(__file__).parents[2] / "exercises" / "02-slurm"
PARTS = ("slurmctld", "slurmd", "sbatch", "munged")


def stand_up(learner: Learner) -> None:
    """Deploy the lab of module 2. Skip the test without Slurm."""
    need_slurm()
    learner.types("deploy", "2")


def need_slurm() -> None:
    """Skip the test if Slurm is not installed."""
    searched = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    if missing := [part for part in PARTS if shutil.which(part, path=searched) is None]:
        pytest.skip(f"not installed: {', '.join(missing)}")


def on_head(learner: Learner, command: str, *, code: int | None = 0) -> str:
    """Return the output of a command on the head."""
    return learner.types("ssh", "2", "--", command, code=code).out


def queue(learner: Learner) -> list[str]:
    """Return the waiting and running jobs of the newest run: `ID STATE`.

    Jobs that the jobs of an earlier run submitted may still be running, such as the last step of 2.1.
    """
    lines = on_head(learner, "squeue -h -o '%i %T %Z'").splitlines()
    return [line.rpartition(" ")[0] for line in lines if f"/{learner.run_folder().name}" in line]


def nodes_folder(learner: Learner) -> Path:
    """Return the folder of the process that hosts the machines."""
    return learner.workspace / ".gpucourse" / "stacks" / "02-local" / "nodes"


def inside(learner: Learner, name: str, *argv: str) -> str:
    """Return the output of a command that runs as root on a machine, without SSH, as an administrator would run it."""
    return str(health.ask_host(nodes_folder(learner), "run", {"name": name, "argv": list(argv)}, timeout_s=STUCK_S)["output"])


def power_off(learner: Learner, name: str) -> None:
    """Cut a machine's power."""
    health.ask_host(nodes_folder(learner), "power", {"name": name, "way": "off"}, timeout_s=STUCK_S)


def read_verdicts(learner: Learner) -> dict[str, str]:
    """Return the verdict of each check on the newest run."""
    checks = json.loads((learner.run_folder() / "verdict.json").read_text())["checks"]
    return {check["id"]: check["verdict"] for check in checks}


def script(folder: Path, text: str) -> str:
    """Return a script of the learner's own, and where it is."""
    path = folder / "own.py"
    path.write_text(text, encoding="utf-8")
    return str(path)


def eventually(learner: Learner, words: str, command: str) -> str:
    """Wait until a command on the head prints these words, and return its output."""
    match = until(lambda: re.search(words, on_head(learner, command, code=None)), f"{words!r} from {command}")
    return str(match.string)


def head(learner: Learner) -> dict[str, Any]:
    """Return the node that accepts jobs, according to the lab's record."""
    record = next((learner.workspace / ".gpucourse" / "deployments").glob("02-*.json"))
    nodes = json.loads(record.read_text())["inventory"]["nodes"]
    return dict(next(node for node in nodes if node["role"] == "head"))


def in_terminal(
    learner: Learner, words: Sequence[str], steps: Sequence[tuple[str, str]], *, closed_at: str = ""
) -> tuple[int, str]:
    """Type a command in a terminal of its own, and then each answer once its words are on the screen. Return the exit code and
    the screen.

    `closed_at`: the terminal's window is closed once these words are on the screen, after all answers.
    """
    environment = {**learner.environment, "TERM": "xterm", "COLUMNS": "120", "LINES": "40"}
    child, master = pty.fork()
    if child == 0:
        try:
            os.execve(COMMAND[0], [*COMMAND, *words], environment)
        finally:
            os._exit(127)  # a second process of these tests would go on with them
    screen, read = b"", 0
    waiting = list(steps)
    deadline = time.monotonic() + STUCK_S
    try:
        while True:
            if waiting and (match := re.search(waiting[0][0].encode(), screen[read:])):
                read += match.end()
                os.write(master, waiting.pop(0)[1].encode())
            if closed_at and not waiting and re.search(closed_at.encode(), screen[read:]):
                break
            assert time.monotonic() < deadline, f"waiting for {waiting[:1]}:\n{screen.decode(errors='replace')}"
            if select.select([master], [], [], 0.2)[0]:
                try:
                    data = os.read(master, 1 << 16)
                except OSError:  # the last program has left the terminal
                    break
                if not data:
                    break
                screen += data
    finally:
        os.close(master)
        _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), screen.decode(errors="replace")
