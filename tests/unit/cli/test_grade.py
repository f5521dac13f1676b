"""The command `grade`: its screens and tables, the review at a terminal, and the arguments that it refuses."""

from __future__ import annotations

import csv
import io

import pytest

from tests.learning import Learning
from tests.unit.learning.bundles import change_bundle, hand_in, read_judgements


def test_grade_of_an_unknown_exercise_says_what_can_be_typed(learning: Learning) -> None:
    assert "there is no exercise '1.7'" in learning.types("grade", "1.7", code=2).err
    assert "there is no module '7'" in learning.types("grade", "7", code=2).err
    assert "gpucourse grade --open work.zip" in learning.types("grade", "work.zip", code=2).err
    assert "accepts only --json or --csv" in learning.types("grade", "1.1", "--review", code=2).err
    assert "accepts only --json or --csv" in learning.types("grade", "1.1", "1.2", code=2).err


def test_grade_of_a_module_that_is_not_begun_is_one_line(learning: Learning) -> None:
    output = learning.types("grade").out
    assert "Not begun: module 1. Its rows: gpucourse grade --verbose" in output
    assert "no run yet" not in output
    assert "1.1, 1.2: no run yet" in learning.types("grade", "--verbose").out
    learning.record()
    output = learning.types("grade").out
    assert "Not begun" not in output
    rows = {line.partition("  ")[0]: line.rpartition("  ")[2] for line in output.splitlines()}
    assert rows["All exercises completed"] == "1.2: no run yet"
    assert rows["Understanding shown"] == "1.1: 4 answers open"


def test_grade_review_at_a_terminal_asks_for_each_text(learning: Learning) -> None:
    path = str(hand_in(learning))
    learning.types("grade", "--judge", "1.1/why=100")
    learning.leave()
    result = learning.types("grade", "--open", path, "--review", typing="Ada\nmany\n120\n50\nnot all of it\n")
    assert "look for  it falls" in result.out
    assert result.err.count("is not a whole number from 0 to 100") == 2
    assert [(judgement["comment"], judgement["by"]) for judgement in read_judgements(learning)] == [("not all of it", "Ada")]
    assert "nothing is waiting for review" in learning.types("grade", "--open", path, "--review", typing="").err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--review", "--judge", "1.1/why=120"], "120 % is not from 0 to 100 %"),
        (["--review", "--judge", "1.1/why"], "not of the form 3.2/why=80"),
        (["--review", "--judge", "1.1/why=50", "--judge", "1.1/whi=80"], "there is no question 'whi'"),
        (["--review", "--judge", "1.9/why=80"], "there is no exercise '1.9'"),
        (["--review", "--judge", "1.1/where=80"], "1.1 where is not free text"),
        (["--review", "--judge", "1.1/why=80", "--by", " "], "a judgement needs the name"),
        (["--review"], "answers to review: 1; this is not a terminal"),
        (["--csv", "--json"], "--csv and --json cannot be combined"),
        (["--bundle", "x.zip", "--csv"], "--bundle cannot be combined with other options"),
        (["--open", "/nowhere.zip"], "/nowhere.zip cannot be read"),
    ],
)
def test_grade_with_wrong_arguments_names_them(learning: Learning, words: list[str], message: str) -> None:
    hand_in(learning)
    result = learning.types("grade", *words, code=2)
    assert message in result.err + result.out
    assert not (learning.workspace / "deliverables/1.1/review.json").exists(), "nothing was kept, or all of it"


def test_grade_csv_has_every_row_and_the_total(learning: Learning) -> None:
    hand_in(learning)
    table = list(csv.DictReader(io.StringIO(learning.types("grade", "--csv").out)))
    assert [row["row"] for row in table] == [
        *("completed", "deliverables", "understanding", "rain", "1.1", "1.2", "total", "bonus", "whole course")
    ]
    assert {row["row"]: float(row["earned"]) for row in table}["total"] == 17.5
    assert table[2]["missing"] == "1.1: 1 answer needs review"


def test_grade_csv_with_a_name_that_a_spreadsheet_would_run_is_text(learning: Learning) -> None:
    hand_in(learning)
    path = learning.root / "evil.zip"
    learning.types("grade", "--bundle", str(path), "--by", '\t=HYPERLINK("a", 1)')
    forged_bundle = change_bundle(path, "bundle.json", b'"made": "2', b'"made": "=1+2')
    output = learning.types("grade", "--open", str(forged_bundle), "--csv").out
    table = list(csv.reader(io.StringIO(output)))
    assert {row[0] for row in table[1:]} == {'\'=HYPERLINK("a", 1)'}
    assert not [cell for row in table for cell in row if cell.startswith(("=", "+", "-", "@"))]


def test_grade_open_of_a_class_is_one_table_beside_a_broken_bundle(learning: Learning) -> None:
    whole = hand_in(learning)
    second = learning.root / "second one.zip"
    learning.types("grade", "--bundle", str(second), "--by", "Ada\x1b[2J")
    forged_bundle = change_bundle(whole, "metrics.json", b"1.9", b"9.9")
    broken_bundle = learning.root / "broken.zip"
    broken_bundle.write_bytes(b"no zip")
    learning.leave()
    names = [str(path) for path in (whole, second, broken_bundle, forged_bundle, whole)]  # as a shell makes of --open *.zip
    result = learning.types("grade", "--open", *names, code=5)
    lines = [line for line in result.out.splitlines() if ".zip" in line]
    assert [line.split()[0] for line in lines] == ["Ada", "Noah", "Noah", "Next:"], "by name, each bundle once"
    assert "17.5" in lines[0]
    assert "2 files" in next(line for line in lines if "changed.zip" in line)
    assert "3 bundles, and 1 that cannot be opened, median 17.5 of 25 points" in result.out
    assert lines[-1].endswith(f"gpucourse grade --open '{second}' --review")
    assert "broken.zip" in result.err
    assert "\x1b" not in result.out
    assert learning.types("grade", "--open", *names, code=5).out == result.out, "opened again, it is the same"
    document = learning.types("grade", "--json", "--open", *names, code=5).document
    assert ([len(document[key]) for key in ("bundles", "errors")]) == [3, 1]
    assert "--open" in learning.types("grade", str(whole), code=2).err
