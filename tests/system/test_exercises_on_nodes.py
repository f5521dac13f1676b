"""Every exercise of modules 0 and 3 as it is typed, on simulated nodes: small sizes, every check that needs no GPU passes.

What each measures, and that each check finds its fault, is tested beside this (test_exercises*.py), without nodes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from tests.system.cli import Learner
from tests.system.exercising import CATALOG, needs_torch

pytestmark = [pytest.mark.system, needs_torch]

LIMIT_S = 30.0
SMALL: dict[str, tuple[int, dict[str, str]]] = {  # the number of nodes, and sizes that a busy machine with 2 cores manages
    "0.1": (1, {"epochs": "1", "hidden": "32"}),
    "0.2": (1, {"epochs": "1", "samples": "512"}),
    "0.3": (1, {"nnodes": "2", "nproc_per_node": "2"}),
    "3.1": (3, {"elements": "1000"}),
    "3.3": (2, {"max_bytes": "262144"}),
    "3.4": (2, {"images": "1024", "batch_size": "16", "epochs": "3"}),
    "3.5": (2, {"hidden": "64", "steps": "5"}),
    "3.6": (2, {"hidden": "64", "steps": "3"}),
    "3.7": (4, {"hidden": "64", "steps": "5"}),
    "3.8": (2, {"hidden": "64", "steps": "20"}),
    "3.9": (4, {"steps": "4"}),
}


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Learner]:
    """Somebody with one node for module 0 and four for module 3."""
    learner = Learner(tmp_path_factory.mktemp("four") / "workspace")
    learner.types("deploy", "0")
    learner.types("deploy", "3", "--nodes", "4")
    yield learner
    learner.types("destroy", "--all", "--yes", "--discard", "--quiet")
    assert learner.processes() == []


def test_every_exercise_of_the_two_modules_is_here() -> None:
    others = {"3.2"}  # the spine, in test_whole_run.py
    assert set(SMALL) | others == {exercise.id for module in ("0", "3") for exercise in CATALOG.module(module).exercises}


@pytest.mark.thorough
@pytest.mark.parametrize("exercise", SMALL)
def test_an_exercise_on_its_nodes(four: Learner, exercise: str) -> None:
    nodes, sizes = SMALL[exercise]
    settings = [word for name, value in sizes.items() for word in ("--set", f"{name}={value}")]
    began = time.monotonic()
    document = four.types("run", exercise, "--nodes", str(nodes), *settings, "--json", timeout=120).document
    seconds = time.monotonic() - began
    record, verdict = document["run"], document["verdict"]
    assert (record["state"], record["diagnoses"], len(record["nodes"])) == ("succeeded", [], nodes)
    unsure = {check["id"]: check["observed"] for check in verdict["checks"] if check["verdict"] in {"failed", "error"}}
    assert unsure == {}
    assert any(check["verdict"] == "passed" for check in verdict["checks"])
    if exercise == "3.1":
        metrics = json.loads((four.run_folder() / "metrics.json").read_text())
        assert [rank["sum"] for rank in metrics["ranks"]] == [6, 6, 6]
        assert metrics["wrong_elements"] == 0
    assert seconds < LIMIT_S
