"""B.1 as a learner runs it: delivered, solved, with one fault at a time; and what is left where it is killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.parts import needs_namespaces
from tests.system.exercising import (
    DEADLINE_S,
    FOLDERS,
    Finished,
    environment,
    lay_out,
    list_failed_checks,
    list_unanswered,
    needs_torch,
    run_solved,
    with_faults,
)

pytestmark = [
    pytest.mark.system, pytest.mark.slow, needs_torch, needs_namespaces(),
    pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not there on this machine"),
]  # fmt: skip
SOLVED = FOLDERS.exercises / "B-ebpf-tracing" / "solutions" / "my_pod.yaml"
# As the agent of a node: whatever loses its parent becomes a child of this process, which waits for none but its own.
SUPERVISED = [sys.executable, "-c", "import ctypes, subprocess, sys\nctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\n"
              "sys.exit(subprocess.call(sys.argv[1:]))"]  # fmt: skip
RIGHTS = "add: [SYS_ADMIN, SYS_PTRACE]"


def run_pod(folder: Path, old: str = "", new: str = "") -> Finished:
    """B.1 with the solution in the place of the learner's part, in which `new` is in the place of `old`."""
    changes = [("my_pod.yaml", old, new)] if old else []
    return run_solved("B.1", folder, "my_pod.yaml", changes=changes, before=SUPERVISED)


def traced_by(run: Finished) -> object:
    assert run.code == 0, run.output
    return run.metrics["tracer"]


def test_as_delivered_the_pod_is_refused_and_the_part_open(tmp_path: Path) -> None:
    run = with_faults("B.1", tmp_path / "work")
    assert run.code == 0, run.output
    assert "containerPort has to be a number" in run.metrics["refusal"]
    assert run.metrics["policies_broken"] == 6
    assert {"valid", "policies"} <= list_failed_checks(run), "until it is repaired"


def test_the_solution_starts_and_its_trace_is_the_ledger(tmp_path: Path) -> None:
    mounts = Path("/proc/self/mounts").read_text(encoding="utf-8")
    run = run_pod(tmp_path / "my work: 2")
    assert run.code == 0, run.output
    assert list_unanswered(run) == {}, run.output
    assert run.metrics["first_trace"]["by_api"]["cudaLaunchKernel"] == 8 * (2 + 5 * 6)
    assert run.metrics["first_trace"]["by_api"]["cudaMalloc"] == 1 + 2 + 8
    assert Path("/proc/self/mounts").read_text(encoding="utf-8") == mounts


def test_without_shared_processes_the_tracer_is_blind(tmp_path: Path) -> None:
    run = run_pod(tmp_path / "work", "shareProcessNamespace: true", "shareProcessNamespace: false")
    assert run.code == 0, run.output
    assert (run.metrics["sees_engine"], run.metrics["running"], run.metrics["first_trace"]["calls"]) == ("no", 1, None)
    assert list_failed_checks(run) == {"policies", "both-running", "sees-engine"}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (RIGHTS, "add: [SYS_ADMIN]", "no permission to read"),
        (RIGHTS, "add: [SYS_PTRACE]", "exit"),
        ("        - {name: btf, mountPath: /sys/kernel/btf, readOnly: true}\n", "", "no types of the kernel"),
        ("runAsUser: 0", "runAsUser: 1000", "blind"),
    ],
)
def test_a_tracer_without_its_rights_ends_and_says_why(old: str, new: str, words: str, tmp_path: Path) -> None:
    run = run_pod(tmp_path / "work", old, new)
    if traced_by(run) != "bpftrace":
        pytest.skip(f"needs bpftrace and root: {run.output.partition('not taken: ')[2].splitlines()[0]}")
    [tracer] = [box for box in run.metrics["containers"] if box["name"] == "tracer"]
    assert (tracer["running"], tracer["restarts"], words in tracer["why"]) == (False, 1, True), tracer


def list_processes(folder: Path) -> list[str]:
    """The command lines of all processes that name a folder."""
    lines = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(place.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return [line for line in lines if str(folder) in line]


def wait_for(folder: Path, word: str, *, there: bool) -> None:
    ends = time.monotonic() + DEADLINE_S
    while any(word in line for line in list_processes(folder)) != there:
        assert time.monotonic() < ends, list_processes(folder)
        time.sleep(0.01)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_killed_leaves_no_process_of_its_pod(end: signal.Signals, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    _, script = lay_out("B.1", folder)
    shutil.copyfile(SOLVED, folder / "my_pod.yaml")
    command = [sys.executable, str(script), "--tokens=8"]
    run = subprocess.Popen(command, cwd=folder, env=environment(folder), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        wait_for(folder, "sidecar.sh", there=True)
        os.kill(run.pid, end)
        run.communicate(timeout=DEADLINE_S)
    finally:
        run.kill()
        run.wait()
    wait_for(folder, "", there=False)
