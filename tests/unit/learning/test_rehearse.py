"""An author's check: every exercise is run, every solution and every fault is judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpucourse.course.catalog import load
from gpucourse.course.locate import course_in
from gpucourse.course.new_course import start_course
from gpucourse.judge.client import Judge
from gpucourse.learning import rehearse as rehearsing
from gpucourse.learning.rehearse import RehearsalPlace, prove_parts, rehearse
from gpucourse.model.event import ignore_event
from gpucourse.model.record import NodeExit, RankExit
from gpucourse.workspace.paths import WorkspacePaths
from tests.learning import FOLDER, Learning
from tests.unit.learning.test_predictions import DIRECTION, ask_for_prediction
from tests.unit.learning.test_try import RIGHT, SAME, put_parts


def test_rehearse_reports_each_run_and_why_one_failed(learning: Learning, monkeypatch: pytest.MonkeyPatch) -> None:
    end = RankExit(node="node0", rank=0, code=3, at=1.0)
    records = [
        learning.record("1.1", node_exits=[NodeExit(node="node0", code=0, seconds=2.5)]),
        learning.record("1.2", state="failed", node_exits=[NodeExit(node="node0", code=3)], first_failure=end),
    ]
    documents = {
        record.exercise: learning.types("show", record.exercise, "--run", record.id, "--json").document for record in records
    }
    commands: list[str] = []

    def type_command(_environment: object, *words: str) -> tuple[int, dict[str, Any]]:
        commands.append(" ".join(words[:2]))
        return 0, documents[words[1]] if words[0] == "run" else {}

    monkeypatch.setattr(rehearsing, "type_command", type_command)
    success, failure = rehearse(learning.open_context().catalog, ["1"], ignore_event)
    assert (success.exercise, success.verdict, success.seconds, success.complaints) == ("1.1", "passed", 2.5, ())
    assert failure.complaints == (
        "modules/01-rivers/module.yaml: 1.2: does not run on simulated nodes: failed, rank 0 on node0 ended with code 3, "
        "its last line: found it",
    )
    assert commands == ["deploy 1", "run 1.1", "run 1.2", "destroy 1"]


def test_rehearse_names_ranges_that_miss_the_value_of_the_run(learning: Learning, monkeypatch: pytest.MonkeyPatch) -> None:
    ask_for_prediction(learning, DIRECTION.replace("[null, 2]", "[null, 1]"))
    document = learning.types("show", "1.1", "--run", learning.record("1.1").id, "--json").document
    monkeypatch.setattr(rehearsing, "type_command", lambda _environment, *words: (0, document if words[0] == "run" else {}))
    first, _ = rehearse(learning.open_context().catalog, ["1"], ignore_event)
    (complaint,) = first.complaints
    assert complaint.endswith("predict.faster: metrics.speedup 1.9 times: not judged: no option covers this value")


@pytest.mark.parametrize(("red", "complaint"), [(["wet"], ()), ([], ("no check",)), (["wet", "deep"], ("wet, deep",))])
def test_rehearse_proves_each_mutation(
    learning: Learning, monkeypatch: pytest.MonkeyPatch, red: list[str], complaint: tuple[str, ...]
) -> None:
    manifest = learning.course / f"modules/{FOLDER}/module.yaml"
    question = "{id: dry, kind: mutation, text: Dry it., check: wet, edit: helper.py, was: LITRES = 1.5, becomes: LITRES = 0}"
    manifest.write_text(manifest.read_text().replace("    questions:\n", f"    questions:\n      - {question}\n", 1))
    texts: list[str] = []

    def type_command(environment: dict[str, str], *words: str) -> tuple[int, dict[str, Any]]:
        copy = Path(environment["GPUCOURSE_WORKSPACE"]) / "exercises/shared/helper.py"
        copy.parent.mkdir(parents=True, exist_ok=True)
        if words[0] == "run" and words[1] == "1.1":
            texts.append(copy.read_text() if copy.is_file() else "")
        checks = [{"id": check, "verdict": "failed"} for check in red] if "--expect-red" in words else []
        return 0, {"run": {"state": "succeeded"}, "verdict": {"verdict": "passed", "checks": checks}, "folder": "/"}

    monkeypatch.setattr(rehearsing, "type_command", type_command)
    monkeypatch.setattr(rehearsing, "_evidence", lambda *_words, **_options: ())
    first, _ = rehearse(learning.open_context().catalog, ["1"], ignore_event)
    assert ["LITRES = 0\n" in text for text in texts] == [False, True]
    place = "modules/01-rivers/module.yaml: 1.1: questions.dry: with its edit,"
    assert first.complaints == tuple(f"{place} {words} failed, but only wet should fail" for words in complaint)


def test_prove_parts_tries_every_solution(learning: Learning) -> None:
    put_parts(learning)
    folder = f"exercises/{FOLDER}/solutions"
    learning.put(f"{folder}/my_double.py", RIGHT)
    learning.put(f"{folder}/other/my_double.py", SAME)
    context = learning.open_context()
    _, exercise = context.catalog.exercise("1.2")
    with Judge() as judge:
        place = RehearsalPlace(context.catalog, learning.course, context.paths, ignore_event, judge)
        complaints = list(prove_parts(place, exercise))
    assert complaints == ["yours.double: the other solution is failed same: you gave 3 back as it was, but should be passed"]


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("half_sums.py", "add(", "add(", ""),
        (
            "judges/my_sum.py",
            "import struct",
            "import no_such_module",
            "yours.pairs: its judge cannot be loaded: ModuleNotFound",
        ),
        ("judges/my_sum.py", "if given == 2048.0:", "if given == 5.0:", "yours.pairs: way in-order is failed other"),
        (
            "judges/fault_rounds_too_late.py",
            "if given != 2048:",
            "if given < 0:",
            "faults.rounds-too-late: with the fault is passed",
        ),
        ("judges/fault_rounds_too_late.py", "import struct", "import no_such", "faults.rounds-too-late: its judge cannot"),
        ("judges/fault_rounds_too_late.py", "!= 2048", "!= 1", "faults.rounds-too-late: as the course has it is failed still"),
    ],
)
def test_prove_parts_names_what_an_author_got_wrong(tmp_path: Path, file: str, old: str, new: str, message: str) -> None:
    start_course(tmp_path / "course")
    path = tmp_path / "course/exercises/01-rounding" / file
    path.write_text(path.read_text().replace(old, new))
    catalog = load(course_in(tmp_path / "course", hint=""))
    with Judge() as judge:
        place = RehearsalPlace(catalog, tmp_path, WorkspacePaths(tmp_path), ignore_event, judge)
        complaints = list(prove_parts(place, catalog.exercise("1.1")[1]))
    assert [line[: len(message)] for line in complaints] == ([message] if message else [])
