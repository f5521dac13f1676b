"""The learner's own files on the screen: parts as `try` or a run judged them, and the files that `reset` restored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpucourse.model.verdict import PartResult, choose_needed
from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.tables import Block, Cell, Code, Content, Facts, Paragraph, Style, View, facts
from gpucourse.ui.text import shorten_path
from gpucourse.units import format_seconds

if TYPE_CHECKING:
    from gpucourse.learning.copies import Reset
    from gpucourse.learning.try_ import TriedPart
    from gpucourse.model.manifest import Exercise

WORDS: dict[str, tuple[str, Style]] = {
    "open": ("open", "accent"),
    "passed": ("right", "good"),
    "failed": ("wrong", "bad"),
    "error": ("not judged", "warn"),
}
LINES_SHOWN, MAX_LINE_LENGTH = 20, 200
SLOW_S = 3.0


def show_tried(exercise: Exercise, tried_parts: Sequence[TriedPart], next_step: str = "", *, watched: bool = False) -> View:
    """Show for each part its verdict, the reason, the file, the part's output, and what to do next.

    `next_step` is the command that `gpucourse next` suggests, if every part is right. With `watched`, saved files are judged
    without a command.
    """
    longest_wait_s = max((item.waited_s for item in tried_parts if item.part.torch), default=0.0)
    footer = f"This took {format_seconds(longest_wait_s)}. gpucourse watch {exercise.id} keeps torch ready between saves."
    return View(
        title=f"{exercise.id}  {exercise.title}",
        blocks=[block for item in tried_parts for block in _try_part(exercise, item, watched)],
        footer=[footer] if longest_wait_s > SLOW_S and not watched else [],
        next=next_step,
    )


def _try_part(exercise: Exercise, item: TriedPart, watched: bool) -> list[Block]:
    result = item.result
    word, style = WORDS[result.verdict]
    mark = UNICODE.dot if result.verdict == "open" else UNICODE.mark(result.verdict)
    way = f" ({result.way})" if result.way and result.verdict == "failed" else ""
    return [
        Paragraph(f"{mark} {result.title}: {word}{way}", style),
        Paragraph(result.says if result.verdict != "passed" else ""),
        facts([("case", result.case), ("file", str(item.file)), *(("note", note) for note in result.notes)]),
        Code(_shorten(result.output) if result.output.strip() and result.verdict != "open" else "", title="What it printed"),
        Paragraph(_next_step(exercise, item, watched), "strong"),
    ]


def _next_step(exercise: Exercise, item: TriedPart, watched: bool) -> str:
    verdict, checks = item.result.verdict, item.part.checks
    if verdict == "open" and not item.part.judge:
        return f"Write it in {item.file.name}; then a run checks it: gpucourse run {exercise.id}"
    if checks and verdict == "passed":
        return f"Now a run checks it: gpucourse run {exercise.id}"
    if verdict == "passed":
        return "Handed in."
    change = f"Write it in {item.file.name}" if verdict == "open" else f"Change {item.file.name}"
    return f"{change} and save it." if watched else f"{change}, save, then type: gpucourse try {exercise.id}"


def _shorten(output: str) -> str:
    """Return the first lines, with long ones cut, and how many more there are."""
    lines = output.rstrip("\n").split("\n")
    first_lines = [line if len(line) <= MAX_LINE_LENGTH else f"{line[:MAX_LINE_LENGTH]} ..." for line in lines[:LINES_SHOWN]]
    remainder = [f"... and {len(lines) - LINES_SHOWN} more lines"] if len(lines) > LINES_SHOWN else []
    return "\n".join([*first_lines, *remainder])


def list_run_parts(exercise: Exercise, results: Sequence[PartResult], files: Mapping[str, Path]) -> list[Block]:
    """Return the parts to show below a run's result. If a part is not right yet, the last line says what to do. `files` maps
    each part's id to the learner's file."""
    rows: list[tuple[str, Content]] = []
    for result in results:
        word, style = WORDS[result.verdict]
        rows += [
            (result.title, Cell(f"{word}{f': {result.says}' if result.verdict in {'failed', 'error'} else ''}", style)),
            ("case", result.case),
            ("file", shorten_path(files[result.id]) if result.id in files else ""),
        ]
    waiting = next((result for result in results if result.verdict in {"open", "failed"}), None)
    return [facts(rows, title="Your part"), Paragraph(_order(exercise, waiting) if waiting else "", "accent")]


def _order(exercise: Exercise, result: PartResult) -> str:
    """Return what to write, in which file, and the command that judges it."""
    part = next(part for part in exercise.yours if part.id == result.id)
    command = f"gpucourse {'try' if part.judge else 'run'} {exercise.id}"
    if result.verdict == "failed":
        return f"Your part: correct {part.file}, then type: {command}"
    return f"Your part, in {part.file}: {part.write} Then type: {command}"


def list_parts(exercise: Exercise, results: Sequence[PartResult], files: Mapping[str, Path]) -> list[Block]:
    """Return the parts for the description of an exercise, each with its title, state, file, and what to write."""
    parts: list[Block] = []
    places = {part.id: part.instead_of or part.id for part in exercise.yours}
    begun_places = {places[result.id] for result in choose_needed(exercise.yours, results) if result.verdict != "open"}
    for part, result in zip(exercise.yours, results, strict=True):
        word, style = WORDS[result.verdict]
        if result.verdict == "open" and places[part.id] in begun_places:
            word, style = "not needed", "dim"
        rows: list[tuple[str, Content]] = [("write", part.write), ("file", str(files[part.id])), ("so far", Cell(word, style))]
        parts.append(Facts(rows, title=f"Your part{' (alternative)' if part.instead_of else ''}: {part.title}"))
    return parts


def reset(result: Reset) -> View:
    """Show every file that was restored, and the path of the learner's own version."""
    number = result.exercise.id
    if not result.files:
        return View(
            title=f"{number}  reset", blocks=[Paragraph("Every file is already the course's own; nothing was changed.")]
        )
    pairs = []
    for name, place in result.files.items():
        pairs += [("put back", name), ("yours is now", str(place) if place else "there was none")]
    return View(
        title=f"{number}  reset",
        blocks=[facts(pairs)],
        footer=["Runs, answers and points are kept.", f"Run it: gpucourse run {number}"],
    )
