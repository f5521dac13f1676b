"""B.3 as a learner runs it: as delivered, with either file, with one that does not compile; and what it leaves behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.system.exercising import (
    FOLDERS,
    Finished,
    check_plots_and_tables,
    environment,
    flags,
    lay_out,
    list_differences,
    list_failed_checks,
    list_unanswered,
    needs_torch,
    run_solved,
    with_faults,
)
from tests.waiting import STUCK_S, until

pytestmark = [pytest.mark.system, pytest.mark.slow, needs_torch]
if sys.platform != "linux":
    pytest.skip("uprobes and LD_PRELOAD need Linux", allow_module_level=True)
SOLUTIONS = FOLDERS.exercises / "B-ebpf-tracing" / "solutions"
ABOUT_PART = {"allocations", "bytes", "failed", "alive", "site", "only-memory", "histogram"}
FILES = {"bpftrace": "my_trace.bt", "preload": "my_preload.c"}


def run_with(tracer: str, folder: Path, **settings: str) -> Finished:
    """B.3 with the course's own solution for a tracer. Skips where that cannot be used, with the reason."""
    run = run_solved("B.3", folder, FILES[tracer], tracer=tracer, **settings)
    if run.code == 2 and "--tracer preload takes my_preload.c" in run.output:
        pytest.skip(run.output.splitlines()[-1])
    return run


def test_as_delivered_the_run_is_whole_and_counts_calls(tmp_path: Path) -> None:
    run = with_faults("B.3", tmp_path / "work")
    assert run.code == 0, run.output
    assert list_failed_checks(run) == set()
    assert set(list_unanswered(run)) == ABOUT_PART
    assert {row["api"] for row in run.metrics["calls"]} == {"cudaMalloc", "cudaFree", "cudaMemcpy", "cudaLaunchKernel"}
    assert run.metrics["sites"] == [], "who leaks is for the learner's tracer to say"
    assert list_differences(run) == []


@pytest.mark.parametrize("tracer", FILES)
def test_either_file_says_what_the_ledger_says(tracer: str, tmp_path: Path) -> None:
    run = run_with(tracer, tmp_path / "work", seed="2", layers="9", cap_mib="48")
    assert run.code == 0, run.output
    assert list_unanswered(run) == {}
    assert [row["biggest_site"] for row in run.metrics["workloads"]] == ["allocate_logits", "grow_cache", "copy_prompt"]
    assert [row["failed"] for row in run.metrics["workloads"]] == [0, 0, 2]
    check_plots_and_tables(run, tmp_path, without="metrics.collective_rows")
    assert not list((tmp_path / "work").glob(".runtime-*")), "the copy of the engine"


def test_the_collectives_of_a_training_are_counted_on_each_rank(tmp_path: Path) -> None:
    run = with_faults("B.3", tmp_path / "work", collectives="true")
    assert run.code == 0, run.output
    if "The collectives are not measured" in run.output:
        pytest.skip(run.output.partition("The collectives are not measured: ")[2].splitlines()[0])
    assert [row["allreduces"] for row in run.metrics["collective_rows"]] == [10, 10]


def test_a_file_that_does_not_compile_fails_one_check_by_name(tmp_path: Path) -> None:
    change = ("my_preload.c", 'add(1, "calls cudaFree");', 'add(1, "allocations")')
    run = with_faults("B.3", tmp_path / "work", change, tracer="preload")
    assert run.code == 0, run.output
    assert list_failed_checks(run) == {"runs"}
    assert "cc cannot compile my_preload.c" in run.metrics["trace_broken"]
    assert run.metrics["alive_first_bytes"] > 0, "the truth does not need a tracer"
    assert list_differences(run) == []


def list_processes(folder: Path) -> set[str]:
    """The names of the processes that have this folder in their environment: a run's own, and all that it started."""
    names = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            if str(folder).encode() in (process / "environ").read_bytes():
                names.add((process / "comm").read_text(encoding="utf-8").strip())
    return names


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_engine_and_tracer_end_with_a_run_that_is_stopped(number: signal.Signals, tmp_path: Path) -> None:
    exercise, script = lay_out("B.3", tmp_path / "work")
    command = [sys.executable, script.name, *flags(exercise)]
    process = subprocess.Popen(command, cwd=script.parent, env=environment(script.parent), stderr=subprocess.DEVNULL)
    try:
        until(lambda: "engine" in list_processes(script.parent), "an engine")
    finally:
        process.send_signal(number)
        process.wait(timeout=STUCK_S)
    until(lambda: not list_processes(script.parent), "the end of engine and tracer")
