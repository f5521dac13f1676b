"""The course on the screen: the syllabus, a lesson, an exercise, a hint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from gpucourse.errors import ManifestError
from gpucourse.model.answer import AnswerResult
from gpucourse.model.node import is_simulated
from gpucourse.model.score import Grade, Signs
from gpucourse.model.verdict import ExerciseVerdict
from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.tables import (
    Block,
    Cell,
    Code,
    Column,
    Content,
    Facts,
    Items,
    Markdown,
    Paragraph,
    Table,
    View,
    facts,
    right,
    strong,
    table,
    wrapped,
)
from gpucourse.ui.text import format_count, format_points
from gpucourse.ui.views.words import list_choices, name_evidence, verdict_cell
from gpucourse.units import format_seconds

if TYPE_CHECKING:  # these classes need pydantic, which commands that only read records do not load
    from gpucourse.learning.next_ import NextStep
    from gpucourse.model.check import Check
    from gpucourse.model.launching import Parameter
    from gpucourse.model.manifest import Exercise, Module
    from gpucourse.model.questions import Question

ANSWERED = {"passed": UNICODE.good, "failed": UNICODE.bad, "error": UNICODE.error, "kept": UNICODE.bullet}
Progress = Mapping[str, ExerciseVerdict]

_BAR = 20  # columns of the bar that shows the progress of a module


def catalog(
    modules: Sequence[Module], progress: Progress, errors: Sequence[ManifestError] = (), grade: Grade | None = None
) -> View:
    """Show the syllabus: every exercise with its time and the learner's progress, and every module with its points."""
    parts = grade.parts if grade else ()
    points = {part.module: f", {format_points(part.earned)} of {format_points(part.points)} points" for part in parts}
    blocks: list[Block] = [
        _exercises(
            entry,
            progress,
            title=f"{entry.id}  {entry.title}  ({_hours(entry.hours)}{points.get(entry.id, '')})",
            signs=grade.signs if grade else {},
        )
        for entry in modules
    ]
    complaints = [text for error in errors for text in error.complaints]
    blocks.append(Items(complaints, title="Modules that cannot be read", style="bad"))
    ids = [exercise.id for module in modules for exercise in module.exercises]
    pass_count = sum(name in progress and progress[name].verdict == "passed" for name in ids)
    done_text = f", {sum(grade.signs[name].is_done for name in ids if name in grade.signs)} done" if grade else ""
    total = ""
    if grade and grade.points:
        total = f" {format_points(grade.earned)} of {format_points(grade.points)} points: gpucourse grade."
    footer = [f"{pass_count} of {len(ids)} exercises passed{done_text}.{total}"] if ids else []
    return View(title="The course", blocks=blocks, footer=footer, next="gpucourse next" if ids else "")


def module(module: Module, lessons: Sequence[str], progress: Progress) -> View:
    """Show a module: its subject, its exercises, and the first part of its lesson."""
    about = facts(
        [
            ("time", _hours(module.hours)),
            ("lab", _lab(module)),
            ("first", ", ".join(f"module {module_id}" for module_id in module.needs)),
        ]
    )
    return View(
        title=f"Module {module.id}: {module.title}",
        blocks=[Paragraph(module.summary), about, _exercises(module, progress), Markdown(lessons[0])],
        footer=[
            *_next_part(module, 1, len(lessons)),
            f"Deploy the lab: gpucourse deploy {module.id}",
            f"The first exercise: gpucourse show {module.exercises[0].id}",
        ],
    )


def lesson_part(module: Module, lessons: Sequence[str], number: int) -> View:
    """Show a later part of a module's lesson; `number` counts from 1."""
    return View(
        title=f"Module {module.id}: {module.title}, part {number} of {len(lessons)}",
        blocks=[Markdown(lessons[number - 1])],
        footer=_next_part(module, number, len(lessons)),
    )


def _lab(module: Module) -> str:
    """Return how many nodes the lab has and how many it may have. A Slurm cluster has a head as well."""
    lab = module.lab.local
    head = ", and a head" if module.lab.scheduler == "slurm" else ""
    return f"{format_count(lab.nodes, 'node')}, up to {lab.max_nodes}{head}"


