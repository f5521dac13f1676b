"""The exercises of module 7 as a learner runs them: as delivered, solved, and on a full disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.parts import needs_namespaces
from tests.system.exercising import (
    check_healthy,
    list_failed_checks,
    list_open_checks,
    needs_torch,
    read_mounts,
    run_exercise,
)

pytestmark = [pytest.mark.system, needs_torch]


SMALL = {
    "7.1": {}, "7.2": {"max_bytes": "1048576"}, "7.3": {"megabytes": "16"},
    "7.4": {"engines": "bare,namespaces", "repeats": "1"}, "7.5": {},
}  # fmt: skip
FAILED = {"7.1": {"manifests"}, "7.4": {"own-pids", "own-hostname", "read-only", "docker-faults", "apptainer-faults"}}
"""Files with faults to find fail until they are repaired."""
OPEN = {
    "7.1": {"placed", "geometry", "isolated", "few-gpus"}, "7.2": {"parsed", "groups-best", "rings-best"},
    "7.3": {"fewer-calls"}, "7.4": {"layers-seen"}, "7.5": {"rules-kept", "waits-less"},
}  # fmt: skip
MARKS = {"7.2": [pytest.mark.slow], "7.3": [pytest.mark.slow], "7.4": [pytest.mark.slow, needs_namespaces()]}
MODULE_7 = [pytest.param(name, marks=MARKS.get(name, [])) for name in SMALL]


@pytest.mark.parametrize("exercise", MODULE_7)
def test_an_exercise_of_systems_as_delivered_is_whole_and_its_parts_are_open(exercise: str, tmp_path: Path) -> None:
    run = run_exercise(exercise, tmp_path / "work", **SMALL[exercise])
    assert run.code == 0, run.output
    failures = FAILED.get(exercise, set())
    assert (list_failed_checks(run), set(list_open_checks(run)) - failures) == (failures, OPEN[exercise])


@pytest.mark.slow
@pytest.mark.parametrize("exercise", MODULE_7)
def test_an_exercise_of_systems_solved_passes_every_check_of_a_processor(exercise: str, tmp_path: Path) -> None:
    mounts = read_mounts()
    run = run_exercise(exercise, tmp_path / "work", solved=True, **SMALL[exercise])
    check_healthy(run, tmp_path)
    assert read_mounts() == mounts
    assert not list((tmp_path / "work").glob(".shard*")), "the file that was read"


def test_a_full_disk_is_reported_before_anything_is_written(tmp_path: Path) -> None:
    full = ("shutil.disk_usage(place).free", "0")
    run = run_exercise("7.3", tmp_path / "work", full, megabytes="16")
    assert (run.code, "0 MiB are free for the file" in run.output) == (1, True), run.output
