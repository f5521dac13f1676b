"""The course on the screen: the syllabus, a lesson, an exercise, a hint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gpucourse.model.answer import AnswerResult
from gpucourse.model.node import is_simulated
from gpucourse.model.score import Signs
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
    name_column,
    number_column,
    table,
    text_column,
)
from gpucourse.ui.text import format_count
from gpucourse.ui.views.words import list_choices, name_evidence, name_evidence_value, verdict_cell
from gpucourse.units import format_points, format_seconds, format_share

if TYPE_CHECKING:  # these classes need pydantic, which commands that only read records do not load
    from gpucourse.learning.list_ import Syllabus
    from gpucourse.learning.next_ import NextStep, Progress
    from gpucourse.model.check import Check
    from gpucourse.model.launching import Parameter
    from gpucourse.model.manifest import Exercise, Module
    from gpucourse.model.questions import Question

ANSWERED = {"passed": UNICODE.good, "failed": UNICODE.bad, "error": UNICODE.error, "kept": UNICODE.bullet}

_BAR = 20  # columns of the bar that shows the progress of a module


def catalog(syllabus: Syllabus, *, whole: bool = False) -> View:
    """Show the syllabus: each module with its time, its points and the learner's progress, and the exercises of the current
    module or, with `whole`, of every module."""
    modules, grade = syllabus.modules, syllabus.points
    place = syllabus.step.exercise if syllabus.step else None
    scores = {module.module: module for module in grade.whole_course.modules} if grade else {}
    signs = grade.signs if grade else {}
    rows: list[Sequence[Content]] = []
    folded_count = 0
    for entry in modules:
        score = scores.get(entry.id)
        points = f"{format_points(score.earned)} of {format_points(score.points)}" if score else ""
        rows.append(_module_row(entry, signs, points))
        if whole or syllabus.step is None or place in entry.exercises:
            rows += [_exercise_row(item, syllabus.progress, signs, is_here=item == place) for item in entry.exercises]
        else:
            folded_count += len(entry.exercises)
    columns: list[Column | str] = [
        "",
        name_column(""),
        text_column(""),
        number_column("time"),
        number_column("ran"),
        number_column("yours"),
        number_column("answered"),
        number_column("points"),
    ]
    complaints = [text for error in syllabus.broken for text in error.complaints]
    ids = [exercise.id for module in modules for exercise in module.exercises]
    return View(
        title="The course",
        blocks=[table(columns, rows), Items(complaints, title="Files that cannot be read", style="bad")],
        footer=[*_explain_catalog(syllabus, ids, place), *(["Every exercise: gpucourse list --all"] if folded_count else [])],
        next=syllabus.step.command if syllabus.step else "",
    )


def _module_row(entry: Module, signs: Mapping[str, Signs], points: str) -> Sequence[Content]:
    """Return the row of a module: how many of its exercises have each sign."""
    all_signs = [signs[exercise.id] for exercise in entry.exercises if exercise.id in signs]
    counts: list[str] = []
    for values in zip(*((item.ran, item.yours, item.answered) for item in all_signs), strict=True):
        required = [value for value in values if value is not None]
        counts.append(f"{sum(required)}/{len(required)}" if required else "")
    texts = ["", entry.id, entry.title, _hours(entry.hours), *(counts or [""] * 3), points]
    return [Cell(text, "strong") for text in texts]


def _exercise_row(
    exercise: Exercise, progress: Mapping[str, ExerciseVerdict], signs: Mapping[str, Signs], *, is_here: bool
) -> Sequence[Content]:
    """Return the row of an exercise: its signs, or the verdict on its run if the signs are unknown."""
    item, verdict = signs.get(exercise.id), progress.get(exercise.id)
    run_sign = Cell(UNICODE.bad, "bad") if verdict and verdict.verdict in {"failed", "error"} else _sign(bool(verdict))
    part_sign, answer_sign = (_sign(item.yours), _sign(item.answered)) if item else ("", "")
    mark = Cell(UNICODE.arrow if is_here else "", "accent")
    return (mark, exercise.id, exercise.title, f"{exercise.minutes} min", run_sign, part_sign, answer_sign, "")


def _explain_catalog(syllabus: Syllabus, ids: Sequence[str], place: Exercise | None) -> list[str]:
    """Return what the signs of the syllabus mean, and how far the learner has come."""
    if not ids:
        return []
    grade = syllabus.points
    signs = [
        f"{UNICODE.arrow} you are here" if place else "",
        f"{UNICODE.good} yes",
        f"{UNICODE.bad} a check failed",
        f"{UNICODE.absent} not yet",
    ]
    lines = [
        f"{', '.join(filter(None, signs))}. An exercise is done if it ran, your part is right and every question is answered.",
        "The points in the table are those of the whole course.",
    ]
    if grade is None:
        return lines
    done_count = f"{sum(grade.signs[name].is_done for name in ids if name in grade.signs)} of {len(ids)} exercises done."
    points = f"{format_points(grade.earned)} of {format_points(grade.points)} points, " if grade.points else ""
    share = format_share(grade.whole_course.earned, grade.whole_course.points)
    return [*lines, f"{done_count} {points}whole course: {share}: gpucourse grade"]


def module(module: Module, lessons: Sequence[str], progress: Mapping[str, ExerciseVerdict], *, has_lab: bool = False) -> View:
    """Show a module: its subject, its exercises, and the first part of its lesson. `has_lab`: whether its lab is ready."""
    heading, body = _split_heading(lessons[0])
    about = facts(
        [
            ("time", _hours(module.hours)),
            ("lab", _lab(module)),
            ("first", ", ".join(f"module {module_id}" for module_id in module.needs)),
        ]
    )
    return View(
        title=f"Module {module.id}: {module.title}",
        blocks=[
            Paragraph(module.summary),
            about,
            _exercises(module, progress),
            Markdown(body if heading.endswith(module.title) else lessons[0]),
        ],
        footer=[
            *_next_part(module, 1, len(lessons)),
            *([] if has_lab else [f"Deploy the lab: gpucourse deploy {module.id}"]),
            f"The first exercise: gpucourse show {module.exercises[0].id}",
        ],
    )


def _split_heading(lesson: str) -> tuple[str, str]:
    """Return the heading of a lesson, and the text below it. The heading is empty if the lesson does not begin with one."""
    first_line, _, body = lesson.lstrip().partition("\n")
    return (first_line.removeprefix("# "), body.lstrip("\n")) if first_line.startswith("# ") else ("", lesson)


def lesson_part(module: Module, lessons: Sequence[str], number: int) -> View:
    """Show a later part of a module's lesson; `number` counts from 1."""
    heading, body = _split_heading(lessons[number - 1])
    return View(
        title=f"Module {module.id}, part {number} of {len(lessons)} · {heading.rpartition(' · ')[2] or module.title}",
        blocks=[Markdown(body)],
        footer=_next_part(module, number, len(lessons)),
    )


