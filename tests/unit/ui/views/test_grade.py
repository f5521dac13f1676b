"""What `grade` shows of rows whose exercise has no run that counts."""

from __future__ import annotations

import csv
import io

from gpucourse.model.score import NO_RUN, Grade, PartScore, Piece, RowScore, Signs, list_missing
from gpucourse.ui.tables import Table, text_of
from gpucourse.ui.views.grade import format_csv, grade
from tests.unit.ui.examples import text


def row(name: str, *pieces: Piece, earned: float = 0.0) -> RowScore:
    """Return a row of the rubric that is worth five points."""
    return RowScore(id=name, title=name, points=5, earned=earned, missing=list_missing(pieces), pieces=pieces)


def test_grade_names_no_missing_run_when_a_row_has_all_points() -> None:
    rows = (
        row("completed", Piece(exercise="1.1", kind="checks", got=0, of=1, note=NO_RUN, short=NO_RUN)),
        row("yours", Piece(exercise="1.1", kind="yours", got=2, of=2), earned=5),
        row("answers", Piece(exercise="1.1", kind="answers", got=0, of=7, note="open: why", short="7 open")),
    )
    part = PartScore(module="1", title="Rivers", counts="course", here=True, points=15, earned=5, waiting=0, rows=rows)
    [table, *_] = grade(Grade(points=15, earned=5, bonus_points=0, bonus=0, waiting=0, parts=(part,))).blocks
    assert isinstance(table, Table)
    assert [cells[-1] for cells in table.rows] == ["1.1: no run yet", "", "1.1: no run yet"]


def test_grade_of_an_exercise_names_each_missing_thing_once() -> None:
    answers = Piece(exercise="1.1", kind="answers", got=0, of=1, note="open: why", short="1 answer open")
    checks = Piece(exercise="1.1", kind="checks", got=0, of=1, note=NO_RUN, short=NO_RUN)
    rows = (row("flow", checks, answers), row("depth", checks, answers))
    part = PartScore(module="1", title="Rivers", counts="course", here=True, points=10, earned=0, waiting=0, rows=rows)
    result = Grade(
        points=10, earned=0, bonus_points=0, bonus=0, waiting=0, parts=(part,), signs={"1.1": Signs(ran=False)}
    )  # fmt: skip
    output = text(grade(result, subject="1.1"))
    assert "What is missing\n  checks   no run yet\n  answers  open: why\n" in output
    assert (output.count("no run yet"), output.count("open: why")) == (1, 1)


def test_format_csv_has_a_line_for_each_row_and_total() -> None:
    rows = (row("completed", Piece(exercise="1.1", kind="checks", got=1, of=1), earned=5),)
    part = PartScore(module="1", title="Rivers", counts="course", here=True, points=5, earned=5, waiting=0, rows=rows)
    result = Grade(points=5, earned=5, bonus_points=0, bonus=0, waiting=0, parts=(part,))
    lines = list(csv.DictReader(io.StringIO(format_csv([("=Ada", "2026-01-01", result, {})]))))
    assert [(line["row"], line["earned"]) for line in lines] == [
        *(("completed", "5"), ("total", "5"), ("bonus", "0"), ("whole course", "0.0"))
    ]
    assert not any(line["who"].startswith("=") for line in lines), "a spreadsheet would compute it"


def test_grade_shows_earned_and_waiting_points_that_do_not_exceed_the_total() -> None:
    rows = (RowScore(id="all", title="all", points=3.3, earned=3.25, waiting=0.05),)
    part = PartScore(module="1", title="Rivers", counts="course", here=True, points=3.3, earned=3.25, waiting=0.05, rows=rows)
    view = grade(Grade(points=3.3, earned=3.25, bonus_points=0, bonus=0, waiting=0.05, parts=(part,)))
    assert view.footer[0].startswith("0.1 more points")
    assert isinstance(view.blocks[0], Table)
    assert text_of(view.blocks[0].rows[0][1]) == "3.2 of 3.3 (+0.1 waiting)"
