"""The exercises of module 7 as a learner runs them: as delivered, with the solutions, and with values that cannot be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.parts import needs_namespaces
from tests.system.exercising import (
    FOLDERS,
    check_plots_and_tables,
    environment,
    lay_out,
    list_failed_checks,
    list_unanswered,
    needs_torch,
    run_solved,
    with_faults,
)

pytestmark = [pytest.mark.system, pytest.mark.slow, needs_torch]
SOLUTIONS = FOLDERS.exercises / "07-hpc-systems" / "solutions"
SMALL = {
    "7.1": {}, "7.2": {"max_bytes": "1048576"}, "7.3": {"megabytes": "16"},
    "7.4": {"engines": "bare,namespaces", "repeats": "1"}, "7.5": {},
}  # fmt: skip
PARTS = {
    "7.1": ("my_sharing.py", "my_pods.yaml"), "7.2": ("my_topology.py",), "7.3": ("my_reader.py",),
    "7.4": ("my_container.sh", "my_dockerfile.txt", "my_definition.def"), "7.5": ("my_design.py",),
}  # fmt: skip
OPEN = {
    "7.1": {"placed", "geometry", "isolated", "few-gpus"}, "7.2": {"parsed", "groups-best", "rings-best"},
    "7.3": {"fewer-calls"}, "7.4": set[str](), "7.5": {"vfio", "vgpu", "tree", "stripes", "scheduler"},
}  # fmt: skip


@pytest.mark.parametrize(
    "exercise_id", [pytest.param(name, marks=[needs_namespaces()] if name == "7.4" else []) for name in SMALL]
)
def test_as_delivered_runs_are_whole_and_parts_open(exercise_id: str, tmp_path: Path) -> None:
    run = with_faults(exercise_id, tmp_path / "work", **SMALL[exercise_id])
    assert run.code == 0, run.output
    faulty = {"7.1": {"manifests"}, "7.4": {"own-pids", "own-hostname", "read-only", "docker-faults", "apptainer-faults"}}
    assert list_failed_checks(run) == faulty.get(exercise_id, set()), "files with faults to find fail until they are repaired"
    assert set(list_unanswered(run)) - list_failed_checks(run) == OPEN[exercise_id]


@pytest.mark.parametrize(
    "exercise_id", [pytest.param(name, marks=[needs_namespaces()] if name == "7.4" else []) for name in SMALL]
)
def test_solutions_pass_every_check_without_a_gpu(exercise_id: str, tmp_path: Path) -> None:
    mounts = Path("/proc/self/mounts")
    before = mounts.read_text(encoding="utf-8") if mounts.exists() else ""
    run = run_solved(exercise_id, tmp_path / "work", *PARTS[exercise_id], **SMALL[exercise_id])
    assert run.code == 0, run.output
    assert list_unanswered(run) == {}
    assert (mounts.read_text(encoding="utf-8") if mounts.exists() else "") == before
    assert not list((tmp_path / "work").glob(".shard*")), "the file that was read"
    if exercise_id not in ("7.1", "7.4"):  # without a GPU, and without a fault, one of their tables is empty
        check_plots_and_tables(run, tmp_path, with_gaps=True)


def test_a_disk_without_room_is_named_before_anything_is_written(tmp_path: Path) -> None:
    run = run_solved("7.3", tmp_path / "work", *PARTS["7.3"], megabytes="65536")
    if run.code == 0:
        pytest.skip("this computer has room for 192 GiB")
    assert "are free for the file" in run.output


@pytest.mark.parametrize(
    ("exercise_id", "flag", "words"),
    [
        ("7.3", "--record=700", "a multiple of 512"),
        ("7.4", "--engines=bare,lxc", "there is no engine lxc"),
    ],
)
def test_values_that_cannot_be_are_refused_with_the_rule(exercise_id: str, flag: str, words: str, tmp_path: Path) -> None:
    _, script = lay_out(exercise_id, tmp_path / "work")
    command = [sys.executable, script.name, flag]
    done = subprocess.run(
        command, cwd=script.parent, env=environment(script.parent), capture_output=True, text=True, check=False
    )
    assert (done.returncode, words in done.stderr) == (2, True), done.stderr
