from __future__ import annotations

from dataclasses import replace

from gpucourse.judge.client import JudgeAnswer
from gpucourse.model.drill import HOWS
from gpucourse.model.record import NodeExit
from gpucourse.runs.code_drill import Repair
from gpucourse.ui.views import drill
from tests.unit.ui.examples import RESULTS, VERDICT, record, text


def test_drill_shows_how_each_node_ended_and_every_fault() -> None:
    ends = [NodeExit(node="node0", code=1), NodeExit(node="node1", code=143, reason="timed_out")]
    shown = text(drill.drill(record(node_exits=ends)))
    assert "node0: exited, code 1" in shown
    assert "node1: timed out, code 143" in shown
    assert all(how in shown for how in HOWS)
    assert "gpucourse check 3.1 --diagnosis WORD --rank R" in shown


def test_repair_says_what_the_judge_found() -> None:
    verdict = replace(VERDICT, verdict="passed", checks=RESULTS[:1])
    for word, words in (("passed", "The fault is gone."), ("open", "The fault is still there."), ("failed", "ten times")):
        answer = JudgeAnswer(word=word, says="ten times", notes=("it was 3 %",))  # type: ignore[arg-type]
        result = Repair(record=record(), verdict=verdict, judged=answer)
        assert f"{words} it was 3 %" in text(drill.repair(result))
        assert result.is_right == (word == "passed")
