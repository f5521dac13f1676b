"""Run exercises as a learner does, or with a fault in a copy of the files."""

from __future__ import annotations

import atexit
import functools
import gzip
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gpucourse.course.parameters import arguments, resolve
from gpucourse.figures.plots import draw
from gpucourse.grading.checks import evaluate
from gpucourse.model.manifest import Exercise
from gpucourse.model.verdict import ExerciseVerdict
from tests import forks
from tests.course import CATALOG, FOLDERS
from tests.parts import needs_module
from tests.ports import take_port
from tests.waiting import STUCK_S

needs_torch = needs_module("torch")
needs_emulator = pytest.mark.skipif(
    sys.platform != "linux" or not shutil.which("g++"), reason="the emulator needs g++ on Linux"
)

DEADLINE_S = 240  # a busy machine takes several times what an idle one does
SLOW_16_BITS = ("min(bench.measure(lambda m=m: m @ m, CPU, budget_s=0.02, threads=1))", "(1.0 if m.dtype == dtype else 0.01)")
"""A change of 1.1: its processor multiplies 16-bit numbers one by one."""
FAKE_GPU = Path(__file__).parents[1] / "fake_gpu"


@dataclass(frozen=True)
class Finished:
    """An ended run: its exit code, its metrics, and the output of each rank."""

    exercise: Exercise
    code: int
    outputs: Sequence[str]
    metrics: dict[str, Any]

    @property
    def output(self) -> str:
        """Return the output of all ranks."""
        return "\n".join(self.outputs)

    def verdict(self) -> ExerciseVerdict:
        """Return the verdict of the checks in the manifest, with the ranks on one node."""
        plan = {"world_size": len(self.outputs), "nodes": 1}
        return evaluate(self.exercise, self.metrics, plan, {"state": "succeeded"}, mode="local", run_id="test")


def with_a_gpu(out: Path) -> dict[str, str]:
    """Return the environment of a script on a machine with a GPU, which is played by the processor."""
    return environment(out) | {"GPUCOURSE_BACKEND": "nccl", "GPUCOURSE_MODE": "hosts", "PYTHONPATH": str(FAKE_GPU)}


def environment(out: Path) -> dict[str, str]:
    """Return the environment of a script on a node without a GPU."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(out),
        "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME") or _make_cache(),
        "OMP_NUM_THREADS": "1",
        "GLOO_SOCKET_IFNAME": "lo0" if sys.platform == "darwin" else "lo",
        "GPUCOURSE_BACKEND": "gloo",
        "GPUCOURSE_MODE": "local",
        "GPUCOURSE_NODE": "node0",
        "GPUCOURSE_OUT": str(out),
        "GPUCOURSE_COLLECTIVE_TIMEOUT_S": "60",
    }


@functools.cache
def _make_cache() -> str:
    """Return a folder for compiled files, such as the emulator, which all tests of this process share."""
    folder = tempfile.mkdtemp(prefix="gpucourse-tests-cache-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def wait(process: subprocess.Popen[str] | forks.Fork) -> str:
    """Return what the process printed until it ended. After the deadline, it is asked to end."""
    try:
        return process.communicate(timeout=DEADLINE_S)[0]
    except subprocess.TimeoutExpired:
        process.terminate()
        return process.communicate(timeout=STUCK_S)[0] + "\n(past the deadline)"


def start(command: list[str], folder: Path, env: dict[str, str]) -> subprocess.Popen[str] | forks.Fork:
    """Start a command. If the command is a suitable script, a fork that has already imported torch runs it."""
    if forks.can_start(command, env):
        return forks.Fork(command, folder, env)
    return subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def flags(exercise: Exercise, **settings: str) -> list[str]:
    """Return these settings as words of the command line, with the local defaults of the other parameters."""
    return list(arguments(exercise, resolve(exercise, settings, local=True)))


def lay_out(exercise_id: str, folder: Path, *, solved: bool | Sequence[str] = False) -> tuple[Exercise, Path]:
    """Put the exercise's files side by side, as on a node. Some or all parts are replaced by the course's solutions."""
    module, exercise = CATALOG.exercise(exercise_id)
    folder.mkdir()
    for name, place in CATALOG.sources(exercise).items():
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(FOLDERS.exercises / place, folder / name)
    solutions = FOLDERS.exercises / CATALOG.folder_name(module) / "solutions"
    parts = [part.file for part in exercise.yours] if solved is True else solved or ()
    for part in parts:
        shutil.copyfile(solutions / part, folder / part)
    return exercise, folder / exercise.script


def replace_words(script: Path, changes: Sequence[tuple[str, ...]]) -> None:
    """Replace words that occur only once: (old, new) in the script, or (file, old, new) in a file next to it."""
    for *names, old, new in changes:
        file = script.with_name(names[0]) if names else script
        text = file.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{old!r} occurs {text.count(old)} times in {file.name}"
        file.write_text(text.replace(old, new), encoding="utf-8")


def run_exercise(
    exercise_id: str,
    folder: Path,
    /,
    *changes: tuple[str, ...],
    ranks: Any = 0,
    solved: Any = False,
    env: Any = None,
    files: Any = None,
    prefix: Any = (),
    **settings: str,
) -> Finished:
    """Run an exercise in a new folder.

    Its keyword arguments are of any type, so that a dictionary of settings can be passed with them.
    `changes`: words to replace in its files.
    `solved`: as in `lay_out`.
    `ranks`: the number of processes, started as torchrun would; 0 for one process by hand.
    `env`: variables in addition to those of a node without a GPU.
    `files`: texts of further files next to the script.
    `prefix`: the words of a command that starts it.
    """
    exercise, script = lay_out(exercise_id, folder, solved=solved)
    for name, text in (files or {}).items():
        (folder / name).write_text(text, encoding="utf-8")
    replace_words(script, changes)
    command = [*prefix, sys.executable, script.name, *flags(exercise, **settings)]
    common = {**environment(folder), **(env or {})}
    meeting = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(take_port())} if ranks else {}
    rank_variables = [{"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(ranks)] or [{}]
    processes = [start(command, folder, {**common, **meeting, **variables}) for variables in rank_variables]
    outputs = [wait(process) for process in processes]
    return read_finished(exercise, max(abs(process.returncode) for process in processes), outputs, folder)


def run_on_a_gpu(
    exercise_id: str,
    folder: Path,
    /,
    *changes: tuple[str, ...],
    solved: Any = False,
    env: Any = None,
    files: Any = None,
    **settings: str,
) -> Finished:
    """Run an exercise on a GPU that is played by the processor. The run must succeed."""
    variables = with_a_gpu(folder) | dict(env or {})
    run = run_exercise(exercise_id, folder, *changes, solved=solved, env=variables, files=files, **settings)
    assert run.code == 0, run.output
    return run


def list_earlier_throughputs() -> dict[str, str]:
    """Return files as runs of 4.3 on a T4 and on an L4 would have left them next to 4.4. Their numbers are invented, to test
    the calculation.
    """
    runs = [("NVIDIA L4", "gpt2", 4000.0), ("Tesla T4", "gpt2", 2000.0), ("NVIDIA L4", "opt-1.3b", 900.0)]
    files = {}
    for number, (device, model, speed) in enumerate(runs, 1):
        metrics = {"device": device, "model": model, "engine": "vllm", "best_batch": 8, "best_tok_per_s": speed,
                   "best_total_tok_per_s": 2 * speed, "best_power_w": 68.0}  # fmt: skip
        files[f"earlier-4.3-2026010{number}-000000-otter.json"] = json.dumps(metrics)
    return files


def write_mnist(folder: Path, count: int, *, packed: bool = True) -> Path:
    """Write a data set in MNIST's format, with three classes that differ in brightness."""
    folder.mkdir()
    labels = bytes(index % 3 for index in range(count))
    chance = random.Random(0)
    pixels = b"".join(bytes(chance.randrange(20) + 100 * label for _ in range(28 * 28)) for label in labels)
    files = {
        "train-images-idx3-ubyte": struct.pack(">HBBIII", 0, 8, 3, count, 28, 28) + pixels,
        "train-labels-idx1-ubyte": struct.pack(">HBBI", 0, 8, 1, count) + labels,
    }
    for name, data in files.items():
        (folder / (name + ".gz" * packed)).write_bytes(gzip.compress(data) if packed else data)
    return folder


