"""Exercises as a learner runs them, for tests: by hand, by a command of a learner, or a copy of the script with a fault."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpucourse.course.catalog import load
from gpucourse.course.locate import find_course
from gpucourse.course.parameters import arguments, resolve
from gpucourse.figures.plots import draw
from gpucourse.grading.checks import evaluate
from gpucourse.grading.printed import RankLog, find_differences, split_lines
from gpucourse.model.manifest import Exercise
from gpucourse.model.verdict import CheckResult, ExerciseVerdict
from tests import forks
from tests.parts import needs_module
from tests.ports import take_port
from tests.system.cli import Learner
from tests.waiting import STUCK_S

needs_torch = needs_module("torch")

FOLDERS = find_course({})
CATALOG = load(FOLDERS)
DEADLINE_S = 240  # a busy machine takes several times what an idle one does
Changes = Sequence[tuple[str, str, str]]
FAKE_GPU = Path(__file__).parents[1] / "fake_gpu"


@dataclass(frozen=True)
class Finished:
    """A run that has ended: how, what it said, what it measured."""

    exercise: Exercise
    code: int
    output: str
    metrics: dict[str, Any]
    ranks: int

    def verdict(self, *, hosts: int = 1) -> ExerciseVerdict:
        plan = {"world_size": self.ranks, "nodes": hosts}
        return evaluate(self.exercise, self.metrics, plan, {"state": "succeeded"}, mode="local", run_id="test")

    def check(self, name: str) -> CheckResult:
        return next(check for check in self.verdict().checks if check.id == name)


def with_a_gpu(out: Path) -> dict[str, str]:
    """The environment of a script on a machine with a GPU; its Python finds one that the processor plays."""
    return environment(out) | {"GPUCOURSE_BACKEND": "nccl", "GPUCOURSE_MODE": "hosts", "PYTHONPATH": str(FAKE_GPU)}


def environment(out: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(out),
        "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(out / ".cache")),  # the emulator is compiled once
        "OMP_NUM_THREADS": "1",
        "GLOO_SOCKET_IFNAME": "lo0" if sys.platform == "darwin" else "lo",
        "GPUCOURSE_BACKEND": "gloo",
        "GPUCOURSE_MODE": "local",
        "GPUCOURSE_NODE": "node0",
        "GPUCOURSE_OUT": str(out),
        "GPUCOURSE_COLLECTIVE_TIMEOUT_S": "60",
    }


def wait(process: subprocess.Popen[str] | forks.Fork) -> str:
    """What the process said until it ended; past the deadline it is asked to end."""
    try:
        return process.communicate(timeout=DEADLINE_S)[0]
    except subprocess.TimeoutExpired:
        process.terminate()
        return process.communicate(timeout=STUCK_S)[0] + "\n(past the deadline)"


def start(command: list[str], folder: Path, env: dict[str, str]) -> subprocess.Popen[str] | forks.Fork:
    """Start a command; a script that a fork with torch in it can run as well is run by one."""
    if forks.can_start(command, env):
        return forks.Fork(command, folder, env)
    return subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def read_finished(exercise: Exercise, code: int, output: str, out: Path, ranks: int) -> Finished:
    path = out / "metrics.json"
    metrics = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return Finished(exercise, code, output, metrics, ranks)


def flags(exercise: Exercise, **settings: str) -> list[str]:
    return list(arguments(exercise, resolve(exercise, settings, local=True)))


def lay_out(exercise_id: str, folder: Path) -> tuple[Exercise, Path]:
    """The exercise's files side by side, as on a node."""
    module, exercise = CATALOG.exercise(exercise_id)
    folder.mkdir()
    for name, place in CATALOG.sources(module, exercise).items():
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(FOLDERS.exercises / place, folder / name)
    return exercise, folder / exercise.script


def run_ranks(exercise_id: str, ranks: int, folder: Path, /, **settings: str) -> Finished:
    """The exercise as it is, by so many ranks that torchrun might have started. (test_exercises_on_nodes.py has torchrun.)"""
    return run_with_changes(exercise_id, folder, ranks=ranks, **settings)


