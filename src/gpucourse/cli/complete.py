"""Complete numbers and ids in the shell. If anything goes wrong here, the shell completes nothing and prints nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import typer

from gpucourse.cli.session import Session
from gpucourse.errors import GpucourseError

if TYPE_CHECKING:
    from gpucourse.model.deployment import Deployment
    from gpucourse.model.record import RunRecord

Completer = Callable[[typer.Context, str], list[str]]
Words = Mapping[str, Any]  # the words of the line so far, by the name of the command's parameter

NUMBERED = {"exercise", "module", "number", "run", "runs"}
"""The options and arguments, by their names in Python, that accept the number of a module or an exercise."""
_LOWER_CASE_NUMBER = re.compile(r"[a-z](\.\d*)?")


def spell_number(text: str) -> str:
    """Return the number of a module or an exercise as the course spells it: `B.2` for `b.2`. Return any other text
    unchanged."""
    return text.upper() if _LOWER_CASE_NUMBER.fullmatch(text) else text


def _complete(names: Callable[[Session, Words], Iterator[str]]) -> Completer:
    """Return a completer that offers the names that begin with the typed text."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:  # not functools.wraps: typer looks at the parameters
        try:
            spelling = spell_number(incomplete)
            return [name for name in names(ctx.obj, _read_line(ctx)) if name.startswith((incomplete, spelling))]
        except (GpucourseError, OSError):
            return []

    return complete


def _read_line(ctx: typer.Context) -> Words:
    """Return the words of the line so far. Arguments are added here, because the parser skips them while an option still lacks
    its value."""
    names = [parameter.name for parameter in ctx.command.params if parameter.param_type_name == "argument"]
    words = {**ctx.params, **{str(name): word for name, word in zip(names, ctx.args, strict=False)}}
    return {name: spell_number(word) if isinstance(word, str) and name in NUMBERED else word for name, word in words.items()}


@_complete
def modules(session: Session, _line: Words) -> Iterator[str]:
    """Yield the numbers of modules."""
    yield from (module.id for module in session.look().catalog.modules)


@_complete
def exercises(session: Session, _line: Words) -> Iterator[str]:
    """Yield the numbers of exercises."""
    yield from (exercise.id for exercise in session.look().catalog.exercises)


@_complete
def faults(session: Session, _line: Words) -> Iterator[str]:
    """Yield the names of the faults that `break` injects."""
    from gpucourse.model.drill import HOWS
    from gpucourse.runs.code_drill import list_faults

    yield from (*HOWS, *list_faults(session.look().catalog.modules))


@_complete
def lessons(session: Session, _line: Words) -> Iterator[str]:
    """Yield the numbers of modules and of their exercises."""
    for module in session.look().catalog.modules:
        yield from (module.id, *(exercise.id for exercise in module.exercises))


@_complete
def list_trusted_folders(_session: Session, _line: Words) -> Iterator[str]:
    """Yield the folders of other users that this person trusts."""
    import os

    from gpucourse.workspace.trust import list_trusted_folders

    yield from list_trusted_folders(os.environ)


@_complete
def gpus(_session: Session, _line: Words) -> Iterator[str]:
    """Yield the GPUs that can be chosen."""
    from gpucourse.hardware import hardware

    yield from hardware().choices


@_complete
def deployed_modules(session: Session, _line: Words) -> Iterator[str]:
    """Yield the numbers of the modules whose labs are deployed."""
    yield from dict.fromkeys(lab.module for lab in _labs(session))


@_complete
def paid_modules(session: Session, _line: Words) -> Iterator[str]:
    """Yield the numbers of the modules whose deployed labs cost money, and so can be paused and extended."""
    yield from dict.fromkeys(lab.module for lab in _labs(session) if lab.costs)


@_complete
def nodes(session: Session, line: Words) -> Iterator[str]:
    """Yield the names of the nodes in the module's lab."""
    labs = [lab for lab in _labs(session) if lab.module == line.get("module")]
    yield from (node.name for lab in labs[:1] if lab.inventory for node in lab.inventory.nodes)


@_complete
def parameters(session: Session, line: Words) -> Iterator[str]:
    """Yield each parameter of the exercise as `name=`; if it has choices, yield `name=choice` for each choice."""
    for parameter in session.look().catalog.exercise(str(line.get("exercise")))[1].parameters:
        yield from (f"{parameter.name}={choice}" for choice in parameter.choices or ("",))


@_complete
def predictions(session: Session, line: Words) -> Iterator[str]:
    """Yield the name of the exercise's prediction, followed by an equals sign."""
    question = session.look().catalog.exercise(str(line.get("exercise")))[1].predict
    yield from (f"{question.id}=",) if question else ()


@_complete
def checks(session: Session, line: Words) -> Iterator[str]:
    """Yield the names of the exercise's checks."""
    yield from (check.id for check in session.look().catalog.exercise(str(line.get("exercise")))[1].checks)


@_complete
def questions(session: Session, line: Words) -> Iterator[str]:
    """Yield the names of the exercise's questions, each followed by an equals sign."""
    yield from (f"{question.id}=" for question in session.look().catalog.exercise(str(line.get("exercise")))[1].questions)


@_complete
def parts(session: Session, line: Words) -> Iterator[str]:
    """Yield the names of the parts that the learner writes in the exercise."""
    yield from (part.id for part in session.look().catalog.exercise(str(line.get("exercise")))[1].yours)


@_complete
def runs(session: Session, _line: Words) -> Iterator[str]:
    """Yield the ids of runs, newest first, then the last word of each id if it is unique, then the exercises and scripts that
    have runs, and `latest`."""
    names = list(_name_runs(_records(session)))
    yield from (*names, *(["latest"] if names else []))


@_complete
def active_runs(session: Session, _line: Words) -> Iterator[str]:
    """Yield the runs that have not ended, named as in `runs`."""
    from gpucourse.workspace import runs as records

    yield from _name_runs(records.list_unfinished(session.look().paths)[::-1])


@_complete
def runs_of_exercise(session: Session, line: Words) -> Iterator[str]:
    """Yield the ids of the exercise's runs, newest first, and `latest`."""
    number = line.get("exercise") or line.get("number")
    ids = [record.id for record in _records(session) if number in {None, record.subject}]
    yield from (*ids, *(["latest"] if ids else []))


@_complete
def ranks(session: Session, line: Words) -> Iterator[str]:
    """Yield the ranks of the typed run, or of the newest run of the typed exercise."""
    from gpucourse.workspace import runs as records

    record = records.find(session.look().paths, line.get("run") or line.get("run_option") or line.get("exercise"))
    yield from map(str, range(record.world_size))


def _labs(session: Session) -> list[Deployment]:
    from gpucourse.workspace import deployments

    return deployments.readable(session.look().paths)[0]


def _records(session: Session) -> list[RunRecord]:
    """Return the records of all runs, newest first."""
    from gpucourse.workspace import runs as records

    return records.readable(session.look().paths)[0][::-1]


def _name_runs(records: list[RunRecord]) -> Iterator[str]:
    """Yield the names of runs: their ids, the last word of each id if it is unique, and their exercises or scripts."""
    yield from (record.id for record in records)
    words = Counter(record.id.rsplit("-", 1)[-1] for record in records)
    yield from (word for word, count in words.items() if count == 1)
    yield from dict.fromkeys(record.subject for record in records)
