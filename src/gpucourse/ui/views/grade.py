"""Points on the screen, and as a table for a spreadsheet."""

from __future__ import annotations

import csv
import io
import shlex
import statistics
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gpucourse.model.score import Grade, PartScore, RowScore, Signs
from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.tables import Block, Cell, Column, Content, Items, Paragraph, Style, View, facts, table
from gpucourse.ui.text import clean_line, format_count

if TYPE_CHECKING:
    from gpucourse.learning.bundle import Card, OpenBundle
    from gpucourse.learning.grade import Pending

LEVELS = {"gpu": "gpu", "logic": "logic (simulated)", "none": UNICODE.absent}
COUNTS = {"course": "", "bonus": ", bonus", "own": ", scored separately"}
FIELDS = ("who", "made", "module", "row", "title", "counts", "points", "earned", "waiting", "evidence", "missing")


def grade(result: Grade, *, who: str = "", bundle: str = "") -> View:
    """Every row of the rubric with its points, what they stand on and what is missing. `bundle`: the file that holds the
    work, where a reviewer sees it."""
    blocks: list[Block] = [_part(part) for part in result.parts]
    if result.quiz is not None:
        quiz = result.quiz
        blocks.append(facts([("quiz", f"{quiz.right} of {quiz.of}, the best of {format_count(quiz.tries, 'attempt')}")]))
    total = f"{_points(result.earned)} of {_points(result.points)} points"
    bonus = f", and {_points(result.bonus)} of {_points(result.bonus_points)} as a bonus" if result.bonus_points else ""
    blocks.append(Paragraph(total + bonus, "strong"))
    if result.signs:
        blocks.append(Paragraph(_signs(list(result.signs.values()))))
    if result.changed:
        lines = tuple(Cell(f"{name}: {', '.join(files[:6])}", "bad") for name, files in result.changed.items())
        blocks.append(Items(lines, title="Changed after the run, so it gives no points"))
    footer = []
    if result.waiting:
        judge = f"by you: gpucourse grade --open {bundle} --review"
        hand_in = "by an instructor: gpucourse grade --bundle work.zip"
        footer.append(f"{_points(result.waiting)} more points are pending review {judge if bundle else hand_in}")
    footer.append("Points come from evidence: what a run recorded, what is handed in, what was answered.")
    return View(title=f"Points{f' of {who}' if who else ''}", blocks=tuple(blocks), footer=tuple(footer))


def bundle_grade(bundle: OpenBundle, result: Grade) -> View:
    """A bundle on another machine: who handed in what when, whether it is as it was, and the points as counted here."""
    card = bundle.card
    shown = grade(result, who=card.by, bundle=str(bundle.path))
    then = f"{_points(card.grade.earned)} then, {_points(result.earned)} as counted here"
    about = facts(
        [
            ("made", f"{card.made} with gpucourse {card.gpucourse}"),
            ("workspace", card.workspace),
            ("files", format_count(len(card.files), "file")),
            ("left out", ", ".join(card.left_out)),
            ("points", then),
        ]
    )
    seal: Block = Paragraph(f"{UNICODE.good} every file is as it was when the bundle was made", "good")
    if bundle.changed:
        seal = Items(tuple(Cell(name, "bad") for name in bundle.changed[:12]), title="Changed since the bundle was made")
    return shown._replace(blocks=(about, seal, *shown.blocks))


def class_table(graded: Sequence[tuple[OpenBundle, Grade]], broken: int = 0) -> View:
    """A row for every bundle of a class, by name: points, what waits for a review, how far it is, what was changed."""
    rows: list[Sequence[Content]] = []
    ordered = sorted(graded, key=lambda pair: (pair[0].card.by.casefold(), str(pair[0].path)))
    for bundle, result in ordered:
        files = len(bundle.changed) or sum(map(len, result.changed.values()))
        done = sum(item.is_done for item in result.signs.values())
        bonus = f" + {_points(result.bonus)}" if result.bonus else ""
        rows.append(
            (
                clean_line(bundle.card.by),
                f"{_points(result.earned)}{bonus}",
                Cell(_points(result.waiting), "" if result.waiting else "dim"),
                f"{done} of {len(result.signs)}",
                Cell(format_count(files, "file"), "bad") if files else Cell(UNICODE.absent, "dim"),
                clean_line(bundle.path.name),
            )
        )
    right = [Column(name, align="right") for name in ("points", "to review", "done")]
    columns: list[Column | str] = [Column("who", wrap=True), *right, "changed", Column("bundle", wrap=True)]
    earned = sorted(result.earned for _, result in graded)
    middle = f"median {_points(statistics.median(earned))} of {_points(graded[0][1].points)} points" if graded else ""
    count = format_count(len(graded), "bundle") + (f", and {broken} that cannot be opened" if broken else "")
    waiting = next((bundle for bundle, result in ordered if result.waiting), None)
    return View(
        title="Class",
        blocks=(table(columns, rows), Paragraph(", ".join(filter(None, (count, middle))), "strong")),
        next=f"gpucourse grade --open {shlex.quote(str(waiting.path))} --review" if waiting else "",
    )