def type_flags(exercise_id: str, folder: Path, *words: str, env: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Start a script by hand with only these flags. Return its exit code and its output."""
    _, script = lay_out(exercise_id, folder)
    process = start([sys.executable, script.name, *words], folder, environment(folder) | dict(env or {}))
    output = wait(process)
    return abs(process.returncode), output


def read_finished(exercise: Exercise, code: int, outputs: Sequence[str], out: Path) -> Finished:
    """Return the results of a run."""
    path = out / "metrics.json"
    metrics = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return Finished(exercise, code, outputs, metrics)


def read_mounts() -> str:
    """Return the mounts of this computer (Linux only)."""
    mounts = Path("/proc/self/mounts")
    return mounts.read_text(encoding="utf-8") if mounts.exists() else ""


def list_failed_checks(run: Finished) -> set[str]:
    """Return the checks that found a fault."""
    return {check.id for check in run.verdict().checks if check.verdict == "failed"}


def list_open_checks(run: Finished) -> dict[str, str]:
    """Return the checks that neither passed nor need a GPU, with the reasons."""
    waits = {check.id for check in run.exercise.checks if check.evidence == "gpu"}
    return {
        check.id: f"{check.verdict}: {check.observed}"
        for check in run.verdict().checks
        if check.verdict != "passed" and check.id not in waits
    }


def check_plots_and_tables(run: Finished, folder: Path) -> None:
    """Draw every plot of the manifest, and check that the rows have the columns of every table."""
    for plot in (plot for plot in run.exercise.plots if plot.evidence == "logic" or run.metrics["cuda"]):
        assert len(draw(plot, run.metrics, subtitle="test", folder=folder)) == 2
    for table in run.exercise.tables:
        rows = run.metrics[table.rows.removeprefix("metrics.")]
        keys = set().union(*rows)
        assert not rows or all(column.key in keys for column in table.columns), table.rows


def check_healthy(run: Finished, folder: Path, *, open_checks: Collection[str] = (), failures: Collection[str] = ()) -> None:
    """Check a successful run.

    `failures`: the expected failed checks.
    `open_checks`: the checks that are open until a part is written. The output must agree with the metrics, and plots and
    tables must be possible.
    """
    assert run.code == 0, run.output
    assert list_failed_checks(run) == set(failures)
    assert set(list_open_checks(run)) == {*failures, *open_checks}, list_open_checks(run)
    check_plots_and_tables(run, folder)
