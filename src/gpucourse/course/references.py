"""Check the references of a module to exercises, modules, stacks, nodes and values of a run. References in the commands of its
texts count too.

Each error is one line, `place: reason`, and says what exists instead.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import fields

from gpucourse.course.catalog import Catalog
from gpucourse.course.scripts import list_exercise_paths
from gpucourse.course.written import did_you_mean
from gpucourse.model.fields import EXPRESSION
from gpucourse.model.labs import AwsLab, Lab, Labs
from gpucourse.model.manifest import Exercise, Module
from gpucourse.model.plan import LaunchPlan

PLAN_KEYS = frozenset({"world_size", "nodes", *(field.name for field in fields(LaunchPlan))})
RUN_KEYS = frozenset({"state", "nodes", "world_size"})
"""The keys of a run that checks and questions may read besides its metrics."""

_NUMBER = r"(?:\d+|B)(?:\.\d+)?"
_COMMAND = re.compile(
    rf"gpucourse (?:show|run|try|watch|hint|answer|check|break|reset|deploy|destroy) ({_NUMBER})(?![\w.]\w)([^`\n]*)"
)
_SETTING = re.compile(r"--(?:set|sweep)[ =]([a-z_][\w-]*)=")
_PREDICTION = re.compile(r"--predict[ =]([a-z][\w-]*)=")


def find_dead_references(catalog: Catalog, module: Module) -> Iterator[str]:
    """Yield a message for each reference of a module to something that the course does not have."""
    yield from (f"needs: there is no module {number}" for number in module.needs if number not in catalog.module_ids)
    if cycle := _find_cycle({item.id: item.needs for item in catalog.modules}, module.id):
        yield f"needs: {' needs '.join(cycle)}: no learner could begin"
    yield from _find_missing_stacks(catalog, module)
    for exercise in module.exercises:
        for number in exercise.builds_on:
            if not _has_exercise(catalog, number):
                other_ids = [exercise_id for exercise_id in _exercise_ids(catalog) if exercise_id != exercise.id]
                yield f"{exercise.id}.builds_on: there is no exercise {number}{did_you_mean(number, other_ids)}"
        yield from (f"{exercise.id}.{line}" for line in _check_lab(module, exercise))
        yield from (f"{exercise.id}.{line}" for line in _find_unknown_values(exercise))
        yield from (f"{exercise.id}.{line}" for line in _find_repeated_items(exercise))
        if cycle := _find_cycle({item.id: item.builds_on for item in catalog.exercises}, exercise.id):
            yield f"{exercise.id}.builds_on: {' builds on '.join(cycle)}: no learner could begin"
        yield from _find_shared_faults(catalog, exercise)
        for place, text in _list_texts(exercise):
            yield from (f"{exercise.id}.{place}: {reason}" for reason in find_dead_commands(catalog, text))
    minutes = sum(exercise.minutes for exercise in module.exercises)
    if minutes > module.hours * 60:
        yield f"hours: {module.hours:g}, but its exercises alone take {minutes} minutes"


def _find_unknown_values(exercise: Exercise) -> Iterator[str]:
    """Yield a message for each path to a missing value in the plan or the record of a run."""
    parameters = {parameter.name for parameter in exercise.parameters}
    for place, expression in list_exercise_paths(exercise):
        match = EXPRESSION.match(expression)
        source, key, *subkeys = match["path"].split(".") if match else ("", "")
        keys = {"plan": PLAN_KEYS, "run": RUN_KEYS}.get(source)
        if keys is None:
            continue
        if key not in keys:
            yield f"{place}: {source} has no {key}{did_you_mean(key, keys) or '; it has ' + ', '.join(sorted(keys))}"
        elif (source, key) == ("plan", "parameters") and subkeys and subkeys[0] not in parameters:
            yield f"{place}: there is no parameter {subkeys[0]}{did_you_mean(subkeys[0], parameters)}"


def find_dead_commands(catalog: Catalog, text: str) -> Iterator[str]:
    """Yield the commands in a reader's text that name an unknown exercise, parameter or prediction."""
    for number, options in _COMMAND.findall(text):
        if "." not in number:
            if number not in catalog.module_ids:
                yield f"it names module {number}, which does not exist"
            continue
        if not _has_exercise(catalog, number):
            yield f"it names exercise {number}, which does not exist{did_you_mean(number, _exercise_ids(catalog))}"
            continue
        exercise = next((exercise for exercise in catalog.exercises if exercise.id == number), None)
        if exercise is None:  # its manifest is wrong
            continue
        parameters = [parameter.name for parameter in exercise.parameters]
        questions = [question.id for question in exercise.questions]
        names = parameters + questions  # `answer --set` names a question; other commands name a parameter
        for name in _SETTING.findall(options):
            if name not in names and name.replace("-", "_") not in names:
                yield f"--set {name}: {number} has neither a parameter nor a question of this name{did_you_mean(name, names)}"
        for name in _PREDICTION.findall(options):
            if exercise.predict is None or name != exercise.predict.id:
                correction = f"; it asks for {exercise.predict.id}" if exercise.predict else ""
                yield f"--predict {name}: {number} asks for no such prediction{correction}"


