"""Break drills on the screen: the effects of a fault, and the results of a diagnosis and of a repair."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpucourse.model.drill import HOWS, MEANING
from gpucourse.model.manifest import CodeFault, Exercise
from gpucourse.model.record import RunRecord
from gpucourse.model.verdict import ExerciseVerdict
from gpucourse.ui.tables import Block, Paragraph, View, facts
from gpucourse.ui.views.checks import checks
from gpucourse.ui.views.measured import measured_table
from gpucourse.ui.views.run import diagnoses

if TYPE_CHECKING:
    from gpucourse.runs.code_drill import JudgedDiagnosis, Repair


def drill(record: RunRecord) -> View:
    """Show a finished run with an injected fault: how it ended on each node, and how to submit a diagnosis."""
    ends = [f"{node_exit.node}: {node_exit.reason.replace('_', ' ')}, code {node_exit.code}" for node_exit in record.node_exits]
    return View(
        title=f"{record.exercise}  break drill",
        blocks=[
            facts([("run", record.id), ("ranks", str(record.world_size)), ("ended", "\n".join(ends))]),
            facts(
                ((fault, MEANING[fault]) for fault in HOWS),
                title="One of these faults was injected. Which one, and in which rank?",
            ),
        ],
        footer=[
            f"Look: gpucourse logs {record.id}, with --rank R, --fold or --times",
            f"Then submit: gpucourse check {record.exercise} --diagnosis WORD --rank R (--rank only if one rank is at fault)",
        ],
        mode=record.mode,
    )


def diagnosis_result(record: RunRecord, verdict: ExerciseVerdict) -> View:
    """Show the result of a diagnosis, with the coach's explanation if the diagnosis is right."""
    blocks = [*checks(verdict), *diagnoses(record.diagnoses)]
    return View(title=f"{record.exercise}  drill {record.id}", blocks=blocks, mode=record.mode)


def code_drill(
    record: RunRecord, exercise: Exercise, metrics: Mapping[str, Any] | None, copy: Path, faults: Mapping[str, CodeFault]
) -> View:
    """Show the run of a copy with a fault in its code: what it measured, the faults to choose from, and how to submit a
    diagnosis."""
    codes = {node_exit.code for node_exit in record.node_exits}
    tables = exercise.tables if metrics is not None else ()
    words = [(word, fault.title) for word, fault in faults.items()]
    return View(
        title=f"{record.exercise}  a fault in the code",
        blocks=[
            facts([("run", record.id), ("the copy", str(copy)), ("ended", f"code {max(codes, default=0)}")]),
            *(part for item in tables for part in measured_table(item, metrics or {})),
            facts(words, title="One of these faults is in the code. Which one?"),
        ],
        footer=[
            f"Read the figures, then the code in {copy}",
            f"Then submit: gpucourse check {record.exercise} --diagnosis WORD",
        ],
        mode=record.mode,
    )


def code_diagnosis(exercise: str, diagnosis: JudgedDiagnosis) -> View:
    """Show a right diagnosis: the explanation, and what comes next."""
    if diagnosis.fault is None:
        raise AssertionError(exercise)
    return View(
        title=f"{exercise}  {diagnosis.fault.title}",
        blocks=[Paragraph(f"Right. {diagnosis.fault.explanation}")],
        footer=[f"Repair it: {diagnosis.copy}", f"Then: gpucourse break {exercise} --repaired"],
    )


def repair(result: Repair) -> View:
    """Show the result of a repaired copy: the checks of its run, and what the judge says about the fault."""
    blocks: list[Block] = [*checks(result.verdict)] if result.verdict else []
    if result.judged is not None:
        words = {"passed": "The fault is gone.", "open": "The fault is still there."}.get(
            result.judged.word, result.judged.says
        )
        blocks.append(Paragraph(" ".join([words, *result.judged.notes]), "good" if result.is_right else "bad"))
    return View(title=f"{result.record.exercise}  the repaired copy", blocks=blocks, mode=result.record.mode)
