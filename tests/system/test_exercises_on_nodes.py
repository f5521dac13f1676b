"""Exercises typed by a learner on simulated nodes: what a run needs of its nodes, takes along, and brings home."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator

import pytest

from tests.parts import needs_module
from tests.system.cli import Learner
from tests.system.exercising import FOLDERS, list_open_checks, needs_torch, run_by_command
from tests.waiting import STUCK_S

pytestmark = [pytest.mark.system, needs_torch, pytest.mark.slow]


@pytest.fixture(scope="module")
def learner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Learner]:
    """Somebody in a folder whose name has a space and quotes in it, with four nodes for module 3 and one for others."""
    learner = Learner(tmp_path_factory.mktemp("nodes") / 'it\'s my "work" space')
    learner.takes_ports()
    with learner.leaves_nothing():
        learner.types("deploy", "3", "--nodes", "4")
        for module in ("0", "1", "4", "5"):
            learner.types("deploy", module)
        yield learner


@pytest.mark.parametrize(
    ("exercise", "nodes", "settings"),
    [
        ("0.2", 1, {"epochs": "1", "samples": "64"}),
        ("3.1", 3, {"elements": "1000"}),
        ("3.9", 4, {"steps": "4", "procs": "1"}),
    ],
)
def test_an_exercise_succeeds_on_so_many_nodes(learner: Learner, exercise: str, nodes: int, settings: dict[str, str]) -> None:
    words = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    document = learner.types("run", exercise, "--nodes", str(nodes), *words, "--json", timeout=STUCK_S).document
    record, verdict = document["run"], document["verdict"]
    assert (record["state"], record["diagnoses"], len(record["nodes"])) == ("succeeded", [], nodes)
    found = {check["id"]: check["observed"] for check in verdict["checks"] if check["verdict"] in {"failed", "error"}}
    assert found == {}
    assert any(check["verdict"] == "passed" for check in verdict["checks"])
    if exercise == "3.1":
        metrics = json.loads((learner.run_folder() / "metrics.json").read_text())
        assert [rank["sum"] for rank in metrics["ranks"]] == [6, 6, 6]


def test_a_learner_repairs_their_own_copy_and_passes(learner: Learner) -> None:
    solution = FOLDERS.exercises / "01-basic-gpu" / "solutions" / "my_fix.py"
    mine = learner.workspace / "exercises" / "01-basic-gpu" / "my_fix.py"
    mine.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(solution, mine)
    run, folder = run_by_command(learner, "1.4", size="1000", budget_mib="64")
    assert list_open_checks(run) == {}
    assert (folder / "outputs" / "node0" / "my_fix.py").read_bytes() == solution.read_bytes(), "what was judged came home"
    assert (folder / "screen.svg").is_file(), "the captured screen"
    assert run.metrics["fix_peak_bytes"] <= run.metrics["capacity_bytes"] < 4 * 1024 * run.metrics["fix_rows"]
    assert "(local mode)" in run.output


@needs_module("transformers")
def test_a_run_of_4_3_travels_along_to_4_4_and_its_weights_stay(learner: Learner) -> None:
    throughput, folder = run_by_command(learner, "4.3", batch_sizes="1", input_len="8", output_len="6", repeats="1")
    assert not (folder / "outputs/node0/tiny").exists(), "14 MB of weights need not come home"
    cost, _ = run_by_command(learner, "4.4")
    assert list_open_checks(cost) == {}
    assert [run["run"] for run in cost.metrics["measured"]] == [folder.name]
    assert cost.metrics["reference_tok_per_s"] == throughput.metrics["best_tok_per_s"]
    assert [row["from"] for row in cost.metrics["rows"] if row["tok_per_s"]] == ["what if"], "a CPU is no T4"


@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("g++"), reason="the emulator needs g++ on Linux")
def test_deliverables_of_kernels_come_home_with_the_pictures_of_a_processor(learner: Learner) -> None:
    run, folder = run_by_command(learner, "5.1")
    assert "no picture" not in run.output
    sources = [item.source for item in run.exercise.deliverables if item.evidence != "gpu"]
    assert [source for source in sources if not list(folder.glob(source))] == []
    assert {path.name for path in folder.glob("*.png")} == {"sectors.png"}, "what needs a GPU is not drawn"
