"""Points on the screen, and as a table for a spreadsheet."""

from __future__ import annotations

import csv
import io
import shlex
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from gpucourse.model.rubric import EXERCISE_POINTS, MAX_UNEDITED_SHARE
from gpucourse.model.score import NO_RUN, Grade, ModuleScore, PartScore, RowScore, Signs, list_missing
from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.tables import (
    Block,
    Cell,
    Code,
    Column,
    Content,
    Items,
    Paragraph,
    Style,
    View,
    facts,
    number_column,
    table,
    text_column,
)
from gpucourse.ui.text import clean, clean_line, format_count
from gpucourse.units import format_points, format_share

if TYPE_CHECKING:
    from gpucourse.grading.edits import FileEdit
    from gpucourse.grading.repeats import RepeatedFigure
    from gpucourse.learning.bundle import Card
    from gpucourse.learning.grade import Pending
    from gpucourse.learning.review.edits import GradedBundle
    from gpucourse.learning.review.rerun import Rerun

LEVELS = {"gpu": "gpu", "logic": "logic (no GPU)", "none": UNICODE.absent}
_RERUN_COUNTS = {"agrees": "agree", "differs": "differ", "skipped": "not run again"}
_RERUN_WORDS: dict[str, tuple[str, Style]] = {
    "agrees": ("agrees", "good"),
    "differs": ("differs", "bad"),
    "skipped": ("not run again", "dim"),
}
_MAX_NOTES = 8
COUNTS = {"course": "", "bonus": ", bonus"}
WHOLE_COURSE = "whole course"
FIELDS = (
    "who", "made", "module", "row", "title", "counts", "points", "earned", "waiting", "evidence", "missing", "edited_lines",
    "learner_judged",
)  # fmt: skip

OF_A_RUN = ("checks", "deliverables")
"""The kinds of evidence that only a run provides. Without a run, each piece of these kinds has the note NO_RUN."""


def grade(result: Grade, *, author: str = "", bundle: str = "", subject: str = "", verbose: bool = False) -> View:
    """Show the rows of the rubric with their points, the evidence for them, and what is missing, then the whole course. A
    module that the rubric does not contain has one row for each exercise.

    Modules that are not begun share one line, unless `verbose` is set. `bundle` is the file of the bundle, if a reviewer opened
    one. `subject` is the exercise or module that was typed. All rows of a subject are shown, and everything that is missing in
    an exercise is named once, below the rows.
    """
    in_rubric = {part.module for part in result.parts}
    other_modules = [module for module in result.whole_course.modules if module.module not in in_rubric]
    scores: list[ModuleScore] = [*result.parts, *other_modules]
    listed_parts = [part for part in scores if subject or verbose or not _is_here(part) or _is_begun(part, result)]
    is_exercise = bool(subject) and len(result.signs) == 1
    blocks: list[Block] = [_part(part, shows_missing=not is_exercise) for part in listed_parts]
    if is_exercise:
        blocks.append(_name_missing(listed_parts))
    waiting = sorted((part.module for part in scores if part not in listed_parts), key=lambda module: module.rjust(9))
    command = f"gpucourse grade{f' --open {bundle}' if bundle else ''} --verbose"
    blocks += [
        Paragraph(f"Not begun: {_name_modules(waiting)} rows: {command}" if waiting else "", "dim"),
        *([] if is_exercise else [_tabulate_course(result, subject)]),
    ]
    if result.quiz is not None:
        quiz = result.quiz
        blocks.append(facts([("quiz", f"{quiz.right} of {quiz.of}, the best of {format_count(quiz.tries, 'attempt')}")]))
    changed_files = [f"{name}: {', '.join(files[:6])}" for name, files in result.changed.items()]
    blocks += [
        Paragraph(_say_total(result, subject), "strong"),
        Paragraph(_signs(list(result.signs.values())) if result.signs else ""),
        Items(changed_files, title="Changed after the run, so worth no points", style="bad"),
    ]
    footer = [
        "Points come from evidence: what a run recorded, what you handed in and what you answered. A run of the course's own "
        f"files earns at most {MAX_UNEDITED_SHARE * 100:.0f} % of an exercise; what you write and answer earns the rest."
    ]
    pieces = [piece for part in result.parts for row in part.rows for piece in row.pieces]
    if not bundle and (texts := list(dict.fromkeys(piece.exercise for piece in pieces if piece.unreviewed))):
        commands = f"gpucourse answer {texts[0]} --review" + (f", then {', '.join(texts[1:])}" if texts[1:] else "")
        footer.insert(0, f"Your own review of free text counts half until an instructor reviews it: {commands}")
    if waiting_points := _name_pending(result):
        judge = f"by you: gpucourse grade --open {bundle} --review"
        hand_in = "by an instructor: gpucourse grade --bundle work.zip"
        footer.insert(0, f"{waiting_points} wait for a review {judge if bundle else hand_in}")
    title = f"Points of {author or subject}" if author or subject else "Points"
    return View(title=title, blocks=blocks, footer=footer)