def _lab(module: Module) -> str:
    """Return how many nodes the lab has by default and at most, and whether it has a Slurm head as well."""
    lab = module.lab.local
    head = " + head" if module.lab.scheduler == "slurm" else ""
    return f"{format_count(lab.nodes, 'node')}{head}, up to {lab.max_nodes}"


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
                ("starts on", _describe_start(exercise)),
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
        Code(_commands(module, exercise), title="How to run it", are_commands=True),
    ]
    advice = f"Stuck? gpucourse hint {exercise.id} ({len(exercise.hints)} hints, one at a time)"
    if signs is not None and signs.ran and signs.yours:
        advice = f"A model solution beside yours: gpucourse show {exercise.id} --solution"
    return View(title=f"{exercise.id}  {exercise.title}", blocks=blocks, footer=[advice])


def hints(exercise: Exercise, numbers: Sequence[int], options: str | None) -> View:
    """Show the hints with these numbers, counted from 1. `options`: the options of the command that shows the next hint, or
    None after the last hint."""
    count = len(exercise.hints)
    numbered_hints = [(f"hint {number} of {count}", exercise.hints[number - 1]) for number in numbers]
    files = {part.id: part.file for part in exercise.yours}
    titles = [f"{title}{f', for {files[hint.part]}' if hint.part else ''}" for title, hint in numbered_hints]
    if len(numbered_hints) == 1:
        last = f"That was the last hint. To read them again: gpucourse hint {exercise.id} --all"
        footer = [last if options is None else f"The next hint: gpucourse hint {exercise.id}{options}"]
        return View(title=f"{exercise.id}  {titles[0]}", blocks=[Paragraph(numbered_hints[0][1].text)], footer=footer)
    blocks: list[Block] = []
    for title, (_, hint) in zip(titles, numbered_hints, strict=True):
        blocks += [Paragraph(f"{title[:1].upper()}{title[1:]}", "strong"), Paragraph(hint.text)]
    return View(title=f"{exercise.id}  {exercise.title}", blocks=blocks)


