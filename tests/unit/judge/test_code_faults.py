"""Every fault in code that `break --how code` plants: its text is there, its judge sees it, and lets a repaired copy pass."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpucourse.course.catalog import load
from gpucourse.course.locate import CourseFolders
from gpucourse.judge.client import Judge
from gpucourse.judge.inside import load_judge
from gpucourse.model.manifest import CodeFault

ROOT = Path(__file__).parent.parent.parent.parent
EXERCISES = ROOT / "exercises"
CATALOG = load(CourseFolders(modules=ROOT / "modules", exercises=EXERCISES, terraform=ROOT / "terraform"))
FAULTS = [
    pytest.param(
        EXERCISES / CATALOG.folder_name(module), CATALOG.sources(module, exercise), fault, id=f"{exercise.id}-{fault.id}"
    )
    for module in CATALOG.modules
    for exercise in module.exercises
    for fault in exercise.faults
]


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge() as judge:
        yield judge


def test_at_least_fourteen_faults_lie_in_ten_exercises() -> None:
    by_exercise = [len(exercise.faults) for module in CATALOG.modules for exercise in module.exercises if exercise.faults]
    assert sum(by_exercise) >= 14
    assert len(by_exercise) >= 10
    ids = [fault.id for module in CATALOG.modules for exercise in module.exercises for fault in exercise.faults]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(("folder", "sources", "fault"), FAULTS)
def test_a_judge_sees_its_fault_and_passes_a_repair(
    judge: Judge, tmp_path: Path, folder: Path, sources: dict[str, str], fault: CodeFault
) -> None:
    judge_file = folder / "judges" / f"fault_{fault.id.replace('-', '_')}.py"
    loaded = load_judge(judge_file)
    runs = getattr(loaded, "RUNS", {"right": None, "wrong": None})
    original = (EXERCISES / sources[fault.file]).read_text(encoding="utf-8")
    broken = original.replace(fault.was, fault.becomes, 1)
    for name, place in sources.items():  # the files that the copy may import lie beside it
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(EXERCISES / place, tmp_path / name)
    versions = [("wrong", broken), ("right", original)]
    versions += [("right", broken.replace(*repair)) for repair in getattr(loaded, "REPAIRS", ())]
    for word, text in versions:
        (tmp_path / fault.file).write_text(text, encoding="utf-8")
        judged = judge.judge(
            judge_file,
            tmp_path / fault.file,
            torch=fault.torch,
            limit_s=20.0,
            path=(tmp_path,),
            metrics=runs[word],
        )
        expected = ("failed", "still") if word == "wrong" else ("passed", "")
        assert (judged.word, judged.way) == expected, f"{word}: {judged}"
