"""Drills on the screen: the effects of a fault, and the results of a diagnosis and of a repair."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpucourse.model.drill import HOWS, MEANING
from gpucourse.model.manifest import CodeFault, Exercise
from gpucourse.model.record import RunRecord
from gpucourse.model.verdict import ExerciseVerdict
from gpucourse.ui.tables import Block, Facts, Paragraph, View, facts
from gpucourse.ui.views.checks import checks
from gpucourse.ui.views.measured import measured_table
from gpucourse.ui.views.run import diagnoses

MAX_MEANINGS = 12
"""The maximum number of faults in code that are listed with their meanings. If there are more, only their names are shown."""
MAX_NEAREST = 10
"""The maximum number of faults in code that are listed after a word that is not one of them."""

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


def diagnosis_result(record: RunRecord, verdict: ExerciseVerdict, next_step: str = "") -> View:
    """Show the result of a diagnosis, with the coach's explanation if the diagnosis is right. `next_step` is the command that
    `gpucourse next` suggests."""
    blocks = [*checks(verdict), *diagnoses(record.diagnoses)]
    return View(title=f"{record.exercise}  drill {record.id}", blocks=blocks, mode=record.mode, next=next_step)


def code_drill(
    record: RunRecord,
    exercise: Exercise,
    metrics: Mapping[str, Any] | None,
    copy: Path,
    faults: Mapping[str, CodeFault],
    *,
    whole: bool = False,
) -> View:
    """Show the run of a copy with a fault in its code: what it measured, the faults to choose from, and how to submit a
    diagnosis. With `whole`, also show what each fault means."""
    is_short = len(faults) > MAX_MEANINGS and not whole
    codes = {node_exit.code for node_exit in record.node_exits}
    tables = exercise.tables if metrics is not None else ()
    return View(
        title=f"{record.exercise}  a fault in the code",
        blocks=[
            facts([("run", record.id), ("the copy", str(copy)), ("ended", f"code {max(codes, default=0)}")]),
            *(part for item in tables for part in measured_table(item, metrics or {})),
            Paragraph(f"One of these faults is in the code. Which one?\n{list_fault_words(faults)}")
            if is_short
            else list_meanings(faults),
        ],
        footer=[
            *([f"What the words mean: {record.show_command(' --verbose')}"] if is_short else []),
            f"Read the figures, then the code in {copy}",
            f"Then submit: gpucourse check {record.exercise} --diagnosis WORD",
        ],
        mode=record.mode,
    )


def list_fault_words(faults: Iterable[str]) -> str:
    """Return the names of faults in code, in alphabetical order."""
    return f"Faults in code of this module: {', '.join(sorted(faults))}"


def list_nearest_faults(word: str, faults: Sequence[str]) -> str:
    """Return the names of the faults in code that are most similar to `word`, and how many there are."""
    nearest = difflib.get_close_matches(word, faults, n=MAX_NEAREST, cutoff=0.0)
    number = f", the nearest of {len(faults)}" if len(faults) > len(nearest) else ""
    return f"Faults in code{number}: {', '.join(nearest)}"


def list_meanings(faults: Mapping[str, CodeFault]) -> Facts:
    """Return the faults from which the learner chooses, with their meanings."""
    pairs = ((word, fault.title) for word, fault in faults.items())
    return facts(pairs, title="One of these faults is in the code. Which one?")


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
        sentences = map(_make_sentence, [words, *result.judged.notes])
        blocks.append(Paragraph(" ".join(sentences), "good" if result.is_right else "bad"))
    return View(title=f"{result.record.exercise}  the repaired copy", blocks=blocks, mode=result.record.mode)


def _make_sentence(text: str) -> str:
    """Return a judge's text as a sentence, with a capital letter at the beginning and a full stop at the end."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '!', '?')) else '.'}"
