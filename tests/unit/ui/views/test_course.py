from __future__ import annotations

from gpucourse.errors import ManifestError
from gpucourse.ui.views import course
from tests.unit.ui.examples import EXERCISE, MODULE, VERDICT, text


def test_catalog_shows_the_syllabus_and_broken_modules() -> None:
    error = ManifestError(["modules/04/module.yaml: id: missing"])
    assert text(course.catalog([MODULE], {"3.1": VERDICT}, [error])) == (
        "The course\n"
        "\n"
        "3 Parallel computing (1.5 h)\n"
        "     exercise  min  progress\n"
        "3.1  Hello      20  ✗ failed (simulated)\n"
        "3.2  Training   60  not yet\n"
        "\n"
        "Modules that cannot be read\n"
        "  • modules/04/module.yaml: id: missing\n"
        "\n"
        "0 of 2 exercises passed.\nNext: gpucourse next\n"
    )
    assert "The course" in text(course.catalog([], {}))


def test_module_shows_its_lesson() -> None:
    output = text(course.module(MODULE, ["# Ranks\n\n* one\n"], {}))
    for words in ("Module 3: Parallel computing", "1.5 h", "2 nodes, up to 64", "module 1", "# Ranks", "gpucourse deploy 3"):
        assert words in output
    assert "--part" not in output
    assert "a head" not in output


def test_module_with_a_cluster_counts_the_head_apart() -> None:
    cluster = MODULE.model_copy(update={"lab": MODULE.lab.model_copy(update={"scheduler": "slurm"})})
    assert "2 nodes, up to 64, and a head" in text(course.module(cluster, ["# Ranks"], {}))


def test_lesson_part_names_the_next_part() -> None:
    lessons = ["# Ranks\n", "# Training\n", "# Dividing\n"]
    first = text(course.module(MODULE, lessons, {}))
    assert "# Ranks" in first
    assert "# Training" not in first
    assert "The lesson continues with part 2 of 3: gpucourse show 3 --part 2\n" in first
    assert text(course.lesson_part(MODULE, lessons, 2)) == (
        "Module 3: Parallel computing, part 2 of 3\n\n# Training\n\n"
        "The lesson continues with part 3 of 3: gpucourse show 3 --part 3\n"
    )
    assert text(course.lesson_part(MODULE, lessons, 3)) == "Module 3: Parallel computing, part 3 of 3\n\n# Dividing\n"


def test_exercise_says_everything_it_takes() -> None:
    output = text(course.exercise(MODULE, EXERCISE, VERDICT))
    for words in (
        "3.1 Hello",
        "Say hello.",
        "2 nodes (1 to 64), one process per GPU, by torchrun",
        "  2. Read the [bold]logs[/bold].",
        "size          4096         64  int 1 to 1,000,000  elements",
        "sum | max",
        "true",
        "Why?",
        "plan.world_size",
        "at least 5 GB/s",
        "GPUs only",
        "logs/*.log",
        "gpucourse run 3.1 --set size=4096",
        "gpucourse hint 3.1 (2 hints",
    ):
        assert words in output, words
    assert "3.2 Training" in text(course.exercise(MODULE, MODULE.exercises[1]))