def _next_part(module: Module, number: int, total: int) -> list[str]:
    """Return where the lesson continues after part `number`, or an empty list after the last part."""
    if number == total:
        return []
    return [f"The lesson continues with part {number + 1} of {total}: gpucourse show {module.id} --part {number + 1}"]


def exercise(
    module: Module,
    exercise: Exercise,
    verdict: ExerciseVerdict | None = None,
    *,
    answers: Sequence[AnswerResult] = (),
    open_parts: Sequence[str] = (),
    part_blocks: Sequence[Block] = (),
    signs: Signs | None = None,
) -> View:
    """Show an exercise: the goal, what to do, what can be changed, the questions and checks, how to start it, and what is still
    open.

    `answers` has the learner's answer to each question; `part_blocks` describes the parts that the learner writes.
    """
    handed_in = [(deliverable.title, deliverable.source) for deliverable in exercise.deliverables]
    blocks: list[Block] = [
        Paragraph(exercise.goal),
        facts(
            [
                ("time", f"{exercise.minutes} min"),
                ("script", exercise.script),
                ("starts on", _where(exercise)),
                ("timeout", format_seconds(exercise.launch.timeout)),
                ("so far", _verdict_cell(verdict)),
                ("signs", _sign_line(signs) if signs else ""),
            ]
        ),
        Items(exercise.tasks, title="What to do", numbered=True),
        *part_blocks,
        _parameters(exercise.parameters),
        _questions(exercise.questions, {answer.id: answer for answer in answers}),
        _checks(exercise.checks),
        Facts(handed_in, title="What to hand in"),
        Items(open_parts, title="Still open"),
        Code(_commands(module, exercise), title="How to run it"),
    ]
    hints = f"Stuck? gpucourse hint {exercise.id} ({len(exercise.hints)} hints, one at a time)"
    return View(title=f"{exercise.id}  {exercise.title}", blocks=blocks, footer=[hints])


def hint(exercise: Exercise, number: int) -> View:
    """Show the hint with that number, counted from 1."""
    last = number >= len(exercise.hints)
    footer_text = "That was the last one." if last else f"The next one: gpucourse hint {exercise.id}"
    title = f"{exercise.id}  hint {number} of {len(exercise.hints)}"
    return View(title=title, blocks=[Paragraph(exercise.hints[number - 1])], footer=[footer_text])


def next_step(step: NextStep) -> View:
    """Show where the learner is, and the one thing to do."""
    if step.exercise is None or step.signs is None:
        return View(title="The course is done", blocks=[Paragraph(step.what), Code(step.command)])
    progress = Paragraph(_sign_line(step.signs), "dim")
    task = Paragraph(f"{step.what[:1].upper()}{step.what[1:]}")
    return View(title=f"{step.exercise.id}  {step.exercise.title}", blocks=[progress, task, Code(step.command)])


def place(module: Module, exercise: Exercise, signs: Mapping[str, Signs], keys: Mapping[str, str]) -> View:
    """Show the progress of a module as a bar, the progress of the exercise, and the keys that can be pressed."""
    done_count, count = sum(item.is_done for item in signs.values()), len(module.exercises)
    full = _BAR * done_count // count
    bar = f"{UNICODE.bar_done * full}{UNICODE.bar_left * (_BAR - full)}"
    return View(
        blocks=[
            Paragraph(f"{module.id} {module.title}  {bar}  {done_count} of {count} done", "strong"),
            Paragraph(f"{exercise.id} {exercise.title}  {_sign_line(signs[exercise.id])}"),
            Paragraph("  ".join(f"{key} {word}" for key, word in keys.items()), "accent"),
        ]
    )


def _sign(value: bool | None) -> Cell:
    """Return the sign for a column: done or open, or an empty cell if the exercise does not have this sign."""
    if value is None:
        return Cell("", "dim")
    return Cell(UNICODE.good, "good") if value else Cell(UNICODE.absent, "dim")


def _sign_line(signs: Signs) -> str:
    """Return the signs of an exercise, each with its word, on one line."""
    values = (("ran", signs.ran), ("yours", signs.yours), ("answered", signs.answered))
    return "  ".join(f"{_sign(value).text} {word}" for word, value in values if value is not None)


