from __future__ import annotations

import pytest

from gpucourse.context import Context
from gpucourse.errors import MissingError, UsageError
from gpucourse.model.drill import CodeDrill, CodeDrills
from gpucourse.runs.code_drill import break_code, diagnose_code
from gpucourse.runs.resolve import RunRequest
from gpucourse.workspace.files import write_record


def test_break_code_puts_the_fault_into_a_copy_and_keeps_an_earlier_one(context: Context) -> None:
    fault = context.catalog.exercise("1.1")[1].faults[0]
    copy = context.paths.broken_copy("1.1") / fault.file
    for kept in (0, 1):
        with pytest.raises(MissingError, match="the lab of module 1 is not deployed"):  # the copy is written before the run
            break_code(context, RunRequest(exercise="1.1"), fault.id)
        assert fault.becomes in copy.read_text()
        assert len(list(context.paths.reset_backups.glob(f"*/broken/1.1/{fault.file}"))) == kept
    assert fault.was in (context.folders.exercises / "shared" / fault.file).read_text()
    plain = next(item.id for module in context.catalog.modules for item in module.exercises if not item.faults)
    with pytest.raises(UsageError, match=f"{plain} has no faults in code to find"):
        break_code(context, RunRequest(exercise=plain))


def test_diagnose_code_says_more_after_each_wrong_word(context: Context) -> None:
    fault = context.catalog.exercise("1.1")[1].faults[0]
    with pytest.raises(MissingError, match=r"there is no copy of 1\.1"):
        diagnose_code(context, "1.1", fault.id)
    write_record(context.paths.drill("1.1"), CodeDrills(exercise="1.1", drills=[CodeDrill(fault=fault.id, run="r")]))
    hints = [diagnose_code(context, "1.1", "another").hint for _ in range(len(fault.hints) + 1)]
    assert hints == [*fault.hints, fault.hints[-1]]
    right = diagnose_code(context, "1.1", fault.id)
    assert (right.right, right.fault, right.hint) == (True, fault, "")
