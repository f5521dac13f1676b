"""Run the GPU branch of every exercise on one GPU: `python -m benchmarks gpu`, or `python -m benchmarks gpu 1.1 4.2` for some.

Each exercise runs as a learner would type it by hand: with python, or with torchrun and one process for each GPU, without SSH,
Slurm or network. The checks of its manifest judge the metrics.json that it wrote. Without a GPU, every exercise runs with the
settings of simulated nodes; no figure is printed, and nothing is recorded. On a GPU, the benchmark takes at most nine minutes;
the table marks the exercises for which there was no time.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.gpu_cases import CASES, SOLUTION, Case, Figure, figures
from benchmarks.gpu_machine import Machine, end_with, find_free_port, list_lacking, look, versions_of
from benchmarks.gpu_record import FOLDER, for_plots, write
from gpucourse.course.catalog import load
from gpucourse.course.locate import find_course
from gpucourse.course.parameters import arguments, resolve
from gpucourse.grading.checks import evaluate
from gpucourse.model.manifest import Exercise
from gpucourse.model.verdict import CheckResult

MINUTES_S = 9 * 60.0  # the total limit on a GPU, which may be rented
PATIENCE = 5  # without a GPU, a case may take this many times its limit, because the processors may be busy
GRACE_S = 15.0
NO_GPU = "no GPU: not measured"
ROOT = Path(__file__).parents[1]
OF_SLURM = ("metrics.slurm", "metrics.session")
OF_LIBRARY = 0.98  # the share of the library's best that 4.2 has to reach
FOLDERS = find_course({})
CATALOG = load(FOLDERS)


@dataclass(frozen=True)
class EndedRun:
    """An ended case: the exit code (None if it was stopped at its limit), its duration, its output and its metrics."""

    code: int | None
    seconds: float
    output: str
    metrics: Mapping[str, Any]


@dataclass(frozen=True)
class Line:
    """One row of the table.
    `good`: no check failed and every figure is possible.

    `metrics`: the measurements of a run on a GPU.
    `entry`: the part of them that is recorded.
    """

    exercise: str
    ran: str
    checks: str
    figures: str
    good: bool = True
    entry: Mapping[str, Any] | None = None
    metrics: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""


def prove(
    exercise_ids: Sequence[str],
    *,
    cases: Sequence[Case] = CASES,
    recorded: Path = FOLDERS.exercises / FOLDER,
    limit_s: float | None = None,
    sides: Sequence[int] = (),
) -> int:
    """Run the cases of the named exercises (by default, of all), print a table, and record in the folder `recorded` what a GPU
    measured.

    `limit_s`: the total time limit; by default nine minutes on a GPU, and no limit without one.
    `sides`: the sizes for the library's products.

    Return 0 if all cases ran, no check failed on a GPU and no figure is above its ceiling, 2 for an unknown exercise, and 1
    otherwise.
    """
    case_ids = {case.exercise for case in cases}
    if unknown := [name for name in exercise_ids if name not in case_ids]:
        sys.stderr.write(f"there is no exercise {', '.join(unknown)} here; known: {', '.join(sorted(case_ids))}\n")
        return 2
    machine = look(FOLDERS.exercises / "shared")
    ends = time.monotonic() + ((MINUTES_S if machine.gpu else math.inf) if limit_s is None else limit_s)
    sys.stdout.write(f"{machine.gpu or NO_GPU} · {versions_of(machine)}\n\n")
    lines: list[Line] = []
    with tempfile.TemporaryDirectory(prefix="gpu-proof-") as folder:
        try:
            for case in (case for case in cases if not exercise_ids or case.exercise in exercise_ids):
                lines.append(_line(case, machine, Path(folder) / f"{len(lines):02d}-{case.exercise}", ends))
                _print_line(lines[-1])
        except KeyboardInterrupt:  # the cases measured so far are kept
            ends = time.monotonic()
        library = _library(machine, lines, ends, sides)
    lines += [library] if library else []
    sys.stdout.write(f"\n{table(lines)}\n")
    if machine.gpu and any(line.entry for line in lines):
        sys.stdout.write(f"\nwritten: {write(recorded, _record(machine, lines))}\n")
    return 0 if all(line.good for line in lines) else 1


def table(lines: Sequence[Line]) -> str:
    """Return the table as text. The figures are in the last column, because they are long."""
    rows = [
        ("exercise", "ran", "checks", "figures"),
        *((x.exercise, x.ran, x.checks, _join_figures_and_note(x)) for x in lines),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]).rstrip() for row in rows
    )


def _join_figures_and_note(line: Line) -> str:
    return " · ".join(text for text in (line.figures, line.note) if text)


def _line(case: Case, machine: Machine, folder: Path, ends: float) -> Line:
    exercise = CATALOG.exercise(case.exercise)[1]
    if case.variant and not machine.gpu:  # without a GPU, it equals the case before
        return Line(case.name, "no", "", NO_GPU)
    if 0 < machine.gpus < case.gpus:
        return Line(case.name, "no", "", f"not measured: needs {case.gpus} GPUs, and there is {machine.gpus}")
    if names := ", ".join(list_lacking(exercise)):
        return Line(case.name, "no", "", f"not measured: {names} is not installed here", good=False)
    if (remaining_s := ends - time.monotonic()) <= 0:
        return Line(case.name, "no", "", "not measured: no time was left", good=False)
    ranks = _ranks(exercise, case, machine)
    settings = _settings(exercise, case, machine, ranks)
    limit_s = min(case.limit_s * (1 if machine.gpu else PATIENCE), remaining_s)
    ended = _run(case, exercise, settings, ranks, folder, limit_s, on_gpu=bool(machine.gpu))
    if ended.code != 0:
        how = "stopped at its limit" if ended.code is None else f"ended with {ended.code}"
        sys.stdout.write("".join(f"    {line}\n" for line in ended.output.splitlines()[-8:]))
        return Line(case.name, how, "", "not measured" if machine.gpu else NO_GPU, good=False)
    if machine.gpu and not case.by_design and ended.metrics.get("cuda", "not said") is None:
        return Line(case.name, f"{ended.seconds:.1f} s on processors", "", "not measured: it did not use the GPU", good=False)
    checks = _judge(exercise, ended.metrics, settings, ranks, "hosts" if machine.gpu else "local")
    line = _make_processor_line(case, exercise, ended, checks)
    return replace(_make_gpu_line(line, exercise, ended, checks, machine, settings), note=case.note) if machine.gpu else line


def _make_processor_line(case: Case, exercise: Exercise, ended: EndedRun, checks: Sequence[CheckResult]) -> Line:
    """Return the row of a successful case without a GPU, where no figure counts. A failed check is named but is not a fault,
    because the computer may have been busy with something else.
    """
    words = [check.verdict for check in checks]
    unknown = words.count("not_measured") + len(exercise.checks) - len(checks)
    summary = f"{words.count('passed')} passed" + (f", {unknown} not measured" if unknown else "")
    summary += "".join(f", {check.verdict}: {check.id}" for check in checks if check.verdict in {"failed", "error"})
    return Line(case.name, f"{ended.seconds:.1f} s", summary, NO_GPU)


def _make_gpu_line(
    line: Line,
    exercise: Exercise,
    ended: EndedRun,
    checks: Sequence[CheckResult],
    machine: Machine,
    settings: Mapping[str, Any],
) -> Line:
    """Return the row with the figures, each with its ceiling. It is not good if a check failed or a figure is above its
    ceiling.
    """
    values: list[Figure] = figures(exercise.id, ended.metrics, machine.sheet)
    entry = {
        "settings": settings,
        "seconds": round(ended.seconds, 1),
        "checks": {check.id: check.verdict for check in checks},
        "plots": for_plots(exercise, ended.metrics),
    }
    wrong = any(check.verdict in {"failed", "error"} for check in checks)
    return replace(
        line,
        figures="; ".join(value.text for value in values),
        good=not wrong and all(value.possible for value in values),
        entry=entry,
        metrics=ended.metrics,
    )


def _judge(
    exercise: Exercise, metrics: Mapping[str, Any], settings: Mapping[str, Any], ranks: int, mode: Any
) -> list[CheckResult]:
    """Return the results of the manifest's checks, except those that need data from Slurm."""
    plan = {"world_size": ranks, "nodes": 1, "parameters": settings}
    check_ids = {check.id for check in exercise.checks if not any(word in check.value for word in OF_SLURM)}
    verdict = evaluate(exercise, metrics, plan, {"state": "succeeded"}, mode=mode, run_id="by hand")
    return [check for check in verdict.checks if check.id in check_ids]