def _exercises(module: Module, progress: Progress, title: str = "", signs: Mapping[str, Signs] = MappingProxyType({})) -> Table:
    """Return a table of every exercise with its time and progress. `signs` says for each exercise whether it has run, its part
    is written, and its questions are answered."""
    columns: list[Column | str] = [strong(""), wrapped("exercise"), right("min")]
    columns += ["ran", "yours", "answered"] if signs else ["progress"]
    rows = [
        (
            exercise.id,
            exercise.title,
            str(exercise.minutes),
            _verdict_cell(progress.get(exercise.id)),
            *((_sign(signs[exercise.id].yours), _sign(signs[exercise.id].answered)) if signs else ()),
        )
        for exercise in module.exercises
    ]
    return table(columns, rows, title=title)


def _verdict_cell(verdict: ExerciseVerdict | None) -> Cell:
    if verdict is None:
        return Cell("not yet", "dim")
    return verdict_cell(verdict.verdict, " (simulated)" if is_simulated(verdict.mode) else "")


def _hours(hours: float) -> str:
    return f"{hours:g} h"


def _where(exercise: Exercise) -> str:
    launch = exercise.launch
    nodes_text = format_count(launch.nodes, "node")
    several = f"{launch.procs_per_node} processes per node"
    processes = {"gpu": "one process per GPU", 1: "one process per node"}.get(launch.procs_per_node, several)
    if launch.traits.one_process:
        processes = "one process per node"
    span = "" if launch.min_nodes == launch.max_nodes else f" ({launch.min_nodes} to {launch.max_nodes})"
    return f"{nodes_text}{span}, {processes}, by {launch.kind}"


def _parameters(parameters: Sequence[Parameter]) -> Table:
    columns = [strong("parameter"), right("default"), right("simulated"), wrapped("allowed"), wrapped("what it is")]
    rows = [
        (
            parameter.name,
            _value(parameter.default),
            "" if parameter.local is None else _value(parameter.local),
            _describe_allowed(parameter),
            parameter.help,
        )
        for parameter in parameters
    ]
    return table(columns, rows, title="What can be changed (--set parameter=value)")


def _describe_allowed(parameter: Parameter) -> str:
    if parameter.choices:
        return ("each of " if parameter.each else "") + " | ".join(map(_value, parameter.choices))
    low, high = (None if limit is None else f"{limit:,.10g}" for limit in (parameter.min, parameter.max))
    range_text = f"{low} to {high}" if low and high else f"from {low}" if low else f"up to {high}" if high else ""
    return " ".join(word for word in ("each" if parameter.each else "", parameter.of, range_text) if word)


def _value(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value).lower() if isinstance(value, bool) else str(value)
    return f"{value:.10g}"


def _questions(questions: Sequence[Question], answers: Mapping[str, AnswerResult]) -> Facts:
    pairs: list[tuple[str, Content]] = []
    for question in questions:
        answer = answers.get(question.id)
        mark = ANSWERED.get(answer.verdict if answer else "open", " ")
        unit = f" ({question.unit})" if question.unit else ""
        text = "\n".join([question.text + unit, *list_choices(question.choices)])
        pairs.append((f"{mark} {question.id}", text))
    return Facts(pairs, title="Questions")


def _checks(checks: Sequence[Check]) -> Table:
    rows = [(check.title, _promise(check), name_evidence(check.evidence)) for check in checks]
    return table([wrapped("check"), wrapped("must be"), "counts on"], rows, title="What is checked")


def _promise(check: Check) -> str:
    kind, operand = check.comparison
    margin = f" ± {check.tolerance:g}" if check.tolerance else ""
    return f"{kind.words} {_value(operand)}{margin} {check.unit}".strip()


def _commands(module: Module, exercise: Exercise) -> str:
    first = exercise.parameters[0] if exercise.parameters else None
    launch = exercise.launch
    nodes = "" if launch.min_nodes == launch.max_nodes else f" --nodes {launch.nodes}"
    lines = [f"gpucourse deploy {module.id}", f"gpucourse run {exercise.id}{nodes}"]
    if first is not None:
        lines.append(f"gpucourse run {exercise.id} --set {first.name}={_value(first.default)}")
    return "\n".join(lines)
