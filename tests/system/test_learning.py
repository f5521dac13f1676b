"""The learner's loop on a real lab (deploy, sweep, answer, check, grade, rerun, watch, reset), and the author's check."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.learning import FOLDER, SCRIPT
from tests.system.cli import Learner
from tests.system.small_course import write_course
from tests.waiting import STUCK_S, until

pytestmark = pytest.mark.system


def test_learner_goes_from_a_sweep_to_points(student: Learner, tmp_path: Path) -> None:
    swept = student.documents("run", "1.1", "--sweep", "depth=2,4")["sweep"]
    assert [(point["state"], point["verdict"]) for point in swept["points"]] == [("succeeded", "passed")] * 2
    assert (student.workspace / "deliverables/1.1/sweep-depth.md").is_file()
    result = student.types("answer", "1.1", "--set", "busy=45%", "--set", "speedup=1.9", "--set", "where=b", code=5)
    assert "45 % is incorrect; one more attempt counts" in result.out
    student.types("answer", "1.1", "--set", "busy=80%", "--set", "why=It falls.")
    student.types("check", "1.1")
    everything = student.documents("run", "1", "--all")["steps"]
    assert [(step["exercise"], step["verdict"]) for step in everything] == [("1.1", "passed"), ("1.2", "passed")]
    student.types("check", "--all")
    assert (student.workspace / "deliverables/1.1/screen.svg").is_file()
    grades = student.documents("grade")
    assert {row["id"]: row["earned"] for row in grades["parts"][0]["rows"]} == {
        "completed": 10, "deliverables": 5, "understanding": 6.25
    }  # fmt: skip
    assert grades["changed"] == {}
    bundle = tmp_path / "work.zip"
    student.types("grade", "--bundle", str(bundle))
    grader = Learner(tmp_path / "other", student.environ)
    assert grader.types("grade", "--open", str(bundle), "--json").document["bundles"][0]["grade"]["earned"] == 21.25


def test_watch_runs_on_each_save_until_ctrl_c(student: Learner) -> None:
    file = student.workspace / f"exercises/{FOLDER}/source.py"
    text = file.read_text()
    runs = len(list(student.workspace.glob("runs/1.1/*/run.json")))
    lines: list[bytes] = []
    process = student.begins("watch", "1.1", "--set", "depth=3")
    try:
        assert process.stderr is not None
        os.set_blocking(process.stderr.fileno(), False)

        def has_said(words: bytes) -> bool:
            lines.append(process.stderr.read() or b"" if process.stderr else b"")
            return words in b"".join(lines)

        until(lambda: has_said(b"watching 2 files of 1.1"), "the beginning")
        file.write_text(text + "\n# saved\n")
        until(lambda: has_said(b"watching; Ctrl-C ends"), "the run after a save")
        assert len(list(student.workspace.glob("runs/1.1/*/run.json"))) == runs + 1
        file.write_text("if\n")
        until(lambda: has_said(b"source.py:1: invalid syntax; it was not run"), "the complaint about the syntax")
        process.send_signal(signal.SIGINT)
        assert process.wait(STUCK_S) == 0
    finally:
        process.kill()
        process.communicate()
    restored = student.documents("reset", "1.1")["files"]
    assert Path(restored[f"{FOLDER}/source.py"]).read_text() == "if\n"
    assert file.read_text() == text


@pytest.mark.slow
def test_break_code_is_found_and_repaired(student: Learner) -> None:
    drill = student.documents("break", "1.1", "--how", "code")
    assert drill["faults"] == {"ten-times": "the litres are ten times too many"}
    copy = student.workspace / "broken/1.1/helper.py"
    assert "LITRES = 15.0" in copy.read_text()
    assert "LITRES = 1.5\n" in (student.workspace / "exercises/shared/helper.py").read_text()
    assert "Did you mean ten-times" in student.types("check", "1.1", "--diagnosis", "tentimes", code=2).err
    assert "Not kill-rank." in student.types("check", "1.1", "--diagnosis", "kill-rank", code=5).err
    assert "The river is small." in student.types("check", "1.1", "--diagnosis", "ten-times").out
    assert "15.0 litres" in student.types("break", "1.1", "--repaired", code=5).err
    copy.write_text(copy.read_text().replace("15.0", "3 / 2"))
    assert "The fault is gone." in student.types("break", "1.1", "--repaired").out
    record = student.newest_run()
    assert (record["state"], record["drill"], record["repair"], record["verdict"]) == ("broken", True, True, "passed")
    student.types("break", "1.1", "--how", "code")
    assert [path.read_text() for path in student.workspace.glob("kept/*/broken/1.1/helper.py")] == [
        '"""Help."""\n\nLITRES = 3 / 2\n'
    ]
    copy.unlink()
    assert "is gone" in student.types("break", "1.1", "--repaired", code=3).err


@pytest.mark.slow
def test_dev_check_run_tries_every_exercise_and_its_solution(tmp_path: Path) -> None:
    """Check two exercises: 1.1 has an open part with a solution, and a question without a tolerance. 1.2 has no part, and a
    wrong solution.
    """
    course = write_course(tmp_path / "course")
    folder = course / "exercises" / FOLDER
    holed = SCRIPT.replace("import helper", "import helper\nimport hole").replace('"wet": True', '"wet": hole.FILLED')
    for name, text in (
        ("source.py", holed),
        ("hole.py", '"""Fill it."""\n\nFILLED = None\n'),
        ("mouth.py", SCRIPT),
        ("solutions/hole.py", '"""Filled."""\n\nFILLED = True\n'),
        ("solutions/mouth.py", SCRIPT.replace('"wet": True', '"wet": False')),
    ):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    manifest = course / f"modules/{FOLDER}/module.yaml"
    first, second = manifest.read_text().split('  - id: "1.2"')
    first = first.replace("files: [helper.py]", "files: [helper.py, hole.py]").replace("        tolerance: 0.05\n", "")
    manifest.write_text(f'{first}  - id: "1.2"{second.replace("source.py", "mouth.py")}')
    author = Learner(tmp_path / "workspace", {"GPUCOURSE_COURSE": str(course)})
    document = author.types("dev", "check", "--run", "--json", code=2, timeout=300).document
    place = f"modules/{FOLDER}/module.yaml"
    assert document["complaints"] == [
        "modules/rubric.yaml: parts.9: there is no module 9",
        "modules/rubric.yaml: parts.1: checks and deliverables of 1.1 earn 60 % of its points; the limit is 30 %: "
        "the other points are for what the learner writes and answers",
        f"{place}: 1.1.yours: no part for the learner to write",
        f"{place}: 1.2.yours: no part for the learner to write",
        f"{place}: 1.1: questions.speedup: metrics.speedup is 1.9, and has no tolerance (0 if it is exact)",
        f"{place}: 1.2: every check passes with the files as delivered, although there is a solution",
        f"{place}: 1.2: with its solution: checks.wet: failed: false, expected true",
    ]
    assert [exercise["verdict"] for exercise in document["exercises"]] == ["passed", "failed"]
    assert author.processes() == []
