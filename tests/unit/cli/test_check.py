"""The command `check`: the verdicts on the screen, and the arguments that it refuses."""

from __future__ import annotations

from gpucourse.model.drill import CodeDrill, CodeDrills, InjectedFault
from gpucourse.workspace import runs
from gpucourse.workspace.files import write_record
from tests.learning import METRICS, Learning, deploy
from tests.system.small_course import write_course


def test_check_shows_each_verdict_with_its_evidence(learning: Learning) -> None:
    learning.record(metrics={**METRICS, "springs": [{"litres": -1.0, "busy_percent": 3}], "wet": None})
    result = learning.types("check", "1.1", "--verbose", code=5)
    rows: dict[str, str] = {}
    for line in result.out.splitlines():
        if line[1:3] == "  ":
            rows.setdefault(line[:1], line)
    assert "It flows" in rows["✗"]
    assert "-1 l" in rows["✗"]
    assert "above 0 l" in rows["✗"]
    assert "It is wet" in rows["!"]
    assert "It is deep" in rows["–"]
    assert rows["–"].endswith("GPUs only")
    assert rows["✗"].endswith("every lab")
    assert "Wait for rain." in result.out
    deploy(learning)
    brief = learning.types("check", "1.1", code=5).out
    assert "✗ failed on simulated nodes: 1 failed, 1 error, 1 not measured" in brief
    assert "! It is wet: " in brief
    assert "✗ and 1 more did not pass" in brief
    assert len(brief.splitlines()[2:]) <= 8, "below the line that says simulated nodes"
    assert brief.splitlines()[-1] == "Next: gpucourse hint 1.1"


def test_check_with_wrong_arguments_names_them(learning: Learning) -> None:
    assert "name one exercise, or all of them" in learning.types("check", code=2).err
    assert "name one exercise, or all of them" in learning.types("check", "1.1", "--all", code=2).err
    assert "no run of 1.1 has succeeded yet" in learning.types("check", "1.1", code=3).err
    assert "0 of 2 exercises pass." in learning.types("check", "--all").out


def test_check_diagnosis_of_a_drill_shows_a_hint_until_it_is_right(learning: Learning) -> None:
    record = learning.record(state="broken", drill=True, launcher="torchrun")
    write_record(learning.context.paths.drill(record.id), InjectedFault(run=record.id, exercise="1.1", how="block-port"))
    assert learning.types("next", "--json").document["command"] == "gpucourse check 1.1 --diagnosis WORD"
    message = learning.types("check", "1.1", "--diagnosis", "kill-rank", code=5).err
    assert "Not kill-rank." in " ".join(message.split())
    output = learning.types("check", "1.1", "--diagnosis", "block-port").out
    assert "Next: gpucourse deploy 1" in output
    assert "\n  next" not in output
    document = learning.types("check", "1.1", "--diagnosis", "block-port", "--json").document
    assert (document["run"]["id"], document["verdict"]["verdict"]) == (record.id, "passed")
    assert learning.types("next", "--json").document["command"] == "gpucourse deploy 1"


def test_check_diagnosis_of_a_fault_in_code_shows_its_hints_until_it_is_right(learning: Learning) -> None:
    write_course(learning.course)
    record = learning.record(state="broken", drill=True)
    drills = CodeDrills(exercise="1.1", drills=[CodeDrill(fault="ten-times", run=record.id)])
    write_record(learning.context.paths.drill("1.1"), drills)
    deploy(learning)
    rejection = learning.types("check", "1.1", "--diagnosis", "kill-rank", code=5).err
    assert "Not kill-rank." in rejection
    assert "Look at the litres." in rejection
    refusal = learning.types("check", "1.1", "--diagnosis", "ten-times", "--rank", "0", code=2).err
    assert "--rank is for faults of a rank, not for a fault in the code" in refusal
    assert "Faults in code: ten-times" in learning.types("check", "1.1", "--diagnosis", "nonsense", code=2).err
    output = learning.types("show", "1.1", "--run", record.id, "--verbose").out
    assert "the litres are ten times too many" in output
    assert output.splitlines()[-1] == "Next: gpucourse check 1.1 --diagnosis WORD"
    document = learning.types("check", "1.1", "--diagnosis", "ten-times", "--json").document["diagnosis"]
    assert (document["right"], document["explanation"]) == (True, "The river is small.")
    assert learning.types("next", "--json").document["command"] == "gpucourse break 1.1 --repaired"
    repair = learning.record(state="broken", drill=True, repair=True)
    repair.verdict = "passed"
    runs.save(learning.context.paths, repair)
    assert learning.types("next", "--json").document["command"] == "gpucourse run 1.1"
    run = next(run for run in learning.types("runs", "--json").document["runs"] if run["id"] == record.id)
    assert (run["verdict"], run["diagnoses"][0]["symptom"]) == ("passed", "ten-times")
    assert "✓ found" in learning.types("runs").out


def test_check_of_a_script_that_never_ran_says_that_it_is_no_exercise(learning: Learning) -> None:
    assert "there is no exercise '/tmp/bad.py'" in learning.types("check", "/tmp/bad.py", code=2).err
