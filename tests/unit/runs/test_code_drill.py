from __future__ import annotations

from dataclasses import replace

import pytest

from gpucourse.context import Context
from gpucourse.errors import MissingError, UsageError
from gpucourse.model.drill import CodeDiagnosis, CodeDrill, CodeDrills
from gpucourse.model.verdict import PartResult
from gpucourse.runs import code_drill
from gpucourse.runs.code_drill import break_code, diagnose_code, judge_repair
from gpucourse.runs.follow import FollowedRun
from gpucourse.runs.resolve import RunRequest
from gpucourse.runs.run import RunResult
from gpucourse.workspace import runs
from gpucourse.workspace.files import read_record, write_record
from tests.learning import SCRIPT, Learning, deploy
from tests.system.small_course import write_course


def test_break_code_puts_the_fault_into_a_copy_and_keeps_an_earlier_one(context: Context) -> None:
    fault = context.catalog.exercise("1.1")[1].faults[0]
    copy = context.paths.broken_copy("1.1") / fault.file
    for number in (0, 1):
        with pytest.raises(MissingError, match="the lab of module 1 is not deployed"):  # the copy is written before the run
            break_code(context, RunRequest(exercise="1.1"), fault.id)
        assert fault.becomes in copy.read_text()
        assert len(list(context.paths.reset_backups.glob(f"*/broken/1.1/{fault.file}"))) == number
    assert fault.was in (context.folders.exercises / "shared" / fault.file).read_text()


def test_break_code_copies_the_parts_of_the_learner_that_have_passed(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    exercise = context.catalog.exercise("0.1")[1]
    [part] = exercise.yours
    file = context.paths.yours_file("0.1", part.file)
    file.parent.mkdir(parents=True)
    file.write_text("# the learner's\n")
    passed = PartResult(id=part.id, title="t", file=part.file, verdict="passed")
    for result, is_copied in ((replace(passed, verdict="failed"), False), (passed, True)):
        monkeypatch.setattr(code_drill, "read_part_results", lambda *_, result=result: (result,))
        with pytest.raises(MissingError, match="not deployed"):
            break_code(context, RunRequest(exercise="0.1"))
        copy = context.paths.broken_copy("0.1") / part.file
        assert (copy.read_text() == "# the learner's\n") is is_copied


def test_break_code_refuses_an_exercise_without_faults(learning: Learning) -> None:
    with pytest.raises(UsageError, match=r"1\.1 has no faults in code to find"):
        break_code(learning.open_context(), RunRequest(exercise="1.1"))


def test_diagnose_code_says_more_after_each_wrong_word(context: Context) -> None:
    fault = context.catalog.exercise("1.1")[1].faults[0]
    with pytest.raises(MissingError, match=r"there is no copy of 1\.1"):
        diagnose_code(context, "1.1", fault.id)
    write_record(context.paths.drill("1.1"), CodeDrills(exercise="1.1", drills=[CodeDrill(fault=fault.id, run="r")]))
    hints = [diagnose_code(context, "1.1", "another").hint for _ in range(len(fault.hints) + 1)]
    assert hints == [*fault.hints, fault.hints[-1]]
    diagnosis = diagnose_code(context, "1.1", fault.id)
    assert (diagnosis.right, diagnosis.fault, diagnosis.hint) == (True, fault, "")


def test_judge_repair_needs_the_whole_copy(context: Context) -> None:
    fault = context.catalog.exercise("1.1")[1].faults[0]
    with pytest.raises(MissingError, match=r"there is no copy of 1\.1"):
        judge_repair(context, RunRequest(exercise="1.1"))
    with pytest.raises(MissingError, match="the lab of module 1 is not deployed"):
        break_code(context, RunRequest(exercise="1.1"), fault.id)
    write_record(context.paths.drill("1.1"), CodeDrills(exercise="1.1", drills=[CodeDrill(fault=fault.id, run="r")]))
    (context.paths.broken_copy("1.1") / fault.file).unlink()
    with pytest.raises(MissingError, match=f"{fault.file} is gone") as caught:
        judge_repair(context, RunRequest(exercise="1.1"))
    assert caught.value.hint == "a new copy: gpucourse break 1.1 --how code"


@pytest.mark.parametrize(
    ("litres", "is_named", "word"), [("1.5", False, "passed"), ("15.0", True, "failed"), ("15.0", False, "open")]
)
def test_judge_repair_runs_the_copy_and_asks_the_judge_of_its_fault(
    learning: Learning, monkeypatch: pytest.MonkeyPatch, litres: str, is_named: bool, word: str
) -> None:
    write_course(learning.course)
    context, paths = learning.open_context(), learning.context.paths
    diagnoses = [CodeDiagnosis(fault="ten-times", right=True, at="")] * is_named
    drill = CodeDrill(fault="ten-times", run="r", diagnoses=diagnoses)
    write_record(paths.drill("1.1"), CodeDrills(exercise="1.1", drills=[drill]))
    for name, text in (("source.py", SCRIPT), ("helper.py", f"LITRES = {litres}\n")):
        (paths.broken_copy("1.1") / name).parent.mkdir(parents=True, exist_ok=True)
        (paths.broken_copy("1.1") / name).write_text(text)
    record = learning.record()
    deploy(learning)

    def run_copy(*_: object, is_repair: bool) -> RunResult:  # a run itself would need a lab
        record.repair = is_repair
        return RunResult(record=record, followed_run=FollowedRun(record=record, verdict=None))

    monkeypatch.setattr(code_drill, "run", run_copy)
    repair = judge_repair(context, RunRequest(exercise="1.1"))
    assert repair.judged is not None
    assert (repair.judged.word, repair.is_right) == (word, word == "passed")
    drill_record = read_record(paths.drill("1.1"), CodeDrills)
    assert drill_record is not None
    assert bool(drill_record.drills[-1].repaired) == repair.is_right
    stored = runs.read(paths, "1.1", record.id)
    assert stored is not None
    assert (stored.repair, stored.verdict) == (True, "passed" if repair.is_right else "failed")
