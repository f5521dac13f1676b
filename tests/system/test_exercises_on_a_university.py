"""Exercises as jobs of a university's cluster: one of each kind, or all of them with EVERY_EXERCISE=1. The GPUs are simulated.

An exercise with parts for the learner runs with the solutions, any other exercise as it is delivered.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from gpucourse.course.parameters import resolve
from tests.course import CATALOG, FOLDERS
from tests.system.cli import Learner
from tests.system.exercising import needs_torch
from tests.university import University

pytestmark = [pytest.mark.system, pytest.mark.slow, needs_torch]

IN_A_TERMINAL = {"2.2"}
ELSEWHERE = {"2.1", "2.3", "2.4", "3.2"}  # in test_slurm_target_runs.py
MEMORY = {
    "6.7": "3G",
    "8.7": "7G",
    **dict.fromkeys(("9.1", "9.2", "9.6", "9.7"), "4G"),
}  # several ranks share a node, and the cluster gives 900 MB for each core
ON_ONE_NODE = {"0", "1", "4", "5", "7", "B"}
ONE_OF_EACH_KIND = {"1.1": "python", "5.0": "g++"}
"""torchrun on two nodes is in test_slurm_cluster_page.py; batch files and the session are in test_slurm_target_runs.py."""
EXERCISES = [
    exercise.id
    for module in CATALOG.modules
    for exercise in module.exercises
    if (exercise.id not in IN_A_TERMINAL | ELSEWHERE if "EVERY_EXERCISE" in os.environ else exercise.id in ONE_OF_EACH_KIND)
]


@pytest.fixture(scope="module")
def student(university_cluster: University, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Learner]:
    folder = tmp_path_factory.mktemp("student")
    university_cluster.introduce(folder / "home")
    student = Learner(folder / "workspace")
    student.workspace.mkdir()
    cluster = {"login": "uni", "account": "abc123", "setup": ["module load pytorch/2.13"]}
    (student.workspace / "gpucourse.yaml").write_text(json.dumps({"target": "slurm", "slurm": cluster}), encoding="utf-8")
    with student.leaves_nothing():
        yield student
    university_cluster.check_nothing_is_left()


@pytest.fixture(scope="module")
def deployed() -> set[str]:
    """Return the ids of the modules that have a lab."""
    return set()


def run(student: Learner, exercise_id: str) -> dict[str, Any]:
    """Run an exercise with the values for a computer without a GPU, and return its verdict."""
    _, exercise = CATALOG.exercise(exercise_id)
    small, full = (resolve(exercise, {}, local=local) for local in (True, False))
    changes = [word for name, value in small.items() if value != full[name] for word in ("--set", f"{name}={spell(value)}")]
    nodes = ("--nodes", "2") if exercise.launch.nodes > 2 else ()  # the number of nodes with GPUs
    memory = ("--slurm", f"mem={MEMORY[exercise_id]}") if exercise_id in MEMORY else ()
    student.types("run", exercise_id, "--no-predict", *nodes, *changes, *memory, timeout=1800)
    assert student.newest_run()["slurm"]["jobs"], "it ran as a job"
    return dict(json.loads((student.run_folder() / "verdict.json").read_text()))


def spell(value: object) -> str:
    """Return a value as it is typed after `--set NAME=`."""
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("exercise_id", EXERCISES)
def test_exercise_passes_as_jobs(student: Learner, deployed: set[str], exercise_id: str) -> None:
    module, exercise = CATALOG.exercise(exercise_id)
    folder = CATALOG.folder_name(module)
    if module.id not in deployed:
        student.types("deploy", module.id, "--nodes", "1" if module.id in ON_ONE_NODE else "2")
        deployed.add(module.id)
    for part in exercise.yours:
        shutil.copy(FOLDERS.exercises / folder / "solutions" / part.file, student.workspace / "exercises" / folder / part.file)
    verdict = run(student, exercise_id)
    assert [check["id"] for check in verdict["checks"] if check["verdict"] == "failed"] == []
    refused = {part["id"] for part in verdict["parts"] if "namespaces are refused here" in part["notes"]}  # by this computer
    assert {part["verdict"] for part in verdict["parts"] if part["id"] not in refused} <= {"passed", "not_measured"}