def bundle_grade(graded_bundle: GradedBundle, *, is_own: bool = False, verbose: bool = False) -> View:
    """Show a bundle: who handed it in and when, whether it was changed, and its points as counted on this machine.

    `is_own`: whether it was made in this workspace, so that somebody else has to review it.
    """
    bundle, result, card = graded_bundle.bundle, graded_bundle.grade, graded_bundle.bundle.card
    view = grade(result, author=card.by, bundle="" if is_own else shlex.quote(str(bundle.path)), verbose=verbose)
    points = f"{format_points(card.grade.earned)} in the bundle, {format_points(result.earned)} as counted here"
    card_points, counted_points = (format_points(item.whole_course.earned) for item in (card.grade, result))
    about = facts(
        [
            ("made", f"{card.made} with gpucourse {card.gpucourse}"),
            ("workspace", card.workspace),
            ("files", format_count(len(card.files), "file")),
            ("left out", ", ".join(card.left_out)),
            ("edited", _say_edited(graded_bundle)),
            ("not judged here", _say_learner_judged(graded_bundle)),
            ("points", points),
            (WHOLE_COURSE, f"{card_points} in the bundle, {counted_points} as counted here"),
        ]
    )
    seal: Block = Paragraph(f"{UNICODE.good} no file has changed since the bundle was made", "good")
    if bundle.changed:
        seal = Items(bundle.changed[:12], title="Changed since the bundle was made", style="bad")
    return view._replace(blocks=[about, seal, *view.blocks])


def class_table(bundles: Sequence[GradedBundle], broken_count: int = 0) -> View:
    """Show a row for every bundle of a class, sorted by name, with the points, the points that wait for a review, the progress,
    and the edits."""
    rows: list[Sequence[Content]] = []
    ordered = sorted(bundles, key=lambda item: (item.bundle.card.by.casefold(), str(item.bundle.path)))
    for item in ordered:
        result = item.grade
        files = len(item.bundle.changed) or sum(map(len, result.changed.values()))
        done_count = sum(signs.is_done for signs in result.signs.values())
        bonus = f" + {format_points(result.bonus)}" if result.bonus else ""
        rows.append(
            (
                clean_line(item.bundle.card.by),
                f"{format_points(result.earned)}{bonus}",
                format_share(result.whole_course.earned, result.whole_course.points),
                Cell(format_points(result.whole_course.waiting), "" if result.whole_course.waiting else "dim"),
                f"{done_count} of {len(result.signs)}",
                Cell(str(item.edited_lines), "" if item.edits else "dim"),
                Cell(str(trusted := sum(map(len, result.learner_judged.values()))), "" if trusted else "dim"),
                Cell(format_count(files, "file"), "bad") if files else Cell(UNICODE.absent, "dim"),
                clean_line(item.bundle.path.name),
            )
        )
    numbers = map(number_column, ("points", "whole course", "to review", "done", "lines edited", "parts not judged here"))
    columns: list[Column | str] = [text_column("who"), *numbers, "changed", text_column("bundle")]
    earned = sorted(item.grade.earned for item in bundles)
    middle = (
        f"median {format_points(statistics.median(earned))} of {format_points(bundles[0].grade.points)} points"
        if bundles
        else ""
    )
    count = format_count(len(bundles), "bundle") + (f", and {broken_count} that cannot be opened" if broken_count else "")
    waiting = next((item.bundle for item in ordered if item.grade.whole_course.waiting), None)
    return View(
        title="Class",
        blocks=[table(columns, rows), Paragraph(", ".join(filter(None, (count, middle))), "strong")],
        next=f"gpucourse grade --open {shlex.quote(str(waiting.path))} --review" if waiting else "",
    )


def edits(bundle: GradedBundle, exercise: str) -> View:
    """Show what a learner changed in the files of one exercise, as a diff against the course's files."""
    blocks: list[Block] = []
    for edit in bundle.edits.get(exercise, ()):
        counts = "" if edit.added is None else f": {edit.added} added, {edit.removed} removed"
        blocks += [
            Paragraph(f"{edit.file}{counts}{', which the learner writes' if edit.part else ''}", "strong"),
            Code("\n".join(map(clean, edit.lines))),
            Paragraph(edit.note, "dim"),
        ]
    none = Paragraph("No file was edited for the run that counts, or no run counts yet. No part was handed in.")
    return View(title=f"{exercise}, edited by {clean_line(bundle.bundle.card.by)}", blocks=blocks or [none])


