"""Points for a part that the learner writes: only with a run or a `try` of exactly the file that is handed in."""

from __future__ import annotations

import csv
import io
import shutil
from dataclasses import asdict, replace
from typing import Any

import pytest

from gpucourse.model.record import RunRecord
from gpucourse.model.verdict import KeptParts, PartResult
from gpucourse.runs.finish import seal
from gpucourse.runs.parts import MAX_PART_BYTES, keep_started_files
from gpucourse.workspace import runs
from gpucourse.workspace.files import write_record
from gpucourse.workspace.seals import sha256
from tests.learning import FOLDER, MANIFEST, Learning
from tests.unit.learning.test_try import JUDGE, RIGHT, SAME, STUB, YOURS, write

RUBRIC = """\
format: 1
parts:
  - module: "1"
    title: Rivers
    rows: [{id: written, title: Parts written, points: 10, evidence: [yours], exercises: ["1.2"]}]
"""
DRY = "DRY = True\n"
METRICS = {"schema": 1, "device": "a CPU", "cuda": None, "wet": True}


@pytest.fixture
def writer(learning: Learning) -> Learning:
    """Return a learner of a course with two parts: one with a judge, and one that a check of the run decides."""
    learning.put(f"modules/{FOLDER}/module.yaml", MANIFEST + YOURS)
    learning.put("modules/rubric.yaml", RUBRIC)
    learning.put(f"exercises/{FOLDER}/my_double.py", STUB)
    learning.put(f"exercises/{FOLDER}/my_dry.py", "DRY = None\n")
    learning.put(f"exercises/{FOLDER}/judges/my_double.py", JUDGE)
    return learning


def run_both(learning: Learning, double: str = RIGHT, dry: str = DRY, **metrics: Any) -> RunRecord:
    """Return a run that started with these parts, judged and sealed."""
    write(learning, double)
    write(learning, dry, "my_dry.py")
    context = learning.open_context()
    record = learning.record("1.2", METRICS | metrics)
    keep_started_files(context, context.catalog.exercise("1.2")[1], record)
    seal(runs.files_of(context.paths, record), record.mode)
    learning.types("check", "1.2", code=None)
    return record