def run_with_changes(exercise_id: str, folder: Path, /, *changes: tuple[str, str], ranks: Any = 2, **settings: str) -> Finished:
    """Ranks (a whole number) of a copy of the script in which words were replaced."""
    exercise, script = lay_out(exercise_id, folder)
    text = script.read_text(encoding="utf-8")
    for old, new in changes:
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {script.name}"
        text = text.replace(old, new)
    script.write_text(text, encoding="utf-8")
    meeting = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(take_port())}
    command = [sys.executable, script.name, *flags(exercise, **settings)]
    processes = [
        start(command, folder, {**environment(folder), **meeting, "RANK": str(rank), "LOCAL_RANK": str(rank)})
        for rank in range(ranks)
    ]
    outputs = [wait(process) for process in processes]
    code = max(abs(process.returncode) for process in processes)
    return read_finished(exercise, code, "\n".join(outputs), folder, ranks)


def words(verdict: ExerciseVerdict) -> dict[str, str]:
    """What did not pass, and why."""
    return {check.id: f"{check.verdict}: {check.observed}" for check in verdict.checks if check.verdict != "passed"}


def replace_words(folder: Path, changes: Changes) -> None:
    """In each file (name, old, new) of the folder the old words, which stand there once, by the new ones."""
    for name, old, new in changes:
        text = (folder / name).read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {name}"
        (folder / name).write_text(text.replace(old, new), encoding="utf-8")


def with_faults(exercise_id: str, folder: Path, *changes: tuple[str, str, str], **settings: str) -> Finished:
    """One process, as on a node, in whose files (name, old, new) words were replaced; none, for a healthy run."""
    exercise, script = lay_out(exercise_id, folder)
    replace_words(folder, changes)
    process = start([sys.executable, script.name, *flags(exercise, **settings)], folder, environment(folder))
    output = wait(process)
    return read_finished(exercise, process.returncode, output, folder, 1)


def run_solved(
    exercise_id: str, folder: Path, /, *parts: str, changes: Any = (), before: Any = (), **settings: str
) -> Finished:
    """One process with the course's solutions in the place of these parts, and then `changes` as `with_faults` has them; its
    log says what its metrics say. `before`: the words of a command that starts it."""
    exercise, script = lay_out(exercise_id, folder)
    solutions = FOLDERS.exercises / CATALOG.folder_name(CATALOG.exercise(exercise_id)[0]) / "solutions"
    for part in parts:
        shutil.copyfile(solutions / part, folder / part)
    replace_words(folder, changes)
    process = start([*before, sys.executable, script.name, *flags(exercise, **settings)], folder, environment(folder))
    output = wait(process)
    run = read_finished(exercise, process.returncode, output, folder, 1)
    assert run.code or list_differences(run) == [], output
    return run


def by_command_line(learner: Learner, exercise_id: str, code: int | None = 0, /, **settings: str) -> tuple[Finished, Path]:
    """A run typed by a learner whose lab exists, and that passed (`code` None: or not): what came of it, and the folder that
    came home."""
    words = [word for item in settings.items() for word in ("--set", "=".join(item))]
    typed = learner.types("run", exercise_id, *words, code=code)
    folder = learner.run_folder()
    return read_finished(CATALOG.exercise(exercise_id)[1], typed.code, typed.out + typed.err, folder, 1), folder


def list_differences(run: Finished) -> list[str]:
    """Where one process did not print what its metrics say."""
    return list(find_differences(run.exercise.logs, run.metrics, [RankLog(0, split_lines(run.output))]))


def list_failed_checks(run: Finished) -> set[str]:
    """The checks that found a fault."""
    return {check.id for check in run.verdict().checks if check.verdict == "failed"}


def list_unanswered(run: Finished) -> dict[str, str]:
    """What neither passed nor waits for a GPU, and why."""
    waits = {check.id for check in run.exercise.checks if check.evidence == "gpu"}
    return {name: why for name, why in words(run.verdict()).items() if name not in waits}


def on_cpu(run: Finished) -> set[str]:
    """The checks that a CPU cannot answer."""
    return {check.id for check in run.verdict().checks if check.verdict == "not_measured"}


def check_plots_and_tables(run: Finished, folder: Path, *, with_gaps: bool = False, without: str = "") -> None:
    """What was measured can be drawn and tabled as the manifest says. `with_gaps`: not every row has a cell in every column;
    `without`: the rows of a table that was not asked for."""
    for plot in (plot for plot in run.exercise.plots if plot.evidence == "logic" or run.metrics["cuda"]):
        assert len(draw(plot, run.metrics, subtitle="test", folder=folder)) == 2
    for table in run.exercise.tables:
        rows = run.metrics[table.rows.removeprefix("metrics.")]
        assert rows or table.rows == without, f"{table.rows} is empty"
        groups = [set().union(*rows)] if with_gaps else rows
        assert all(column.key in keys for keys in groups for column in table.columns)
