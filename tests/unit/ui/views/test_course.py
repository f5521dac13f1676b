from __future__ import annotations

from dataclasses import replace

from gpucourse.errors import ManifestError
from gpucourse.learning.list_ import Syllabus
from gpucourse.ui.views import course
from tests.unit.ui.examples import EXERCISE, MODULE, VERDICT, text


def test_catalog_shows_the_syllabus_and_broken_modules() -> None:
    error = ManifestError(["modules/04/module.yaml: id: missing"])
    syllabus = Syllabus(modules=[MODULE], step=None, progress={"3.1": VERDICT}, points=None, broken=[error])
    output = " ".join(text(course.catalog(syllabus)).split())
    assert "3 Parallel computing 1.5 h 3.1 Hello 20 min ✗ 3.2 Training 60 min –" in output
    assert "Files that cannot be read • modules/04/module.yaml: id: missing" in output
    assert text(course.catalog(replace(syllabus, modules=[], broken=[]))) == "The course\n"


def test_module_shows_its_lesson() -> None:
    output = text(course.module(MODULE, ["# Ranks\n\n* one\n"], {}))
    for words in ("Module 3: Parallel computing", "1.5 h", "2 nodes, up to 64", "module 1", "# Ranks", "gpucourse deploy 3"):
        assert words in output
    assert "--part" not in output
    assert "gpucourse deploy" not in text(course.module(MODULE, ["# Ranks\n"], {}, has_lab=True))
    assert "a head" not in output


def test_module_with_a_cluster_counts_the_head_separately() -> None:
    cluster = MODULE.model_copy(update={"lab": MODULE.lab.model_copy(update={"scheduler": "slurm"})})
    assert "2 nodes + head, up to 64" in text(course.module(cluster, ["# Ranks"], {}))


def test_lesson_part_names_the_next_part() -> None:
    lessons = ["# Module 3 · Parallel computing\n\nRanks.\n", "# Module 3, part 2 · Training\n\nLoss.\n", "Divide.\n"]
    first = text(course.module(MODULE, lessons, {}))
    assert "Ranks." in first
    assert first.count("Parallel computing") == 1, "the title is not shown twice"
    assert "Loss." not in first
    assert "The lesson continues with part 2 of 3: gpucourse show 3 --part 2\n" in first
    assert text(course.lesson_part(MODULE, lessons, 2)) == (
        "Module 3, part 2 of 3 · Training\n\nLoss.\n\nThe lesson continues with part 3 of 3: gpucourse show 3 --part 3\n"
    )
    assert text(course.lesson_part(MODULE, lessons, 3)) == "Module 3, part 3 of 3 · Parallel computing\n\nDivide.\n"


def test_exercise_shows_everything_that_it_requires() -> None:
    output = text(course.exercise(MODULE, EXERCISE, VERDICT))
    for words in (
        "3.1 Hello",
        "Say hello.",
        "2 nodes (1 to 64), one process per GPU, by torchrun",
        "  2. Read the [bold]logs[/bold].",
        "size         4,096         64  int 1 to 1,000,000  elements",
        "sum | max",
        "true",
        "Why?",
        "the planned world size",
        "at least 5 GB/s",
        "GPUs only",
        "logs/*.log",
        "gpucourse hint 3.1 (2 hints",
    ):
        assert words in output, words
    assert "3.2 Training" in text(course.exercise(MODULE, MODULE.exercises[1]))