def forge(learning: Learning, *, double: str = RIGHT, dry: str = DRY, run: str = "", **change: Any) -> None:
    """Hand in both parts as if they had passed, by hand."""
    paths = learning.open_context().paths
    contents = {}
    for part, text in (("double", double), ("dry", dry)):
        file = paths.yours_file("1.2", f"my_{part}.py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        result = PartResult(id=part, title="t", file=file.name, verdict="passed", sha256=sha256(file) or "", run=run)
        contents[part] = replace(result, **change)
    write_record(paths.yours("1.2"), KeptParts(parts=contents))


def read_row(learning: Learning, *words: str) -> dict[str, Any]:
    """Return the row of parts in the grade of the workspace, or of a bundle that `words` open."""
    document = learning.types("grade", *words, "--json", code=None).document
    (row,) = (document["bundles"][0]["grade"] if words else document)["parts"][0]["rows"]
    return dict(row)


def read_points(learning: Learning) -> tuple[float, str]:
    """Return the points for parts in a bundle of the workspace, and what is missing."""
    table = learning.types("grade", "--open", str(learning.hand_in()), "--csv", code=None).out
    row = next(csv.DictReader(io.StringIO(table)))
    return float(row["earned"]), row["missing"]


def test_gather_from_a_run_of_both_parts_has_all_points(writer: Learning) -> None:
    run_both(writer)
    row = read_row(writer, "--open", str(writer.hand_in()))
    assert (row["earned"], row) == (10, read_row(writer))


def test_gather_after_a_newer_run_without_the_part_keeps_its_points(writer: Learning) -> None:
    run_both(writer)
    run_both(writer, double=STUB, dry="DRY = None\n")
    assert read_points(writer)[0] == 10


def test_gather_from_the_files_of_the_course_has_no_points(writer: Learning) -> None:
    writer.record("1.2", METRICS)
    forge(writer, double=STUB, dry="DRY = None\n")
    assert read_points(writer)[0] == 0


def test_gather_of_a_part_that_checks_judge_has_no_points_without_a_run(writer: Learning) -> None:
    writer.record("1.2", METRICS)
    forge(writer)
    earned, missing = read_points(writer)
    assert earned == 5, "the part with a judge may come from a try"
    assert "dry: a run checks it" in missing


@pytest.mark.parametrize("run", ["20260101-000000-otter", "../../elsewhere"])
def test_gather_from_a_run_that_is_missing_has_no_points(writer: Learning, run: str) -> None:
    writer.record("1.2", METRICS)
    forge(writer, run=run)
    earned, missing = read_points(writer)
    assert (earned, "is missing" in missing) == (0, True)


def test_gather_from_a_run_with_other_files_has_no_points(writer: Learning) -> None:
    record = run_both(writer, double=STUB, dry="DRY = None\n")
    forge(writer, run=record.id)
    earned, missing = read_points(writer)
    assert (earned, f"run {record.id} did not use this file" in missing) == (0, True)


def test_gather_from_files_that_were_added_to_a_run_later_has_no_points(writer: Learning) -> None:
    record = run_both(writer, double=STUB, dry="DRY = None\n")
    forge(writer, run=record.id)
    folder = writer.open_context().paths.yours_file("1.2", "x").parent
    shutil.copytree(folder, writer.folder(record) / "yours", dirs_exist_ok=True)
    earned, missing = read_points(writer)
    assert (earned, f"run {record.id} was changed after it had ended" in missing) == (0, True)


def test_gather_from_a_run_whose_checks_fail_has_no_points(writer: Learning) -> None:
    record = run_both(writer, wet=False)
    forge(writer, run=record.id)
    assert read_points(writer)[0] == 5, "the other part has no checks"


@pytest.mark.parametrize("change", [{"state": "failed"}, {"own_script": "/home/me/other.py"}, {"profiled": True}])
def test_gather_from_a_run_that_judges_no_part_has_no_points(writer: Learning, change: dict[str, Any]) -> None:
    record = run_both(writer)
    context = writer.open_context()
    files = runs.files_of(context.paths, record)
    write_record(files.record, asdict(runs.reread(context.paths, record)) | change)
    seal(files, record.mode)
    assert read_points(writer)[0] == 0


BODY = """    half = n / 2
    quarter = half / 2
    whole = 4 * quarter
    return int(2 * whole)
"""
SOLUTION = '"""A way to double."""\n\n\ndef double(n):\n    """Return n + n."""\n' + BODY


def test_review_parts_of_a_solution_has_points_once_a_reviewer_accepts(
    writer: Learning, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpucourse.course.part_files.MAX_EQUAL_CHARACTERS", 40)  # so that a short text is enough
    writer.put(f"exercises/{FOLDER}/solutions/my_double.py", SOLUTION)
    write(writer, SOLUTION.replace("quarter", "fourth"))
    assert "solution" not in writer.types("try", "1.2").err
    assert read_points(writer)[0] == 5, "other code"
    write(writer, "# mine\n\n" + SOLUTION.replace("half =", "half  =").replace("n / 2", "n / 2  # half of it"))
    trial = writer.types("try", "1.2")
    assert "my_double.py is the course's own solution: it earns no points until an instructor accepts it" in trial.err
    earned, missing = read_points(writer)
    assert (earned, "as the course's solution (needs review): double" in missing) == (0, True)
    assert "handed in; the same as a solution of the course, apart from comments and spaces" in " ".join(
        show_part(writer).split()
    )
    bundle = str(writer.root / "work.zip")
    writer.leave()
    assert "wait for a review by you" in writer.types("grade", "--open", bundle).out
    result = writer.types("grade", "--open", bundle, "--review", typing="Ada\n\n")
    assert "its code is the same as that of a solution of the course. Does it count?" in " ".join(result.out.split())
    assert "quarter = half / 2" in result.out
    writer.types("grade", "--open", bundle, "--judge", "1.2/double=100", "--by", "Ada")
    grade = writer.types("grade", "--open", bundle, "--json").document["bundles"][0]["grade"]
    assert (grade["earned"], grade["waiting"]) == (5, 0)


def test_review_parts_of_a_part_that_a_reviewer_marks_down_has_the_rest(writer: Learning) -> None:
    run_both(writer)
    bundle = str(writer.hand_in())
    writer.leave()
    writer.types("grade", "--open", bundle, "--judge", "1.2/double=0", "--judge", "1.2/dry=50", "--by", "Ada")
    output = writer.types("grade", "--open", bundle, "--csv").out
    assert "marked down: double, dry" in output
    assert writer.types("grade", "--open", bundle, "--json").document["bundles"][0]["grade"]["earned"] == 2.5


def test_review_parts_by_the_learner_is_refused(writer: Learning) -> None:
    run_both(writer)
    result = writer.types("grade", "--judge", "1.2/double=100", code=2)
    assert "1.2 double is a part: an instructor judges it in your bundle" in result.err


def test_review_parts_of_a_part_that_is_not_handed_in_is_refused(writer: Learning) -> None:
    writer.record("1.2", METRICS)
    bundle = str(writer.hand_in())
    writer.leave()
    result = writer.types("grade", "--open", bundle, "--judge", "1.2/double=100", code=2)
    assert "1.2 double has not been handed in" in result.err


def show_part(learning: Learning) -> str:
    """Return the text about exercise 1.2 that an instructor sees."""
    return learning.types("grade", "--open", str(learning.hand_in()), "--exercise", "1.2", code=None).out


def test_review_parts_without_a_run_shows_the_part_that_was_handed_in(writer: Learning) -> None:
    write(writer, RIGHT)
    writer.types("try", "1.2")
    text = show_part(writer)
    assert "+    return 2 * n" in text, "with its indentation"
    text = " ".join(text.split())
    assert "my_double.py: 1 added, 1 removed, which the learner writes" in text
    assert "handed in; right, but judged only on the learner's computer" in text


def test_review_parts_shows_the_part_of_a_newer_run_as_well(writer: Learning) -> None:
    run_both(writer)
    run_both(writer, double=RIGHT.replace("2 * n", "3 * n"))
    output = show_part(writer)
    assert output.index("+    return 3 * n") < output.index("+    return 2 * n")
    assert output.count("my_dry.py: ") == 1


def test_review_parts_says_what_a_forged_part_is(writer: Learning) -> None:
    writer.record("1.2", METRICS)
    forge(writer, double=STUB)
    text = " ".join(show_part(writer).split())
    assert "handed in as the course delivers it: open" in text
    assert "handed in; not judged: a run checks it: gpucourse run 1.2" in text
    writer.open_context().paths.yours_file("1.2", "my_double.py").write_text(RIGHT)
    assert "handed in; differs from the file that was judged: open" in " ".join(show_part(writer).split())


def test_review_parts_names_those_that_only_the_learner_judged(writer: Learning) -> None:
    run_both(writer)
    bundle = str(writer.hand_in())
    words = " ".join(writer.types("grade", "--open", bundle).out.split())
    assert "parts that only the learner's computer judged: 1.2 double; judge them again: gpucourse grade --rerun" in words
    grade = writer.types("grade", "--open", bundle, "--json").document["bundles"][0]["grade"]
    assert grade["learner_judged"] == {"1.2": ["double"]}, "the checks of a run that is here decide about the other part"
    rows = csv.DictReader(io.StringIO(writer.types("grade", "--open", bundle, "--csv").out))
    assert [row["learner_judged"] for row in rows if row["learner_judged"]] == ["1.2 double"] * 3, "its row, exercise and total"
    shutil.copy(bundle, writer.root / "b.zip")
    words = " ".join(writer.types("grade", "--open", bundle, "--open", str(writer.root / "b.zip")).out.split())
    assert "parts not judged here" in words
    writer.leave()
    writer.types("grade", "--open", bundle, "--judge", "1.2/double=80", "--by", "Ada")
    grade = writer.types("grade", "--open", bundle, "--json").document["bundles"][0]["grade"]
    assert grade["learner_judged"] == {}


def judge_again(learning: Learning, code: int) -> tuple[str, str, list[tuple[str, str, str]]]:
    """Return the result of `--rerun` for exercise 1.2: the verdict, the reason, and each part with its two verdicts."""
    result = learning.types("grade", "--rerun", str(learning.hand_in()), "--exercise", "1.2", "--yes", "--json", code=code)
    (exercise,) = result.document["exercises"]
    figures = [(figure["value"], figure["bundle"], figure["again"]) for figure in exercise["figures"]]
    return exercise["verdict"], exercise["why"], figures


def test_evidence_of_a_right_part_is_the_same_after_a_rerun(writer: Learning) -> None:
    write(writer, RIGHT)
    writer.types("try", "1.2")
    assert judge_again(writer, 0) == ("agrees", "no run that counts", [("part double", "passed", "passed")])


def test_evidence_of_a_wrong_part_that_is_called_right_differs_after_a_rerun(writer: Learning) -> None:
    forge(writer, double=SAME)
    assert judge_again(writer, 5) == ("differs", "no run that counts", [("part double", "passed", "failed")])


@pytest.mark.parametrize("change", [{"id": "dry"}, {"id": "nothing"}, {"file": "../my_double.py"}])
def test_gather_from_a_result_of_another_part_has_no_points(writer: Learning, change: dict[str, str]) -> None:
    writer.record("1.2", METRICS)
    forge(writer, **change)
    assert read_points(writer)[0] == 0


def test_gather_of_a_part_that_is_too_large_has_no_points(writer: Learning) -> None:
    forge(writer, double=RIGHT + "#" * MAX_PART_BYTES)
    assert read_points(writer)[0] == 0
