"""Completion of numbers and ids in the shell. Whatever goes wrong here, the shell completes nothing and says nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import typer

from gpucourse.cli.session import Session, session_of
from gpucourse.errors import GpucourseError
from gpucourse.labs.target import list_targets

Completer = Callable[[typer.Context, str], list[str]]


def _quietly(names: Callable[[Session], Iterator[str]]) -> Completer:
    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        try:
            return [name for name in names(session_of(ctx)) if name.startswith(incomplete)]
        except (GpucourseError, OSError):
            return []

    complete.__doc__ = names.__doc__  # not functools.wraps: typer looks at the parameters
    return complete


@_quietly
def modules(session: Session) -> Iterator[str]:
    """The numbers of modules."""
    yield from (module.id for module in session.context.catalog.modules)


@_quietly
def exercises(session: Session) -> Iterator[str]:
    """The numbers of exercises."""
    for module in session.context.catalog.modules:
        yield from (exercise.id for exercise in module.exercises)


@_quietly
def faults(session: Session) -> Iterator[str]:
    """The words for faults that `break` injects."""
    from gpucourse.model.drill import HOWS
    from gpucourse.runs.code_drill import list_faults

    yield from (*HOWS, *list_faults(session.context))


@_quietly
def targets(_session: Session) -> Iterator[str]:
    """The names of targets."""
    yield from list_targets()


@_quietly
def lessons(session: Session) -> Iterator[str]:
    """The numbers of modules, then those of exercises."""
    catalog = session.context.catalog
    yield from (module.id for module in catalog.modules)
    yield from (exercise.id for module in catalog.modules for exercise in module.exercises)


@_quietly
def list_trusted_folders(_session: Session) -> Iterator[str]:
    """The folders of others that this person allowed."""
    import os

    from gpucourse.workspace.trust import list_trusted_folders

    yield from list_trusted_folders(os.environ)


@_quietly
def runs(session: Session) -> Iterator[str]:
    """The ids of runs, newest first."""
    from gpucourse.workspace import runs as records

    yield from (record.id for record in reversed(records.readable(session.context.paths)[0]))
