"""Every fault in code that `break --how code` plants: its text is there, its judge sees it, and lets a repaired copy pass."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpucourse.course.part_files import name_fault_judge
from gpucourse.judge.client import Judge
from gpucourse.judge.proof import prove_fault
from gpucourse.model.manifest import CodeFault
from tests.course import CATALOG, FOLDERS
from tests.waiting import STUCK_S

EXERCISES = FOLDERS.exercises


def list_faults() -> Iterator[object]:
    """Yield the faults of the course. `make test` looks at the first of each module, `make slow` at the others."""
    for module in CATALOG.modules:
        marks: list[pytest.MarkDecorator] = []
        for exercise in module.exercises:
            for fault in exercise.faults:
                words = EXERCISES / CATALOG.folder_name(module), CATALOG.sources(exercise), fault
                yield pytest.param(*words, id=f"{exercise.id}-{fault.id}", marks=marks)
                marks = [pytest.mark.slow]


@pytest.mark.parametrize(("folder", "sources", "fault"), list(list_faults()))
def test_prove_fault_sees_each_fault_and_passes_a_repair(
    judge: Judge, folder: Path, sources: dict[str, str], fault: CodeFault
) -> None:
    judge_file = folder / "judges" / f"{name_fault_judge(fault)}.py"
    files = {name: EXERCISES / place for name, place in sources.items()}
    change = (fault.was, fault.becomes)
    proofs = list(prove_fault(judge, judge_file, fault.file, change, torch=fault.torch, limit_s=STUCK_S, sources=files))
    assert len(proofs) >= 2
    assert [f"{proof.version} {proof.complaint}" for proof in proofs if proof.complaint] == []