def _list_texts(exercise: Exercise) -> Iterator[tuple[str, str]]:
    """Yield every text of an exercise that a learner reads, after its place."""
    yield "goal", exercise.goal
    yield from ((f"tasks.{index}", text) for index, text in enumerate(exercise.tasks))
    yield from ((f"hints.{index}", hint.text) for index, hint in enumerate(exercise.hints))
    yield from ((f"yours.{part.id}", part.write) for part in exercise.yours)
    yield from ((f"checks.{check.id}", check.hint) for check in exercise.checks)
    for question in (*exercise.questions, *((exercise.predict,) if exercise.predict else ())):
        yield f"questions.{question.id}", " ".join(filter(None, (question.text, question.explanation, *question.options)))
    yield from ((f"faults.{fault.id}", " ".join((*fault.hints, fault.explanation))) for fault in exercise.faults)


def _find_missing_stacks(catalog: Catalog, module: Module) -> Iterator[str]:
    stacks = catalog.folders.terraform / "stacks"
    stack_names = sorted({path.parent.name for path in stacks.glob("*/*.tf")})
    for target in Labs.model_fields:
        lab = getattr(module.lab, target)
        template = lab.template if isinstance(lab, Lab | AwsLab) else None
        if template and template not in stack_names:
            suggestion = (
                did_you_mean(template, stack_names) or f"; there are {', '.join(stack_names) or 'none'} in terraform/stacks"
            )
            yield f"lab.{target}.template: there is no stack {template}{suggestion}"


def _check_lab(module: Module, exercise: Exercise) -> Iterator[str]:
    """Yield the reasons why the exercise cannot start on the module's lab."""
    launch, lab = exercise.launch, module.lab
    if launch.nodes > lab.local.max_nodes:
        yield f"launch.nodes: {launch.nodes}, but lab.local.max_nodes is {lab.local.max_nodes}"
    if lab.aws and launch.min_nodes > lab.aws.max_nodes:
        yield f"launch.min_nodes: {launch.min_nodes}, but lab.aws.max_nodes is {lab.aws.max_nodes}"
    if launch.traits.by_slurm and lab.scheduler is None:
        yield f"launch.kind: {launch.kind} needs a lab with Slurm: write scheduler: slurm under lab"
    for part in exercise.yours:
        if part.submit and not launch.traits.by_slurm:
            yield f"yours.{part.id}.submit: a batch file goes to Slurm, but launch.kind is {launch.kind}"
    if launch.traits.starts_ranks and launch.collective_timeout >= launch.timeout:
        yield (
            f"launch.collective_timeout: {launch.collective_timeout:g} s, but the run itself ends after {launch.timeout:g} s: "
            "a rank that waits forever would never time out"
        )


def _find_repeated_items(exercise: Exercise) -> Iterator[str]:
    """Yield the items that appear twice in a list whose items must differ."""
    groups: dict[str, Iterable[str]] = {
        "tables": (table.title for table in exercise.tables),
        "deliverables": (deliverable.source for deliverable in exercise.deliverables),
        "files": exercise.files,
        "yours": (part.file for part in exercise.yours),
        "tasks": exercise.tasks,
        **{f"tables.{table.title}.columns": (column.key for column in table.columns) for table in exercise.tables},
        **{f"plots.{plot.file}.series": (series.key for series in plot.series) for plot in exercise.plots},
        **{f"parameters.{parameter.name}.choices": map(str, parameter.choices) for parameter in exercise.parameters},
        **{f"questions.{question.id}.options": question.options for question in exercise.questions},
    }
    for place, items in groups.items():
        yield from (f"{place}: {item[:60]} appears twice" for item, count in Counter(items).items() if count > 1)


def _find_shared_faults(catalog: Catalog, exercise: Exercise) -> Iterator[str]:
    """Yield the faults whose id an earlier exercise uses. Learners choose from the ids of the whole course."""
    for earlier in catalog.exercises:
        if earlier.id == exercise.id:
            return
        ids = {fault.id for fault in earlier.faults}
        yield from (
            f"{exercise.id}.faults.{fault.id}: {earlier.id} has a fault of this id"
            for fault in exercise.faults
            if fault.id in ids
        )


def _find_cycle(needs: dict[str, tuple[str, ...]], start: str) -> list[str]:
    """Return a cycle in `needs` that begins and ends with `start`; return an empty list if there is none."""
    paths, visited_numbers = [[start]], set[str]()
    while paths:
        path = paths.pop()
        for number in needs.get(path[-1], ()):
            if number == start:
                return [*path, start]
            if number not in visited_numbers:
                visited_numbers.add(number)
                paths.append([*path, number])
    return []


def _has_exercise(catalog: Catalog, number: str) -> bool:
    """Return whether the exercise exists. If its module has an invalid manifest, return True for any number."""
    module = number.partition(".")[0]
    if module not in catalog.module_ids:
        return False
    readable = {item.id for item in catalog.modules}
    return module not in readable or number in _exercise_ids(catalog)


def _exercise_ids(catalog: Catalog) -> list[str]:
    return [exercise.id for exercise in catalog.exercises]
