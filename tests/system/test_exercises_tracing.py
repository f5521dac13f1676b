"""The exercises of bonus B as a learner runs them: as delivered, solved, and what they leave at their end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.parts import need, needs_namespaces
from tests.system.exercising import (
    check_healthy,
    environment,
    flags,
    lay_out,
    list_failed_checks,
    list_open_checks,
    needs_torch,
    read_mounts,
    run_exercise,
)
from tests.waiting import STUCK_S, until

pytestmark = [pytest.mark.system, needs_torch]


# --- B.1: a pod with a tracer ---------------------------------------------------------------------------------------------

needs_pods = needs_namespaces()
# Like the agent of a node: it adopts processes that lose their parent, but waits only for its own child.
SUPERVISED = [sys.executable, "-c", "import ctypes, subprocess, sys\nctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\n"
              "sys.exit(subprocess.call(sys.argv[1:]))"]  # fmt: skip


@pytest.fixture
def gcc() -> str:
    """Return the compiler for engines and tracers."""
    return need("gcc")


@pytest.mark.slow
@needs_pods
@pytest.mark.usefixtures("gcc")
def test_a_pod_as_delivered_is_refused_and_the_part_is_open(tmp_path: Path) -> None:
    run = run_exercise("B.1", tmp_path / "work")
    assert run.code == 0, run.output
    assert "containerPort has to be a number" in run.metrics["refusal"]
    assert run.metrics["policies_broken"] == 7
    assert {"valid", "policies"} <= list_failed_checks(run), "until it is repaired"


@pytest.mark.slow
@needs_pods
@pytest.mark.usefixtures("gcc")
def test_a_solved_pod_starts_and_its_trace_is_the_ledger(tmp_path: Path) -> None:
    mounts = read_mounts()
    run = run_exercise("B.1", tmp_path / "my work: 2", solved=True, prefix=SUPERVISED)
    check_healthy(run, tmp_path)
    assert run.metrics["first_trace"]["by_api"]["cudaLaunchKernel"] == 8 * (2 + 5 * 6)
    assert run.metrics["first_trace"]["by_api"]["cudaMalloc"] == 1 + 2 + 8
    assert read_mounts() == mounts


# --- B.2 and B.3: calls and your own tracer -------------------------------------------------------------------------------


@pytest.mark.usefixtures("gcc")
def test_a_trace_as_delivered_is_exact_and_the_part_is_open(tmp_path: Path) -> None:
    run = run_exercise("B.2", tmp_path / "work")
    check_healthy(run, tmp_path, open_checks={"explained"})
    assert run.metrics["tracer"] in {"bpftrace", "perf", "preload"}


@pytest.mark.slow
@pytest.mark.usefixtures("gcc")
@pytest.mark.parametrize("settings", [{"puzzle": "6", "prompt": "2048", "tokens": "1"}, {"puzzle": "9", "tokens": "512"}])
def test_costs_of_a_trace_solved_are_right_at_the_ends_of_what_is_offered(settings: dict[str, str], tmp_path: Path) -> None:
    run = run_exercise("B.2", tmp_path / "work", solved=True, tracer="preload", **settings)
    check_healthy(run, tmp_path)


needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="uprobes and LD_PRELOAD need Linux")
TRACERS = {"bpftrace": "my_trace.bt", "preload": "my_preload.c"}
YOUR_TRACER = {"allocations", "bytes", "failed", "alive", "site", "only-memory", "histogram"}


@pytest.mark.slow
@needs_linux
@pytest.mark.usefixtures("gcc")
def test_your_own_tracer_as_delivered_counts_calls(tmp_path: Path) -> None:
    run = run_exercise("B.3", tmp_path / "work")
    assert run.code == 0, run.output
    assert (list_failed_checks(run), set(list_open_checks(run))) == (set(), YOUR_TRACER)
    assert {row["api"] for row in run.metrics["calls"]} == {"cudaMalloc", "cudaFree", "cudaMemcpy", "cudaLaunchKernel"}
    assert run.metrics["sites"] == [], "who leaks is for the learner's tracer to say"


@pytest.mark.slow
@needs_linux
@pytest.mark.usefixtures("gcc")
@pytest.mark.parametrize("tracer", TRACERS)
def test_your_own_tracer_says_what_the_ledger_says(tracer: str, tmp_path: Path) -> None:
    sizes = {"seed": "2", "layers": "9", "cap_mib": "48"}
    run = run_exercise("B.3", tmp_path / "work", solved=(TRACERS[tracer],), tracer=tracer, **sizes)
    if run.code == 2 and "--tracer preload takes my_preload.c" in run.output:
        pytest.skip(run.output.splitlines()[-1])
    check_healthy(run, tmp_path)
    assert [row["biggest_site"] for row in run.metrics["workloads"]] == ["allocate_logits", "grow_cache", "copy_prompt"]
    assert [row["failed"] for row in run.metrics["workloads"]] == [0, 0, 2]
    assert not list((tmp_path / "work").glob(".runtime-*")), "the copy of the engine"


@pytest.mark.slow
@needs_linux
@pytest.mark.usefixtures("gcc")
def test_the_collectives_of_a_training_are_counted_on_each_rank(tmp_path: Path) -> None:
    run = run_exercise("B.3", tmp_path / "work", collectives="true")
    assert run.code == 0, run.output
    if "The collectives are not measured" in run.output:
        pytest.skip(run.output.partition("The collectives are not measured: ")[2].splitlines()[0])
    assert [row["allreduces"] for row in run.metrics["collective_rows"]] == [10, 10]


def list_commands(folder: Path) -> list[str]:
    """Return the names and commands of a run's processes. Their command or environment contains the run's folder."""
    commands = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            command = (process / "cmdline").read_bytes()
            if str(folder).encode() in command + (process / "environ").read_bytes():
                commands.append(f"{(process / 'comm').read_text(encoding='utf-8')} {command.decode(errors='replace')}")
    return commands


@pytest.mark.slow
@needs_linux
@needs_pods
@pytest.mark.usefixtures("gcc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize(("exercise", "settings", "program"), [("B.1", {"tokens": "8"}, "sidecar.sh"), ("B.3", {}, "engine")])
def test_a_traced_run_that_is_stopped_leaves_no_process(
    exercise: str, settings: dict[str, str], program: str, number: signal.Signals, tmp_path: Path
) -> None:
    manifest, script = lay_out(exercise, tmp_path / "work", solved=exercise == "B.1")
    command = [sys.executable, script.name, *flags(manifest, **settings)]
    run = subprocess.Popen(
        command, cwd=script.parent, env=environment(script.parent), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        until(lambda: any(program in words for words in list_commands(script.parent)), program)
    finally:
        os.kill(run.pid, number)
        run.wait(timeout=STUCK_S)
    until(lambda: not list_commands(script.parent), "the end of all that it started")
