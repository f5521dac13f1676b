"""Every exercise of modules 0 and 3 at a small size: every check that needs no GPU passes, by ranks started here, and as it is
typed on simulated nodes.

What each measures, and that each check finds its fault, is tested beside this (test_exercises*.py), without nodes.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.cli import Learner
from tests.system.exercising import CATALOG, needs_torch, run_ranks
from tests.waiting import STUCK_S

pytestmark = [pytest.mark.system, needs_torch]

LIMIT_S = 2 * 30.0
"""Of a processor: what half a minute on a computer with two of them has, whatever else this one does meanwhile."""

TICKS = os.sysconf("SC_CLK_TCK")
BY_HAND = ("0.1", "0.2", "3.5", "3.7", "3.8")
"""What `make test` runs of all whose ranks any launcher can start. The files about 3.3, 3.4, 3.6 and 3.9 start theirs."""

SMALL: dict[str, tuple[int, dict[str, str]]] = {  # the number of nodes, and sizes that a busy machine with 2 cores manages
    "0.1": (1, {"epochs": "1", "hidden": "32"}),
    "0.2": (1, {"epochs": "1", "samples": "512"}),
    "0.3": (1, {"nnodes": "2", "nproc_per_node": "2"}),
    "3.1": (3, {"elements": "1000"}),
    "3.3": (2, {"max_bytes": "16384"}),
    "3.4": (2, {"images": "1024", "batch_size": "16", "epochs": "3"}),
    "3.5": (2, {"hidden": "64", "steps": "5"}),
    "3.6": (2, {"hidden": "64", "steps": "3"}),
    "3.7": (4, {"hidden": "64", "steps": "5"}),
    "3.8": (2, {"hidden": "64", "steps": "20"}),
    "3.9": (4, {"steps": "4", "procs": "1"}),
}


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Learner]:
    """Somebody with one node for module 0 and four for module 3."""
    learner = Learner(tmp_path_factory.mktemp("four") / "workspace", before=("env",))  # no forks: their time is not ours
    learner.takes_ports()
    with learner.leaves_nothing():
        learner.types("deploy", "0")
        learner.types("deploy", "3", "--nodes", "4")
        yield learner


def test_every_exercise_of_the_two_modules_is_here() -> None:
    others = {"3.2"}  # the spine, in test_whole_run.py
    assert set(SMALL) | others == {exercise.id for module in ("0", "3") for exercise in CATALOG.module(module).exercises}


@pytest.mark.parametrize("exercise", BY_HAND)
def test_an_exercise_by_ranks_of_this_computer(exercise: str, tmp_path: Path) -> None:
    ranks, sizes = SMALL[exercise]
    run = run_ranks(exercise, ranks, tmp_path / "work", **sizes)
    assert run.code == 0, run.output
    checks = run.verdict().checks
    assert {check.id: check.observed for check in checks if check.verdict in {"failed", "error"}} == {}
    assert any(check.verdict == "passed" for check in checks)


@contextlib.contextmanager
def processor_time(learner: Learner) -> Iterator[list[float]]:
    """What a run used of a processor, in seconds, as the only item, after the block: the command, and what ran on the nodes; as
    that is no child of ours, it is looked at ten times a second."""
    mark = f"GPUCOURSE_RUN_DIR={learner.workspace}".encode()
    seen: dict[str, int] = {}
    used: list[float] = []
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.1):
            for process in Path("/proc").glob("[0-9]*"):
                with contextlib.suppress(OSError):  # it ended meanwhile
                    if mark in (process / "environ").read_bytes():
                        fields = (process / "stat").read_text().rpartition(")")[2].split()
                        seen[f"{process.name} {fields[19]}"] = int(fields[11]) + int(fields[12])

    watcher = threading.Thread(target=look)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    watcher.start()
    try:
        yield used
    finally:
        over.set()
        watcher.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    ours = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert len(seen) > 1, "ranks were seen"
    used.append(ours + sum(seen.values()) / TICKS)


@pytest.mark.slow
@pytest.mark.parametrize("exercise", SMALL)
def test_an_exercise_on_its_nodes(four: Learner, exercise: str) -> None:
    nodes, sizes = SMALL[exercise]
    settings = [word for name, value in sizes.items() for word in ("--set", f"{name}={value}")]
    with processor_time(four) as used:
        document = four.types("run", exercise, "--nodes", str(nodes), *settings, "--json", timeout=STUCK_S).document
    record, verdict = document["run"], document["verdict"]
    assert (record["state"], record["diagnoses"], len(record["nodes"])) == ("succeeded", [], nodes)
    unsure = {check["id"]: check["observed"] for check in verdict["checks"] if check["verdict"] in {"failed", "error"}}
    assert unsure == {}
    assert any(check["verdict"] == "passed" for check in verdict["checks"])
    if exercise == "3.1":
        metrics = json.loads((four.run_folder() / "metrics.json").read_text())
        assert [rank["sum"] for rank in metrics["ranks"]] == [6, 6, 6]
        assert metrics["wrong_elements"] == 0
    assert used[0] < LIMIT_S