def next_step(step: NextStep, progress: Progress) -> View:
    """Show where the learner is, the one thing to do, and how far the learner has come."""
    task = Paragraph(f"{step.what[:1].upper()}{step.what[1:]}")
    footer = [_describe_progress(step.exercise, progress)]
    if step.exercise is None or step.signs is None:
        return View(title="The course is done", blocks=[task, Code(step.command)], footer=footer)
    signs = Paragraph(_sign_line(step.signs), "dim")
    return View(title=f"{step.exercise.id}  {step.exercise.title}", blocks=[signs, task, Code(step.command)], footer=footer)


def _describe_progress(exercise: Exercise | None, progress: Progress) -> str:
    """Return how many exercises are done, and the time spent in this one, in one line."""
    texts = [f"{progress.done} of {progress.exercises} exercises done"]
    if exercise is not None:
        texts.append(f"module {progress.module}: {progress.module_done} of {progress.module_exercises}")
        spent, about = round(progress.seconds_spent / 60), f"about {exercise.minutes} min"
        texts.append(f"{exercise.id}: {f'{spent} min so far, of {about}' if spent else about}")
    return f" {UNICODE.bullet} ".join(texts)


def place(module: Module, exercise: Exercise, signs: Mapping[str, Signs], next_step: str) -> View:
    """Show the progress of a module as a bar, the progress of the exercise, and the next step."""
    done_count, count = sum(item.is_done for item in signs.values()), len(module.exercises)
    full = _BAR * done_count // count
    bar = f"{UNICODE.bar_done * full}{UNICODE.bar_left * (_BAR - full)}"
    return View(
        blocks=[
            Paragraph(f"{module.id} {module.title}  {bar}  {done_count} of {count} done", "strong"),
            Paragraph(f"{exercise.id} {exercise.title}  {_sign_line(signs[exercise.id])}"),
        ],
        next=next_step,
    )


def keys(words: Mapping[str, str]) -> Paragraph:
    """Return the keys that can be pressed, each with a word for what it does, on one line."""
    return Paragraph("  ".join(f"{key} {word}" for key, word in words.items()), "accent")


def _sign(value: bool | None) -> Cell:
    """Return the sign for a column: done or open, or an empty cell if the exercise does not have this sign."""
    if value is None:
        return Cell("", "dim")
    return Cell(UNICODE.good, "good") if value else Cell(UNICODE.absent, "dim")


def _sign_line(signs: Signs) -> str:
    """Return the signs of an exercise, each with its word, on one line."""
    values = (("ran", signs.ran), ("yours", signs.yours), ("answered", signs.answered))
    return "  ".join(f"{_sign(value).text} {word}" for word, value in values if value is not None)


def _exercises(module: Module, progress: Mapping[str, ExerciseVerdict]) -> Table:
    """Return a table of every exercise of a module with its time and progress."""
    rows = [
        (exercise.id, exercise.title, str(exercise.minutes), _verdict_cell(progress.get(exercise.id)))
        for exercise in module.exercises
    ]
    return table([name_column(""), text_column("exercise"), number_column("min"), "progress"], rows)