def reruns(card: Card, results: Sequence[Rerun], *, original: bool) -> View:
    """Show the runs of a bundle that were repeated: one exercise per line, then the values that differ."""
    rows: list[Sequence[Content]] = []
    notes: list[Cell] = []
    for item in results:
        compared = [figure for figure in item.figures if figure.verdict != "time"]
        same = sum(figure.verdict == "agrees" for figure in compared)
        word, style = _RERUN_WORDS[item.verdict]
        count = f"{same} of {len(compared)}" if compared else UNICODE.absent
        rows.append((item.exercise, Cell(word, style), count, clean_line(item.why) or UNICODE.absent))
        different = [figure for figure in compared if figure.verdict == "differs"]
        times = [figure for figure in item.figures if figure.verdict == "time" and figure.note]
        notes += [Cell(clean_line(f"{item.exercise} {_read_figure(figure)}"), "bad") for figure in different]
        notes += [Cell(clean_line(f"{item.exercise} {_read_figure(figure)}; a time, not counted"), "dim") for figure in times]
    if len(notes) > _MAX_NOTES:
        notes[_MAX_NOTES:] = [Cell(f"and {len(notes) - _MAX_NOTES} more; --json lists all", "dim")]
    by = "the course's own scripts" if original else "the scripts in the bundle"
    words = [f"{name}: {sum(item.verdict == verdict for item in results)}" for verdict, name in _RERUN_COUNTS.items()]
    return View(
        title=f"Runs of {clean_line(card.by)}, repeated with {by}",
        blocks=[
            table(["exercise", "result", number_column("values"), text_column("why")], rows),
            Items(notes, title="Values that differ"),
        ],
        headline=Cell(", ".join(words)),
    )


def _read_figure(figure: RepeatedFigure) -> str:
    note = f" ({figure.note})" if figure.note else ""
    return f"{figure.value}: {figure.bundle}, again {figure.again}{note}"


def new_bundle(card: Card, path: str) -> View:
    """Show a bundle that was just made."""
    about = facts(
        [
            ("bundle", path),
            ("by", card.by),
            ("files", format_count(len(card.files), "file")),
            ("left out", ", ".join(card.left_out)),
            ("points", _say_total(card.grade)),
        ]
    )
    return View(blocks=[about], footer=[f"An instructor opens it with: gpucourse grade --open {path}"])


def pending_answer(waiting: Pending, number: int, total: int) -> View:
    """Show one free text, or one part, to the person who judges it."""
    code = Code("\n".join(map(clean, waiting.answer.splitlines()))) if waiting.is_code else None
    return View(
        title=f"{number} of {total}  {waiting.exercise} {waiting.id}",
        blocks=[
            Paragraph(waiting.text, "strong"),
            code or Paragraph(waiting.answer),
            facts([("look for", waiting.look_for)]),
        ],
    )


Edits = Mapping[str, Sequence["FileEdit"]]
"""The edited files of each exercise, by the exercise's number."""


def format_csv(grades: Iterable[tuple[str, str, Grade, Edits]]) -> str:
    """Return CSV with one line for each row of the rubric, each exercise of the whole course, and each total, for every name
    and date.

    `edited_lines` counts the changed lines of the course's own scripts in the exercises of the row. `learner_judged` names the
    parts that count only because the learner's computer judged them.
    """
    page = io.StringIO()
    lines = csv.writer(page, lineterminator="\n")
    lines.writerow(FIELDS)
    for author, date, result, edits in grades:
        changed_lines = {name: sum(edit.changed_lines for edit in files if not edit.part) for name, files in edits.items()}
        for part in (*result.parts, *result.whole_course.modules):
            for row in part.rows:
                cells = [
                    part.module,
                    row.id,
                    row.title,
                    part.counts if isinstance(part, PartScore) else WHOLE_COURSE,
                    row.points,
                    row.earned,
                    row.waiting,
                    row.level,
                    list_missing(row.pieces, names=True),
                    sum(changed_lines.get(name, 0) for name in {piece.exercise for piece in row.pieces}),
                    _name_learner_judged(result, {piece.exercise for piece in row.pieces if piece.kind == "yours"}),
                ]
                lines.writerow([_make_safe(cell) for cell in (author, date, *cells)])
        name = (_make_safe(author), _make_safe(date))
        if result.quiz:
            lines.writerow([*name, "", "quiz", "The quiz", "quiz", result.quiz.of, result.quiz.right, 0, *[""] * 4])
        learner_judged = _name_learner_judged(result, result.learner_judged)
        total = (result.points, result.earned, result.waiting, "", "", sum(changed_lines.values()), learner_judged)
        lines.writerow([*name, "", "total", "All points", "course", *total])
        lines.writerow([*name, "", "bonus", "The bonus", "bonus", result.bonus_points, result.bonus, 0, *[""] * 4])
        whole = result.whole_course
        cells = [WHOLE_COURSE, f"All exercises, {whole.percent:g} %", WHOLE_COURSE, whole.points, whole.earned, whole.waiting]
        lines.writerow([*name, "", *cells, *[""] * 4])
    return page.getvalue()


