"""The whole course in one go on simulated nodes: for each module, deploy its lab, run all exercises, destroy the lab."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from benchmarks.lab import Lab, lab
from benchmarks.measure import Row, attempt
from gpucourse.course.catalog import load
from gpucourse.course.locate import find_course
from gpucourse.errors import ExitCode

LONGEST_S = 30.0
MODULES = tuple(module.id for module in load(find_course({})).modules)


def measure() -> Iterator[Row]:
    """One row per module, beside the time of its scripts alone, and the total. If a module fails, the others still run."""
    ours = scripts = 0.0
    good = True
    with lab() as bench_lab:
        for number in MODULES:
            for row in attempt(f"module {number}", partial(_measure_module, bench_lab, number)):
                ours, scripts, good = ours + (row.ours_s or 0.0), scripts + (row.theirs_s or 0.0), good and row.held
                yield row
    yield _make_row(f"all {len(MODULES)} modules", ours, scripts, held=good)


def _measure_module(bench_lab: Lab, number: str) -> Iterator[Row]:
    """`deploy N`, `run N --all`, `destroy N`; held where every check passed and no script took more than LONGEST_S."""
    began = time.perf_counter()
    bench_lab.type("deploy", number)
    steps = _run_all(bench_lab, number)
    bench_lab.type("destroy", number, "--yes", "--discard")
    ours = time.perf_counter() - began
    slowest = max(steps, key=lambda step: step["seconds"] or 0.0)
    ran = sum(step["state"] != "skipped" for step in steps)
    what = f"module {number}: {ran} scripts, slowest {slowest['exercise']} with {slowest['seconds']:.1f} s"
    bad = [step["exercise"] for step in steps if not _is_good(step)]
    if bad:
        what += f"; not passed: {', '.join(bad)}"
    yield _make_row(what, ours, sum(step["seconds"] or 0.0 for step in steps), held=not bad and slowest["seconds"] <= LONGEST_S)


def _run_all(bench_lab: Lab, number: str) -> list[dict[str, Any]]:
    """Every exercise of a module with its state, verdict and seconds; one that did not pass is among them."""
    try:
        said = bench_lab.type("run", number, "--all", "--no-predict", "--json")
    except subprocess.CalledProcessError as error:
        if error.returncode not in {ExitCode.EXERCISE_FAILED, ExitCode.CHECK_FAILED}:
            raise
        said = error.stdout
    return list(json.loads(said)["steps"])


def _is_good(step: dict[str, Any]) -> bool:
    return step["state"] == "skipped" or (step["state"] == "succeeded" and step["verdict"] not in {"failed", "error"})


def _make_row(what: str, ours: float, scripts: float, *, held: bool) -> Row:
    promise = f"all pass, {LONGEST_S:.0f} s each"
    return Row(what=what, ours_s=ours, theirs="the scripts alone", theirs_s=scripts, promise=promise, held=held)
