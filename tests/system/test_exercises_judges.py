"""Every part that a learner writes: it is open as delivered, two solutions pass, and each wrong way gets its own sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpucourse.course.part_files import find_gaps
from gpucourse.judge.client import Judge
from gpucourse.judge.proof import Proof, judge_of, prove
from gpucourse.model.manifest import LearnerPart
from tests.course import CATALOG, FOLDERS
from tests.parts import KERNELS, need, needs_module, needs_namespaces

pytestmark = pytest.mark.system
EXERCISES = FOLDERS.exercises


def parts() -> Iterator[tuple[str, Path, LearnerPart]]:
    for module in CATALOG.modules:
        for exercise in module.exercises:
            for part in exercise.yours:
                if part.judge:
                    yield exercise.id, EXERCISES / CATALOG.folder_name(module) / part.file, part


DEAR = {
    "attention", "bucketed-ddp", "checkpoint", "first-kernels", "fix", "flash-backward", "fsdp", "gemm", "graph", "hook",
    "kernels", "loop", "multi-node-file", "muon", "norm", "release", "ring", "sharded", "shares", "timer", "ulysses", "warps",
}  # fmt: skip
"""Parts whose judge starts ranks or compiles for a second or more: `make slow` judges them."""


def marks(part: LearnerPart) -> list[pytest.MarkDecorator]:
    """Return the marks for what the judge of a part needs in addition to torch."""
    modules = [needs_module(name, installed=KERNELS) for name in part.packages]
    modules += [needs_namespaces()] if part.file == "my_container.sh" else []
    return modules + ([pytest.mark.slow] if part.id in DEAR else [])


PARTS = [pytest.param(file, part, id=f"{exercise}-{part.id}", marks=marks(part)) for exercise, file, part in parts()]


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge() as judge:
        yield judge


@pytest.mark.parametrize(("file", "part"), PARTS)
def test_part_is_open_as_delivered_and_its_solution_passes(judge: Judge, file: Path, part: LearnerPart) -> None:
    assert list(find_gaps(file, judge_of(file))) == []
    versions = prove(judge, file, torch=part.torch, limit_s=part.limit, shared=EXERCISES / "shared", extent="brief")
    assert list_complaints(part, list(versions)) == []


@pytest.mark.slow
@pytest.mark.timeout(900)  # up to 27 versions, each of which may compile kernels or start ranks
@pytest.mark.parametrize(("file", "part"), PARTS)
def test_part_passes_with_the_other_solution_and_each_wrong_way_has_its_words(
    judge: Judge, file: Path, part: LearnerPart
) -> None:
    versions = prove(judge, file, torch=part.torch, limit_s=part.limit, shared=EXERCISES / "shared", extent="rest")
    assert list_complaints(part, list(versions)) == []


def list_complaints(part: LearnerPart, proofs: list[Proof]) -> list[str]:
    """Return what is wrong with the verdicts on the versions of a part. Wrong ways must not share a sentence."""
    if part.file.endswith(".c"):
        need("cc")
    solution = next(proof.answer for proof in proofs if proof.version.endswith("solution"))
    if part.file.endswith(".bt") and solution.says.startswith("it cannot be tried here"):
        pytest.skip(solution.says)  # it contains messages of bpftrace or the kernel
    failures = [proof for proof in proofs if proof.answer.word == "failed" and proof.version != "as delivered"]
    words = Counter(proof.answer.says for proof in failures)
    shared = [f"said of {count} ways: {text}" for text, count in words.items() if count > 1]
    return [f"{proof.version} {proof.complaint}" for proof in proofs if proof.complaint] + shared
