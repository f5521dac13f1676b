from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gpucourse.judge.client import JudgeAnswer
from gpucourse.model.drill import HOWS
from gpucourse.model.manifest import CodeFault
from gpucourse.model.record import NodeExit
from gpucourse.runs.code_drill import JudgedDiagnosis, Repair
from gpucourse.ui.views import drill
from tests.unit.ui.examples import EXERCISE, RESULTS, VERDICT, record, text


def test_drill_shows_how_each_node_ended_and_every_fault() -> None:
    ends = [NodeExit(node="node0", code=1), NodeExit(node="node1", code=143, reason="timed_out")]
    output = text(drill.drill(record(node_exits=ends)))
    assert "node0: exited, code 1" in output
    assert "node1: timed out, code 143" in output
    assert all(kind in output for kind in HOWS)
    assert "gpucourse check 3.1 --diagnosis WORD --rank R" in output


def test_repair_says_what_the_judge_found() -> None:
    verdict = replace(VERDICT, verdict="passed", checks=RESULTS[:1])
    for word, words in (("passed", "The fault is gone."), ("open", "The fault is still there."), ("failed", "Ten times.")):
        answer = JudgeAnswer(word=word, says="ten times", notes=("it was 3 %",))  # type: ignore[arg-type]
        result = Repair(record=record(), verdict=verdict, judged=answer)
        page = text(drill.repair(result))
        assert f"{words} It was 3 %." in page
        assert result.is_right == (word == "passed")


def test_list_nearest_faults_names_ten_of_many() -> None:
    faults = [f"{word}-{number}" for word in ("late", "small") for number in range(8)]
    line = drill.list_nearest_faults("smal-3", faults)
    assert line.startswith("Faults in code, the nearest of 16: small-3, small-")
    assert line.count(",") == drill.MAX_NEAREST


def test_code_diagnosis_explains_the_right_one_of_the_faults_that_code_drill_lists() -> None:
    fault = CodeFault(
        id="late", title="it is late", file="a.py", was="1", becomes="2", hints=("Look.", "Wait."), explanation="Time counts.",
    )  # fmt: skip
    page = text(drill.code_drill(record(), EXERCISE, None, Path("/w/copy"), {"late": fault}))
    assert "late  it is late" in page
    faults = {f"late-{number}": fault for number in range(drill.MAX_MEANINGS + 1)}
    short_page = text(drill.code_drill(record(), EXERCISE, None, Path("/w/copy"), faults))
    assert "Faults in code of this module: late-0, late-1" in short_page
    assert "it is late" not in short_page
    assert "it is late" in text(drill.code_drill(record(), EXERCISE, None, Path("/w/copy"), faults, whole=True))
    assert "Then submit: gpucourse check 3.1 --diagnosis WORD" in page
    diagnosis = JudgedDiagnosis(right=True, fault=fault, hint="", copy=Path("/w/copy/a.py"))
    page = text(drill.code_diagnosis("3.1", diagnosis))
    assert "Right. Time counts." in page
    assert "Repair it: /w/copy/a.py" in page