def new_bundle(card: Card, path: str) -> View:
    """A bundle that was just made."""
    told = facts(
        [
            ("bundle", path),
            ("by", card.by),
            ("files", format_count(len(card.files), "file")),
            ("left out", ", ".join(card.left_out)),
            ("points", f"{_points(card.grade.earned)} of {_points(card.grade.points)}, {_points(card.grade.bonus)} bonus"),
        ]
    )
    return View(blocks=(told,), footer=(f"An instructor opens it with: gpucourse grade --open {path}",))


def to_judge(waiting: Pending, number: int, of: int) -> View:
    """One free text, for the person who judges it."""
    blocks: list[Block] = [Paragraph(waiting.question.text, "strong"), Paragraph(waiting.answer)]
    if waiting.question.look_for:
        blocks.append(facts([("look for", waiting.question.look_for)]))
    return View(title=f"{number} of {of}  {waiting.exercise.id} {waiting.question.id}", blocks=tuple(blocks))


def as_csv(grades: Iterable[tuple[str, str, Grade]]) -> str:
    """One line a row of the rubric, and one for each total; for each name and date one after the other."""
    page = io.StringIO()
    lines = csv.writer(page, lineterminator="\n")
    lines.writerow(FIELDS)
    for who, made, result in grades:
        for part in result.parts:
            for row in part.rows:
                told = [
                    part.module,
                    row.id,
                    row.title,
                    part.counts,
                    row.points,
                    row.earned,
                    row.waiting,
                    row.level,
                    _say_missing(row),
                ]
                lines.writerow([_safe(cell) for cell in (who, made, *told)])
        name = (_safe(who), _safe(made))
        if result.quiz:
            lines.writerow([*name, "", "quiz", "The quiz", "own", result.quiz.of, result.quiz.right, 0, "", ""])
        lines.writerow([*name, "", "total", "All points", "course", result.points, result.earned, result.waiting, "", ""])
        lines.writerow([*name, "", "bonus", "The bonus", "bonus", result.bonus_points, result.bonus, 0, "", ""])
    return page.getvalue()


def _signs(signs: Sequence[Signs]) -> str:
    """How many exercises are done, and how many have each sign."""
    yours = f"yours {sum(bool(item.yours) for item in signs)}"
    words = [f"ran {sum(item.ran for item in signs)}", yours, f"answered {sum(bool(item.answered) for item in signs)}"]
    return f"{sum(item.is_done for item in signs)} of {format_count(len(signs), 'exercise')} done: {', '.join(words)}"


def _part(part: PartScore) -> Block:
    title = f"{part.module}  {part.title}: {_points(part.earned)} of {_points(part.points)}{COUNTS[part.counts]}"
    if not part.here:
        return Paragraph(f"{title} (not in this course)", "dim")
    columns: list[Column | str] = [
        Column("for", wrap=True), Column("points", align="right", wrap=True), "evidence", Column("what is missing", wrap=True)
    ]  # fmt: skip
    return table(columns, [_row(row) for row in part.rows], title=title)


def _row(row: RowScore) -> Sequence[Content]:
    style: Style = "good" if row.earned >= row.points else "" if row.earned else "dim"
    waiting = f" (+{_points(row.waiting)} waiting)" if row.waiting else ""
    points = f"{_points(row.earned)} of {_points(row.points)}{waiting}"
    return row.title, Cell(points, style), Cell(LEVELS[row.level], "dim"), _say_missing(row, short=True)


def _say_missing(row: RowScore, *, short: bool = False) -> str:
    """`3.1: no run yet; 3.2: open: why`, and what is the same for several exercises only once. `short`: counted, not named."""
    by_note: dict[str, list[str]] = {}
    for piece in row.pieces:
        if piece.note:
            by_note.setdefault(piece.short if short else piece.note, []).append(piece.exercise)
    return "; ".join(f"{', '.join(dict.fromkeys(names))}: {note}" for note, names in by_note.items())


def _points(points: float) -> str:
    return f"{points:.1f}".removesuffix(".0")


def _safe(value: object) -> object:
    """A text on one line, without what moves a terminal; one that a spreadsheet would take for a formula is marked as text."""
    if not isinstance(value, str):
        return value
    text = clean_line(value)
    return f"'{text}" if text.startswith(tuple("=+-@＝＋－＠")) else text