def _verdict_cell(verdict: ExerciseVerdict | None) -> Cell:
    if verdict is None:
        return Cell("not yet", "dim")
    return verdict_cell(verdict.verdict, " (simulated)" if is_simulated(verdict.mode) else "")


def _hours(hours: float) -> str:
    return f"{hours:g} h"


def _describe_start(exercise: Exercise) -> str:
    launch = exercise.launch
    nodes_text = format_count(launch.nodes, "node")
    many_processes = f"{launch.procs_per_node} processes per node"
    processes = {"gpu": "one process per GPU", 1: "one process per node"}.get(launch.procs_per_node, many_processes)
    if launch.traits.one_process:
        processes = "one process per node"
    span = "" if launch.min_nodes == launch.max_nodes else f" ({launch.min_nodes} to {launch.max_nodes})"
    return f"{nodes_text}{span}, {processes}, by {launch.kind}"


def _parameters(parameters: Sequence[Parameter]) -> Table:
    columns = [
        name_column("parameter"),
        number_column("default"),
        number_column("simulated"),
        text_column("allowed"),
        text_column("what it is"),
    ]
    rows = [
        (
            parameter.name,
            _group_digits(parameter.default),
            "" if parameter.local is None else _group_digits(parameter.local),
            _describe_allowed(parameter),
            parameter.help,
        )
        for parameter in parameters
    ]
    return table(columns, rows, title="What can be changed (--set parameter=value)")


def _describe_allowed(parameter: Parameter) -> str:
    if parameter.choices:
        return ("each of " if parameter.each else "") + " | ".join(map(_group_digits, parameter.choices))
    low, high = (None if limit is None else _group_digits(limit) for limit in (parameter.min, parameter.max))
    range_text = f"{low} to {high}" if low and high else f"from {low}" if low else f"up to {high}" if high else ""
    return " ".join(word for word in ("each" if parameter.each else "", parameter.of, range_text) if word)


def _value(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value).lower() if isinstance(value, bool) else str(value)
    return f"{value:.10g}"


def _group_digits(value: object) -> str:
    """Format a parameter's value, with commas between groups of digits: 1,000,000."""
    return f"{value:,.10g}" if isinstance(value, (int, float)) and not isinstance(value, bool) else _value(value)


def _questions(questions: Sequence[Question], answers: Mapping[str, AnswerResult]) -> Facts:
    pairs: list[tuple[str, Content]] = []
    for question in questions:
        answer = answers.get(question.id)
        mark = ANSWERED.get(answer.verdict if answer else "open", " ")
        unit = f" ({question.unit})" if question.unit else ""
        review = [answer.said] if answer and answer.self_judged else []
        text = "\n".join([question.text + unit, *list_choices(question.choices), *review])
        pairs.append((f"{mark} {question.id}", text))
    return Facts(pairs, title="Questions")


def _checks(checks: Sequence[Check]) -> Table:
    rows = [(check.id, check.title, _promise(check), name_evidence(check.evidence)) for check in checks]
    return table(
        [name_column("name"), text_column("check"), text_column("must be"), "counts on"], rows, title="What is checked"
    )


def _promise(check: Check) -> str:
    from gpucourse.model.fields import is_evidence  # imports pydantic, which the syllabus does not need

    kind, operand = check.comparison
    margin = f" ± {check.tolerance:g}" if check.tolerance else ""
    if isinstance(operand, str) and is_evidence(operand):
        name = name_evidence_value(operand)
        unit = f" ({check.unit})" if check.unit and not name.endswith(f" {check.unit}") else ""
        return f"{kind.words} {name}{margin}{unit}".strip()
    return f"{kind.words} {_value(operand)}{margin} {check.unit}".strip()


def _commands(module: Module, exercise: Exercise) -> str:
    launch = exercise.launch
    nodes = "" if launch.min_nodes == launch.max_nodes else f" --nodes {launch.nodes}"
    return f"gpucourse deploy {module.id}\ngpucourse run {exercise.id}{nodes}"