def _ranks(exercise: Exercise, case: Case, machine: Machine) -> int:
    """Return the number of processes: one for each GPU, but at most as many as the exercise has nodes; on processors, one for
    each node. If an exercise itself sets the number of processes on a node (0.2, 3.9), that number applies. 3.9 needs an even
    number of GPUs.
    """
    if not exercise.launch.traits.starts_ranks:
        return 1
    if machine.gpu and exercise.id == "3.9":
        return machine.gpus // 2 * 2
    if name := exercise.launch.count_parameter:
        nodes = 1 if machine.gpu else exercise.launch.nodes
        return nodes * int(
            str(resolve(exercise, case.settings if machine.gpu else case.simulated, local=not machine.gpu)[name])
        )
    return min(machine.gpus, exercise.launch.nodes) if machine.gpu else exercise.launch.nodes


def _settings(exercise: Exercise, case: Case, machine: Machine, ranks: int) -> dict[str, Any]:
    values = dict(case.settings if machine.gpu else case.simulated)
    if machine.gpu and exercise.id == "3.7":
        values["workers"] = str(ranks)
    if machine.gpu and exercise.id == "3.9":
        values |= {"procs": str(ranks), "dp": str(ranks // 2), "tp": "2"}
    return resolve(exercise, values, local=not machine.gpu)


def _run(
    case: Case, exercise: Exercise, settings: Mapping[str, Any], ranks: int, folder: Path, limit_s: float, *, on_gpu: bool
) -> EndedRun:
    """Run the exercise in a separate folder, as on a node: its commands one after another, until one fails. Return how it
    ended."""
    lay_out(case, exercise, folder)
    start_s, printed, code = time.monotonic(), "", None
    for words, variables in _commands(case, exercise, settings, ranks):
        env = {**os.environ, **_environment(folder, ranks, on_gpu=on_gpu), **variables}
        code, output = _process(words, folder, env, limit_s - (time.monotonic() - start_s))
        printed += output
        if code != 0:
            break
    path = folder / case.result
    metrics = json.loads(path.read_text(encoding="utf-8")) if code == 0 and path.is_file() else {}
    return EndedRun(code, time.monotonic() - start_s, printed, metrics)


def lay_out(case: Case, exercise: Exercise, folder: Path) -> None:
    """Make `folder` with the files of the exercise. If the note of the case says so, its parts are the course's solutions."""
    folder.mkdir()
    for name, place in CATALOG.sources(exercise).items():
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(FOLDERS.exercises / place, folder / name)
    if case.note.startswith(SOLUTION):
        for part in exercise.yours:
            shutil.copyfile(FOLDERS.exercises / CATALOG.folder_name(exercise) / "solutions" / part.file, folder / part.file)
    for earlier in sorted(folder.parent.glob("*-4.3/metrics.json")) if exercise.id == "4.4" else ():
        shutil.copyfile(earlier, folder / "earlier-4.3-by-hand.json")


def _commands(
    case: Case, exercise: Exercise, settings: Mapping[str, Any], ranks: int
) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Yield each command, with the variables that it needs in addition to the usual environment."""
    flags = arguments(exercise, settings)
    if exercise.launch.traits.starts_ranks:
        words = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={ranks}", "--master-addr=127.0.0.1"]
        restarts = settings.get(exercise.launch.restart_parameter or "", exercise.launch.restarts)
        words += [f"--max-restarts={restarts}"] if restarts else []
        yield [*words, f"--master-port={find_free_port()}", exercise.script, *flags], {}
        return
    for task in range(case.tasks):
        yield [sys.executable, exercise.script, *flags], {"SLURM_ARRAY_JOB_ID": "1", "SLURM_ARRAY_TASK_ID": str(task)}
    script = exercise.launch.slurm.gather if case.tasks and exercise.launch.slurm else exercise.script
    yield [sys.executable, str(script), *flags], {}


def _environment(folder: Path, ranks: int, *, on_gpu: bool) -> dict[str, str]:
    return {
        "GPUCOURSE_OUT": str(folder),
        "GPUCOURSE_NODE": "node0",
        "GPUCOURSE_BACKEND": "nccl" if on_gpu else "gloo",
        "GPUCOURSE_COLLECTIVE_TIMEOUT_S": "60",
        "GLOO_SOCKET_IFNAME": "lo0" if sys.platform == "darwin" else "lo",
        "OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // ranks)),
        "HF_HUB_OFFLINE": "1",
    }


def _process(words: Sequence[str], folder: Path, env: Mapping[str, str], limit_s: float) -> tuple[int | None, str]:
    """Run a command, and return its exit code and its output. The code is None if it was ended at its limit.

    At the limit, it is first asked to end, because only torchrun itself can end its workers, which have their own sessions.
    Then all remaining processes are killed. On Linux, the command also ends when this process ends, for whatever reason.
    """
    process = subprocess.Popen(
        words,
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=end_with(os.getpid()) if sys.platform == "linux" else None,  # noqa: PLW1509  # no other thread runs here
    )
    try:
        output = process.communicate(timeout=max(0.1, limit_s))[0]
    except subprocess.TimeoutExpired:
        process.terminate()
    else:
        return process.returncode, output
    try:
        return None, process.communicate(timeout=GRACE_S)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return None, process.communicate()[0]


def _library(machine: Machine, lines: Sequence[Line], ends: float, sides: Sequence[int]) -> Line | None:
    """Return a row that compares 4.2's best bf16 product with the best that the vendor's library reaches over many shapes."""
    rows = [row for line in lines if line.exercise == "4.2" for row in line.metrics.get("summary", [])]
    if not machine.gpu:
        return None
    best_of_exercise = next((row["best_tflops"] for row in rows if row["dtype"] == "bfloat16"), None)
    if best_of_exercise is None:
        return None
    words = [sys.executable, str(Path(__file__).with_name("library_ceiling.py")), *map(str, sides)]
    code, output = _process(words, ROOT, os.environ, ends - time.monotonic())
    if code != 0:
        return Line("library's best", "did not run to its end", "", "not measured", good=False)
    document = json.loads(output.splitlines()[-1])
    peak, best = machine.sheet.get("bf16"), max(document["bf16_tflops"], best_of_exercise)
    figure = Figure("bf16", best, "TFLOP/s", peak)
    share = f"4.2 reaches {best_of_exercise / best:.3f} of it (promise: {OF_LIBRARY})"
    return Line(
        "library's best",
        f"{document['shapes']} shapes",
        "",
        f"{figure.text}; {share}",
        figure.possible and best_of_exercise >= OF_LIBRARY * best,
        document,
    )


def _print_line(line: Line) -> None:
    sys.stdout.write(f"{line.exercise}: {line.ran}; {line.checks or 'nothing judged'}; {_join_figures_and_note(line)}\n")
    sys.stdout.flush()


def _record(machine: Machine, lines: Sequence[Line]) -> dict[str, Any]:
    entries = {line.exercise: line.entry for line in lines if line.entry}
    return {
        "gpu": machine.gpu,
        "date": datetime.now(UTC).date().isoformat(),
        "gpus": machine.gpus,
        "versions": dict(machine.versions),
        "ceilings": entries.pop("library's best", {}),
        "exercises": entries,
    }