def _say_total(result: Grade, subject: str = "") -> str:
    """Return the totals: `17.5 of 25 points and 0 of 10 as a bonus; whole course: 312 of 480 · 65 %`. For one exercise or
    module, the text says `toward the whole course` instead."""
    totals = [f"{format_points(result.earned)} of {format_points(result.points)} points"] if result.points else []
    if result.bonus_points:
        word = "" if totals else " points"
        totals.append(f"{format_points(result.bonus)} of {format_points(result.bonus_points)}{word} as a bonus")
    word = f"toward the {WHOLE_COURSE}" if subject else WHOLE_COURSE
    share = format_share(result.whole_course.earned, result.whole_course.points)
    return "; ".join(filter(None, (" and ".join(totals), f"{word}: {share}")))


def _tabulate_course(result: Grade, subject: str) -> Block:
    """Return the modules of the whole course, or the module of the subject, with the points of each exercise that earned
    any."""
    rows = []
    for module in result.whole_course.modules:
        exercises = ", ".join(f"{row.id}: {format_points(row.earned)}" for row in module.rows if row.earned)
        share = f"{100 * module.earned / module.points:.0f} %" if module.points else ""
        points = f"{format_points(module.earned)} of {format_points(module.points)}"
        rows.append((f"{module.module}  {module.title}", points, share, exercises or Cell(UNICODE.absent, "dim")))
    name = f"Toward the {WHOLE_COURSE}" if subject else "The whole course"
    title = f"{name}: {format_points(EXERCISE_POINTS)} points for each exercise"
    return table(
        [text_column("module"), number_column("points"), number_column("share"), text_column("exercises")], rows, title=title
    )


def _signs(signs: Sequence[Signs]) -> str:
    """Return how many exercises are done, and how many have each sign."""
    parts_text = f"yours {sum(bool(item.yours) for item in signs)}"
    words = [f"ran {sum(item.ran for item in signs)}", parts_text, f"answered {sum(bool(item.answered) for item in signs)}"]
    return f"{sum(item.is_done for item in signs)} of {format_count(len(signs), 'exercise')} done: {', '.join(words)}"


def _is_here(part: ModuleScore) -> bool:
    """Return whether the course contains the module of this part."""
    return part.here if isinstance(part, PartScore) else True


def _part(part: ModuleScore, *, shows_missing: bool) -> Block:
    counts = COUNTS[part.counts] if isinstance(part, PartScore) else ""
    title = f"{part.module}  {part.title}: {format_points(part.earned)} of {format_points(part.points)}{counts}"
    if not _is_here(part):
        return Paragraph(f"{title} (not in this course)", "dim")
    without_run = {piece.exercise for row in part.rows for piece in row.pieces if piece.note == NO_RUN}
    columns: list[Column | str] = [text_column("for"), number_column("points", wrap=True), "evidence"]
    if not shows_missing:
        return table(columns, [_row(part, row) for row in part.rows], title=title)
    rows = [(*_row(part, row), _say_missing_briefly(row, without_run)) for row in part.rows]
    return table([*columns, text_column("what is missing")], rows, title=title)


def _name_missing(parts: Sequence[ModuleScore]) -> Block:
    """Return everything that is missing in one exercise. Each item appears once, below the kinds of evidence that need it."""
    kinds: dict[str, dict[str, None]] = {}
    for piece in (piece for part in parts for row in part.rows for piece in row.pieces if piece.note):
        kinds.setdefault(piece.note, {})[piece.kind] = None
    return facts([(", ".join(names), note) for note, names in kinds.items()], title="What is missing")


