"""The handed-in results of the parts that a learner writes: the best result counts, and only with the file that earned it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpucourse.context import Context
from gpucourse.errors import MissingError
from gpucourse.grading.points import read_signs
from gpucourse.judge.client import Judge
from gpucourse.learning.check import check
from gpucourse.learning.evidence import gather
from gpucourse.model.manifest import Exercise
from gpucourse.model.verdict import PartResult, PartVerdict
from gpucourse.runs.parts import judge_part, keep, list_part_files, read_newest_results, read_part_results
from gpucourse.ui.tables import Cell, Facts
from gpucourse.ui.views.parts import list_parts
from gpucourse.workspace.seals import sha256
from tests.learning import Learning
from tests.unit.learning.test_try import RIGHT, SAME, put_parts, run_with, states, write


@pytest.fixture
def exercise(context: Context) -> Exercise:
    exercise = context.catalog.exercise("3.3")[1]
    return exercise.model_copy(update={"yours": (exercise.yours[0].model_copy(update={"checks": ()}),)})


def result(file: Path, text: str, verdict: PartVerdict) -> tuple[PartResult, Path]:
    file.write_text(text)
    part = PartResult(id="line", title="t", file="my_line.py", verdict=verdict, sha256=sha256(file) or "")
    return part, file


def test_read_part_results_of_an_open_part_say_what_to_write(context: Context, exercise: Exercise) -> None:
    (part,) = read_part_results(context, exercise)
    assert (part.verdict, part.says) == ("open", exercise.yours[0].write)


def test_read_newest_results_of_a_part_that_passed_stay_passed(context: Context, exercise: Exercise, tmp_path: Path) -> None:
    tries: tuple[tuple[str, PartVerdict, PartVerdict], ...]
    tries = (("a", "failed", "failed"), ("b", "passed", "passed"), ("c", "failed", "passed"))
    for text, word, state in tries:
        keep(context, exercise, [result(tmp_path / "f.py", text, word)])
        assert read_part_results(context, exercise)[0].verdict == state
        assert read_newest_results(context.paths, exercise)["line"].verdict == word, "hints are about the newest"
    assert context.paths.yours_file("3.3", "my_line.py").read_text() == "b"


def test_read_part_results_are_not_replaced_by_an_open_part_or_one_not_judged(
    context: Context, exercise: Exercise, tmp_path: Path
) -> None:
    keep(context, exercise, [result(tmp_path / "f.py", "a", "failed")])
    keep(context, exercise, [result(tmp_path / "f.py", "b", "open")])
    keep(context, exercise, [result(tmp_path / "f.py", "b", "error")])
    assert read_part_results(context, exercise)[0].verdict == "failed"


def test_read_part_results_count_only_with_the_file_that_earned_them(
    context: Context, exercise: Exercise, tmp_path: Path
) -> None:
    keep(context, exercise, [result(tmp_path / "f.py", "a", "passed")])
    context.paths.yours_file("3.3", "my_line.py").write_text("another")
    assert read_part_results(context, exercise)[0].verdict == "open"


def test_read_part_results_of_a_wrong_part_are_open_again_after_reset(
    context: Context, exercise: Exercise, tmp_path: Path
) -> None:
    (file,) = list_part_files(context, exercise).values()
    delivered = file.read_text()
    keep(context, exercise, [result(file, "a", "failed")])
    assert read_part_results(context, exercise)[0].verdict == "failed"
    file.write_text(delivered)
    assert read_part_results(context, exercise)[0].verdict == "open"


def test_list_part_files_of_a_part_in_the_place_of_another_are_all_that_points_need(context: Context, tmp_path: Path) -> None:
    exercise = context.catalog.exercise("B.3")[1]
    part_result, file = result(tmp_path / "f.c", "a", "passed")
    keep(context, exercise, [(replace(part_result, id="preload", file="my_preload.c"), file)])
    evidence = gather(context, exercise, thorough=False)
    assert [part.id for part in evidence.parts] == ["preload"]
    assert read_signs(evidence).yours
    parts = list_parts(exercise, read_part_results(context, exercise), list_part_files(context, exercise))
    states = [block.pairs[-1][1] for block in parts if isinstance(block, Facts)]
    assert states == [Cell("not needed", "dim"), Cell("right", "good")]


class NoTorch(Judge):
    """A judge on a computer without torch."""

    def start(self, *, torch: bool) -> None:
        raise MissingError("torch is not installed on this computer", hint="pip install 'gpucourse[local]'")


def test_judge_part_without_its_package_starts_no_process(learning: Learning) -> None:
    put_parts(learning)
    context = learning.open_context()
    _, exercise = context.catalog.exercise("1.2")
    part = exercise.yours[0].model_copy(update={"packages": ("json", "no_such_package")})
    file = list_part_files(context, exercise)[part.id]
    assert judge_part(context, exercise, part, file).verdict == "open", "as delivered there is nothing to judge"
    file.write_text(RIGHT, encoding="utf-8")
    context.opened.judge = NoTorch()
    with pytest.raises(MissingError, match=r"^no_such_package is not installed on this computer$") as error:
        judge_part(context, exercise, part, file)
    assert error.value.hint.endswith(" -m pip install 'gpucourse[local]'")


def test_keep_started_files_keeps_the_part_as_it_was_at_the_start(learning: Learning) -> None:
    put_parts(learning)
    assert run_with(learning, RIGHT)[:2] == (0, ["passed", "open"])
    assert states(learning) == ["passed", "open"]
    write(learning, SAME)
    context = learning.open_context()
    _, verdict = check(context, "1.2")
    assert [part.verdict for part in verdict.parts] == ["passed", "open"]
    context.close()
