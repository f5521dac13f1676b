"""The learner's own files on the screen: parts as `try` or a run judged them, and the files that `reset` restored."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from rich.cells import cell_len

from gpucourse.model.verdict import PartResult, choose_needed
from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.tables import Block, Cell, Code, Content, Facts, Lines, Paragraph, Style, View, facts
from gpucourse.ui.text import pad, shorten_path
from gpucourse.units import format_seconds

if TYPE_CHECKING:
    from gpucourse.learning.copies import Reset
    from gpucourse.learning.show import ModelSolution
    from gpucourse.learning.try_ import TriedPart
    from gpucourse.model.manifest import Exercise

WORDS: dict[str, tuple[str, Style]] = {
    "open": ("open", "accent"),
    "passed": ("right", "good"),
    "failed": ("wrong", "bad"),
    "error": ("not judged", "warn"),
}
LINES_SHOWN, MAX_LINE_LENGTH = 20, 200
CONTEXT_LINES = 3
CHANGED_LATER = "it has changed since; a new run will judge it"
YOURS, MODEL = "yours", "model solution"
Opcode = tuple[str, int, int, int, int]
SLOW_S = 3.0


def show_tried(exercise: Exercise, tried_parts: Sequence[TriedPart], next_step: str = "") -> View:
    """Show for each part its verdict, the reason, the file, the part's output, and what to do.

    `next_step` is the command that `gpucourse next` suggests; it is empty in `watch`, which judges saved files without a
    command.
    """
    longest_wait_s = max((item.waited_s for item in tried_parts if item.part.torch), default=0.0)
    footer = f"This took {format_seconds(longest_wait_s)}. gpucourse watch {exercise.id} keeps torch ready between saves."
    return View(
        title=f"{exercise.id}  {exercise.title}",
        blocks=[block for item in tried_parts for block in _try_part(item)],
        footer=[footer] if longest_wait_s > SLOW_S and next_step else [],
        next=next_step,
    )


def _try_part(item: TriedPart) -> list[Block]:
    result = item.result
    word, style = WORDS[result.verdict]
    mark = UNICODE.dot if result.verdict == "open" else UNICODE.mark(result.verdict)
    title = "What Python says" if result.way == "not-python" else "What it printed"
    output = "" if result.verdict == "open" or result.output.strip() in {"", result.says.strip()} else _shorten(result.output)
    way = f" ({result.way})" if result.way and result.verdict == "failed" else ""
    return [
        Paragraph(f"{mark} {result.title}: {word}{way}", style),
        Paragraph(result.says if result.verdict != "passed" else ""),
        facts([("case", result.case), ("file", str(item.file)), *(("note", note) for note in result.notes)]),
        Code(output, title=title),
        Paragraph(_describe_change(item), "strong"),
    ]


def _describe_change(item: TriedPart) -> str:
    """Return what to do with the file of a part, or how a right part is handed in."""
    if item.result.verdict == "passed":
        return "Right on this computer; a run checks it as well." if item.part.checks else "Handed in."
    if item.result.verdict == "open":
        return f"Write it in {item.file.name} and save it{'' if item.part.judge else '; a run checks it'}."
    return f"Change {item.file.name} and save it."


def _shorten(output: str) -> str:
    """Return the first lines, with long ones cut, and how many more there are."""
    lines = output.rstrip("\n").split("\n")
    first_lines = [line if len(line) <= MAX_LINE_LENGTH else f"{line[:MAX_LINE_LENGTH]} ..." for line in lines[:LINES_SHOWN]]
    remainder = [f"... and {len(lines) - LINES_SHOWN} more lines"] if len(lines) > LINES_SHOWN else []
    return "\n".join([*first_lines, *remainder])


def list_run_parts(
    exercise: Exercise, results: Sequence[PartResult], files: Mapping[str, Path], changed_files: Collection[str] = ()
) -> list[Block]:
    """Return the parts to show below a run's result. If a part is not right yet, the last line says what to do. `files` maps
    each part's id to the learner's file; `changed_files` are those that have changed since the run."""
    rows: list[tuple[str, Content]] = []
    for result in results:
        word, style = WORDS[result.verdict]
        rows += [
            (result.title, Cell(f"{word}{f': {result.says}' if result.verdict in {'failed', 'error'} else ''}", style)),
            ("case", result.case),
            ("file", shorten_path(files[result.id]) if result.id in files else ""),
            ("note", CHANGED_LATER if result.file in changed_files else ""),
        ]
    waiting = next((item for item in results if item.verdict in {"open", "failed"} and item.file not in changed_files), None)
    return [facts(rows, title="Your part"), Paragraph(_describe_task(exercise, waiting) if waiting else "", "accent")]


def _describe_task(exercise: Exercise, result: PartResult) -> str:
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


def show_solutions(exercise: Exercise, solutions: Sequence[ModelSolution], *, width: int | None = None) -> View:
    """Show the learner's right parts beside the course's solutions: side by side if both fit on a terminal of `width` columns,
    otherwise as a diff.
    """
    blocks: list[Block] = []
    for item in solutions:
        blocks += [Paragraph(f"{item.part.title} ({item.part.file})", "strong"), _compare(item, width)]
    return View(
        title=f"{exercise.id}  {exercise.title}: your part and a model solution",
        blocks=blocks,
        footer=["Keep your own: a copy of the model solution earns no points."],
    )


def _compare(item: ModelSolution, width: int | None) -> Lines:
    """Return the lines that differ between the learner's file and the solution, with some equal lines around them."""
    first, second = (text.expandtabs().splitlines() for text in (item.submission, item.solution))
    groups = list(SequenceMatcher(None, first, second, autojunk=False).get_grouped_opcodes(CONTEXT_LINES))
    rows: list[tuple[str, str, str]] = []
    for group in groups:
        rows += [("equal", "...", "...")] if rows else []
        for kind, begin, end, other_begin, other_end in group:
            pairs = zip_longest(first[begin:end], second[other_begin:other_end], fillvalue="")
            rows += [(kind, *pair) for pair in pairs]
    column, other_column = (max((cell_len(row[index]) for row in rows), default=0) for index in (1, 2))
    column = max(column, len(YOURS))
    if not rows:
        return Lines([Cell("Yours is the same, line by line.", "good")])
    if width is None or column + other_column + 3 > width:
        return Lines([Cell(f"- {YOURS}   + {MODEL}", "dim"), *_list_diff(first, second, groups)])
    head = Cell(f"{pad(YOURS, column)} | {MODEL}", "dim")
    body = [
        Cell(f"{pad(own_line, column)} | {solution_line}", "dim" if kind == "equal" else "")
        for kind, own_line, solution_line in rows
    ]
    return Lines([head, *body])


def _list_diff(first: Sequence[str], second: Sequence[str], groups: Sequence[Sequence[Opcode]]) -> Iterator[Cell]:
    """Yield the lines of a unified diff, each in the colour of its kind."""
    for number, group in enumerate(groups):
        if number:
            yield Cell("...", "dim")
        for kind, begin, end, other_begin, other_end in group:
            if kind == "equal":
                yield from (Cell(f"  {text}", "dim") for text in first[begin:end])
                continue
            yield from (Cell(f"- {text}") for text in first[begin:end])
            yield from (Cell(f"+ {text}", "good") for text in second[other_begin:other_end])


def reset(result: Reset) -> View:
    """Show every file that was restored, and the path of the learner's own version."""
    number = result.exercise.id
    if not result.files:
        text = "Every file already equals the course's file; nothing was changed."
        return View(title=f"{number}  reset", blocks=[Paragraph(text)])
    pairs = []
    for name, place in result.files.items():
        pairs += [("put back", name), ("yours is now", str(place)) if place else ("yours", "there was none")]
    return View(
        title=f"{number}  reset",
        blocks=[facts(pairs)],
        footer=["Runs, answers and points are kept."],
    )