def _is_begun(part: ModuleScore, result: Grade) -> bool:
    """Return whether there is anything to show for a module: a run (even if it cannot count), a part, an answer, or changed
    files."""
    pieces = [piece for row in part.rows for piece in row.pieces]
    signs = [result.signs[name] for name in {piece.exercise for piece in pieces} & set(result.signs)]
    return (
        any(row.earned or row.waiting or row.level != "none" for row in part.rows)
        or any(piece.got or piece.exercise in result.changed for piece in pieces)
        or any(piece.kind in OF_A_RUN and piece.note != NO_RUN for piece in pieces)
        or any(sign.ran or sign.yours or sign.answered for sign in signs)
    )


def _name_modules(modules: Sequence[str]) -> str:
    """Return the end of a sentence that names the modules, and the first word of the next sentence: `module 3. Its`, or
    `modules 1, 2 and B. Their`."""
    *first, last = modules
    return f"modules {', '.join(first)} and {last}. Their" if first else f"module {last}. Its"


def _count_pending(row: RowScore) -> float:
    """Return the points that wait for a review, rounded so that they and the rounded earned points add up to the rounded
    sum."""
    return round(row.earned + row.waiting, 1) - round(row.earned, 1)


def _name_pending(result: Grade) -> str:
    """Return the points that wait for a review, of the rubric and of the whole course; an empty string if there are none."""
    rubric, whole = (
        sum(_count_pending(row) for part in parts for row in part.rows) for parts in (result.parts, result.whole_course.modules)
    )
    if not result.waiting or rubric <= 0:
        return f"{format_points(whole)} more points of the whole course" if whole > 0 else ""
    return f"{format_points(rubric)} more points (whole course: {format_points(whole)})"


def _row(part: ModuleScore, row: RowScore) -> tuple[Content, ...]:
    title = row.title if isinstance(part, PartScore) else f"{row.id} {row.title}"
    style: Style = "good" if row.earned >= row.points else "" if row.earned else "dim"
    pending = _count_pending(row)
    waiting = f" (+{format_points(pending)} waiting)" if pending > 0 else ""
    points = f"{format_points(row.earned)} of {format_points(row.points)}{waiting}"
    return title, Cell(points, style), Cell(LEVELS[row.level], "dim")


def _say_edited(graded_bundle: GradedBundle) -> str:
    """Return the exercises in which scripts of the course were edited, each with the number of lines, and the command that
    shows the edits. Return an empty string if there are no edits."""
    line_counts = {
        name: sum(edit.changed_lines for edit in files if not edit.part) for name, files in graded_bundle.edits.items()
    }
    entries = [f"{name} ({format_count(lines, 'line')})" for name, lines in line_counts.items() if lines]
    if not entries:
        return ""
    bundle = shlex.quote(str(graded_bundle.bundle.path))
    return f"{', '.join(entries)}; see: gpucourse grade --open {bundle} --exercise {entries[0].split()[0]}"


def _say_learner_judged(graded_bundle: GradedBundle) -> str:
    """Return the parts that only the learner's computer judged, and the command to judge them again. Return an empty string if
    there are no such parts."""
    if not (part_names := _name_learner_judged(graded_bundle.grade, graded_bundle.grade.learner_judged)):
        return ""
    command = f"gpucourse grade --rerun {shlex.quote(str(graded_bundle.bundle.path))}"
    return f"parts that only the learner's computer judged: {part_names}; judge them again: {command}"


def _name_learner_judged(result: Grade, exercises: Collection[str]) -> str:
    """Return the parts of these exercises that count only because the learner's computer judged them: `3.1 ring, 3.8 hook`."""
    parts = result.learner_judged.items()
    return ", ".join(f"{exercise} {part}" for exercise, ids in parts for part in ids if exercise in exercises)


def _say_missing_briefly(row: RowScore, without_run: Collection[str]) -> str:
    """Return what a row lacks, such as `0.1: 7 open; 0.2, 0.3: no run yet`. For an exercise without a run, only the run is
    named, because everything else needs it. Exercises that lack nothing are left out."""
    pieces = [piece for piece in row.pieces if piece.exercise not in without_run]
    names = dict.fromkeys(piece.exercise for piece in row.pieces if piece.note and piece.exercise in without_run)
    missing = list_missing(pieces)
    return "; ".join(filter(None, (missing, f"{', '.join(names)}: {NO_RUN}" if names else "")))


def _make_safe(value: object) -> object:
    """Return a text on one line, without control codes. A text that a spreadsheet would read as a formula is marked as text."""
    if not isinstance(value, str):
        return value
    text = clean_line(value)
    return f"'{text}" if text.startswith(tuple("=+-@＝＋－＠")) else text
