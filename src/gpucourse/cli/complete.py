"""Completion of numbers and ids in the shell. Whatever goes wrong here, the shell completes nothing and says nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gpucourse.errors import GpucourseError

Completer = Callable[[str], list[str]]


def _quietly(names: Callable[[], Iterator[str]]) -> Completer:
    def complete(incomplete: str) -> list[str]:
        try:
            return [name for name in names() if name.startswith(incomplete)]
        except (GpucourseError, OSError):
            return []

    complete.__doc__ = names.__doc__  # not functools.wraps: typer looks at the parameters
    return complete


@_quietly
def modules() -> Iterator[str]:
    """The numbers of modules."""
    from gpucourse.cli.session import current

    yield from (module.id for module in current().context.catalog.modules)


@_quietly
def exercises() -> Iterator[str]:
    """The numbers of exercises."""
    from gpucourse.cli.session import current

    for module in current().context.catalog.modules:
        yield from (exercise.id for exercise in module.exercises)


@_quietly
def lessons() -> Iterator[str]:
    """The numbers of modules and exercises."""
    yield from modules("")
    yield from exercises("")


@_quietly
def trusted_folders() -> Iterator[str]:
    """The folders of others that this person allowed."""
    import os

    from gpucourse.workspace.trust import trusted

    yield from trusted(os.environ)


@_quietly
def runs() -> Iterator[str]:
    """The ids of runs, newest first."""
    from gpucourse.cli.session import current
    from gpucourse.workspace import runs as records

    yield from (record.id for record in reversed(records.readable(current().context.paths)[0]))
